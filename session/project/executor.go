package project

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// executor carries one journal's steps out, or takes them back. It belongs to one
// goroutine, which holds the project's lock.
type executor struct {
	ctx   context.Context
	f     *Folder
	r     *record
	steps []Step // of r
	moves []move
	begun int            // moves that this process began to make
	back  bool           // moves are undone
	again bool           // moves may have been made by an earlier process
	queue *content.Queue // what is looked at is kept
	look  looker
	// known are the inodes that were looked at before anything was moved, by
	// step; Ino 0 when an inode's times don't tell whether it changes.
	known []unix.Stat_t
	dirs  [2]kept
	told  func(Progress)
	left  []manifest.Problem
	links links
	buf   []byte
}

// kept is a folder that stays open while moves are made in it.
type kept struct {
	path string
	fd   int
	open bool
}

func newExecutor(ctx context.Context, f *Folder, r *record, told func(Progress)) *executor {
	x := &executor{ctx: ctx, f: f, r: r, queue: content.NewQueue(r.in.Bodies), told: told, links: links{made: map[uint64][]linked{}}}
	if told == nil {
		x.told = func(Progress) {}
	}
	x.look = looker{ctx: ctx, hash: content.Hasher{Limit: maxData, Queue: x.queue.Add}}
	x.take(r.steps, make([]unix.Stat_t, len(r.steps)))
	return x
}

// take sets the steps, which are sorted and valid.
func (x *executor) take(steps []Step, known []unix.Stat_t) {
	x.r.steps, x.steps, x.moves, x.known = steps, steps, layout(steps, x.r.id), known
}

// detach lets work go on whose caller has given up: what was begun is mended.
func (x *executor) detach() {
	x.ctx = context.WithoutCancel(x.ctx)
	x.look.ctx = x.ctx
}

func (x *executor) close() {
	for _, d := range x.dirs {
		if d.open {
			_ = unix.Close(d.fd)
		}
	}
}

// dir opens a folder of the project, or gives it again while it is one of the
// last two. It must not be closed.
func (x *executor) dir(path string) (int, error) {
	for i, d := range x.dirs {
		if d.open && d.path == path {
			x.dirs[0], x.dirs[i] = d, x.dirs[0]
			return d.fd, nil
		}
	}
	fd, err := inode.OpenDirBeneath(x.f.fd, path)
	if err != nil {
		return -1, err
	}
	if x.dirs[1].open {
		_ = unix.Close(x.dirs[1].fd)
	}
	x.dirs[0], x.dirs[1] = kept{path, fd, true}, x.dirs[0]
	return fd, nil
}

// still fails when a folder that is open for moves has another place by now. The
// moves are undone through its descriptor then.
func (x *executor) still(path string) error {
	for _, d := range x.dirs {
		if !d.open || d.path != path {
			continue
		}
		var was, is unix.Stat_t
		fd, err := inode.OpenDirBeneath(x.f.fd, path)
		if err == nil {
			err = errors.Join(inode.Fstat(fd, &is), inode.Fstat(d.fd, &was), unix.Close(fd))
		}
		if err != nil || was.Ino != is.Ino || was.Dev != is.Dev {
			return refuse(path, "was moved away meanwhile")
		}
	}
	return nil
}

func refuse(path, why string) error {
	return &RefusedError{Conflicts: []Conflict{{path, why}}}
}

func (x *executor) leave(path, format string, a ...any) {
	x.left = append(x.left, manifest.Problem{Path: path, Text: fmt.Sprintf(format, a...)})
}

// racy is how long a time stamp can stay the same although its file changes:
// the coarsest that file systems keep.
const racy = 2 * time.Second

// know notes the inode that was looked at.
func (x *executor) know(step int, st *unix.Stat_t, at time.Time) {
	x.known[step] = *st
	if at.Sub(time.Unix(st.Ctim.Unix())) < racy {
		x.known[step].Ino = 0
	}
}

// has says whether a name has what a move's step had before, or with after what
// it shall have: the inode that is known, or one that looks the same. Folders are
// the same when they have the same in them; their modes come last of all.
func (x *executor) has(m *move, fd int, name string, after bool) (bool, State, error) {
	want, tree, known := x.steps[m.step].Old, m.tree[:1], x.known[m.step]
	if after {
		want, tree, known.Ino = x.steps[m.step].New, m.tree, 0
	}
	if known.Ino != 0 && want.Kind == manifest.KindFile {
		var st unix.Stat_t
		err := inode.Lstat(fd, name, &st)
		if name != m.name { // a rename sets it
			known.Ctim = st.Ctim
		}
		if err == nil && inode.KeyOf(&st) == inode.KeyOf(&known) {
			return true, want, nil
		}
	}
	now, _, err := x.look.look(fd, name)
	if err != nil || want.Kind != manifest.KindDir || now.Kind != manifest.KindDir {
		return err == nil && now.Same(want), now, err
	}
	names, same := 1, true // in all of its folders, and its own
	for _, i := range tree {
		err := x.inTree(m, fd, name, i, func(fd int, name string) error {
			at, _, err := x.look.look(fd, name)
			if err == nil && at.Kind == manifest.KindDir {
				err = eachName(fd, name, func(int, string) error { names++; return nil })
			}
			same = same && (at.Same(x.steps[i].New) || at.Kind == manifest.KindDir && (i == m.step || x.steps[i].New.Kind == manifest.KindDir))
			return err
		})
		if err != nil && !inode.Gone(err) {
			return false, now, err
		}
		same = same && err == nil
	}
	return same && names == len(tree), now, nil
}

// inTree calls do for step i in a move's folder, which is at name below dirfd:
// with the folder that the step is in, and its last name.
func (x *executor) inTree(m *move, dirfd int, name string, i int, do func(fd int, name string) error) error {
	dir, last := manifest.Split(name + x.steps[i].Path[len(x.steps[m.step].Path):])
	if dir == "" {
		return do(dirfd, last)
	}
	return openDir(dirfd, dir, func(fd int) error { return do(fd, last) })
}

func there(fd int, name string) bool {
	var st unix.Stat_t
	return !inode.Gone(inode.Lstat(fd, name, &st))
}
