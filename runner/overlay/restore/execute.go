package restore

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/codec"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// Report says what Execute did.
type Report struct {
	Failed []manifest.Problem // what wasn't carried out; everything else was
}

// ErrNotOverlay says that a root isn't the root of an overlay mount.
var ErrNotOverlay = errors.New("it isn't an overlay")

// tempPrefix begins the names of files that are being restored. One that is
// left over from a crash is removed by the next restore, because no checkpoint
// has it.
const tempPrefix = ".stepbox-"

// Execute carries a plan out below root, the directory of the merged view. It
// is for root of the sandbox's user namespace with /proc at hand, while the
// sandbox is frozen; should a process of it run nevertheless, it can make
// steps fail but not lead them out of the mount: every path is walked by
// openat2(2) without links, and every name is worked on in an open directory.
//
// A step that fails is reported in Failed, and the others go on. The error is
// for what ends the whole: a cancelled context, a full disk, a root that isn't
// an overlay. After that, or after a crash at any moment, a new scan, plan and
// Execute reach the same target.
func Execute(ctx context.Context, root *os.File, p *Plan, src Source) (Report, error) {
	x := &executor{ctx: ctx, plan: p, src: src, root: int(root.Fd()), dirs: map[string]int{}, Failed: map[string]bool{}, overwritten: map[string]bool{}}
	defer x.forget()
	var fs unix.Statfs_t
	if err := inode.Retry(func() error { return unix.Fstatfs(x.root, &fs) }); err != nil {
		return x.report, fmt.Errorf("cannot restore below %q: %w", root.Name(), err)
	}
	if int64(fs.Type) != unix.OVERLAYFS_SUPER_MAGIC {
		return x.report, fmt.Errorf("cannot restore below %q: %w", root.Name(), ErrNotOverlay)
	}
	for i := range p.Ops {
		if err := ctx.Err(); err != nil {
			return x.report, fmt.Errorf("cannot finish the rollback: %w", err)
		}
		op := &p.Ops[i]
		err := x.step(i, op)
		if err == nil {
			continue
		}
		x.Failed[op.Path] = true
		x.report.Failed = append(x.report.Failed, manifest.Problem{Path: op.Path, Text: fmt.Sprintf("cannot restore it (%s): %v", op.Kind, err)})
		if full(err) {
			return x.report, fmt.Errorf("cannot finish the rollback: %w", err)
		}
	}
	return x.report, nil
}

type executor struct {
	ctx    context.Context
	plan   *Plan
	src    Source
	root   int
	dirs   map[string]int // open directories by path
	Failed map[string]bool
	report Report

	overwritten map[string]bool // files written in place
	buf         []byte
}

// maxOpenDirs is how many directories stay open between steps.
const maxOpenDirs = 64

func (x *executor) forget() {
	for _, fd := range x.dirs {
		_ = unix.Close(fd)
	}
	clear(x.dirs)
}

// dir opens the directory at path; it stays open for the steps to come.
func (x *executor) dir(path string) (int, error) {
	if fd, ok := x.dirs[path]; ok {
		return fd, nil
	}
	fd, err := inode.OpenDirBeneath(x.root, path)
	if errors.Is(err, unix.EXDEV) {
		fd, err = x.across(path)
	}
	if err != nil {
		return -1, fmt.Errorf("cannot open its directory: %w", err)
	}
	x.dirs[path] = fd
	return fd, nil
}

// across is dir where a mount is on the way that shows what is there anyway: it is of the same filesystem, which
// a folder of an overlay always says truly.
func (x *executor) across(path string) (int, error) {
	parent, name := manifest.Split(path)
	dirfd := x.root
	if parent != "" {
		var err error
		if dirfd, err = x.dir(parent); err != nil {
			return -1, err
		}
	}
	fd, err := unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var root, st unix.Stat_t
	if err = errors.Join(unix.Fstat(x.root, &root), unix.Fstat(fd, &st)); err == nil && st.Dev != root.Dev {
		err = unix.EXDEV
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func (x *executor) step(i int, op *Op) error {
	if !manifest.ValidPath(op.Path) || op.Path == "" && op.Kind != OpMeta {
		return unix.EINVAL
	}
	if len(x.dirs) >= maxOpenDirs {
		x.forget()
	}
	if op.Path == "" {
		return x.meta(x.root, ".", op)
	}
	dirPath, name := manifest.Split(op.Path)
	dirfd, err := x.dir(dirPath)
	if err != nil {
		if op.Kind == OpRemove && inode.Gone(err) {
			return nil // what held it is gone
		}
		return err
	}
	switch op.Kind {
	case OpRemove:
		return x.remove(dirfd, name)
	case OpMkdir:
		return x.mkdir(dirfd, name)
	case OpFile:
		return x.file(dirfd, name, i, op)
	case OpLink:
		return x.link(dirfd, name, op)
	case OpSymlink:
		return x.replace(dirfd, name, op, func(temp string) error { return unix.Symlinkat(op.Target, dirfd, temp) })
	case OpFIFO:
		return x.replace(dirfd, name, op, func(temp string) error { return unix.Mknodat(dirfd, temp, unix.S_IFIFO|0o600, 0) })
	case OpSocket:
		return x.replace(dirfd, name, op, func(temp string) error { return unix.Mknodat(dirfd, temp, unix.S_IFSOCK|0o600, 0) })
	case OpMeta:
		return x.meta(dirfd, name, op)
	}
	return fmt.Errorf("%w: an unknown step", codec.ErrForm)
}

func (x *executor) mkdir(dirfd int, name string) error {
	err := unix.Mkdirat(dirfd, name, 0o700)
	if err == unix.EEXIST { // a restore that crashed made it
		fd, err := inode.Beneath(dirfd, name, unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
	return err
}

// meta sets the attributes of what is there.
func (x *executor) meta(dirfd int, name string, op *Op) error {
	fd, err := inode.Beneath(dirfd, name, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return inode.SetMeta(fd, op.What, &op.Meta, op.SameAttr)
}
