package project

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// Progress is how far long work is.
type Progress struct {
	Stage       string // "check", "write", "place", "take back", "clean up"
	Part, Whole int64  // bytes of "write", else steps
}

// Conflict is a path that isn't what its step expects, or can't become what it
// should. Its bytes were left alone.
type Conflict struct {
	Path string
	Why  string // in words
}

// RefusedError says why steps weren't carried out. The project is as it was.
type RefusedError struct{ Conflicts []Conflict }

// maxConflicts is how many are named at once.
const maxConflicts = 1000

func (e *RefusedError) add(path, why string) {
	if len(e.Conflicts) < maxConflicts {
		e.Conflicts = append(e.Conflicts, Conflict{path, why})
	}
}

func (e *RefusedError) Error() string {
	c := e.Conflicts[0]
	if n := len(e.Conflicts) - 1; n > 0 {
		return fmt.Sprintf("%q %s (and %d more)", c.Path, c.Why, n)
	}
	return fmt.Sprintf("%q %s", c.Path, c.Why)
}

// Carry carries steps out, all of them or none, under a new journal of that name
// (letters, digits, "-" and "_"). What a step wants and is so already is left out,
// of the journal too. Left is what is otherwise than it should be, and where its bytes are. A
// RefusedError, like any other, means that the project is as it was, but for what is
// left; that is also so when ctx ends meanwhile. told, which may be nil, is called
// from this goroutine, often.
func (f *Folder) Carry(ctx context.Context, j Journals, name string, steps []Step, told func(Progress)) (left []manifest.Problem, err error) {
	steps = slices.Clone(steps)
	slices.SortFunc(steps, func(a, b Step) int { return order(a.Path, b.Path) })
	left, err = f.carry(ctx, &record{in: j, name: name, steps: steps}, nil, told)
	if err != nil {
		err = fmt.Errorf("cannot write to project %q: %w", f.path, err)
	}
	return left, err
}

// Undo takes back what Carry did under a journal that is Done, all of it or
// nothing: a path that isn't as Carry left it is a conflict. Folders stay in which
// there is something else by now.
func (f *Folder) Undo(ctx context.Context, j Journals, name string, told func(Progress)) (left []manifest.Problem, err error) {
	l, err := j.one(name)
	done := l.file
	if err == nil {
		err = done.load()
	}
	if err == nil {
		err = f.here()
	}
	switch {
	case err != nil:
	case l.Phase != Done:
		err = fmt.Errorf("it is %s", l.Phase)
	case !f.is(done):
		err = errors.New("it was done to another project folder")
	default:
		for i, s := range done.steps {
			done.steps[i].Old, done.steps[i].New = s.New, s.Old
		}
		left, err = f.carry(ctx, &record{in: j, name: name, undo: true, steps: done.steps}, done, told)
	}
	if err != nil {
		err = fmt.Errorf("cannot undo %q in project %q: %w", name, f.path, err)
	}
	return left, err
}

// carry does r's steps: checks and keeps what is there, begins the journal, makes
// what is new beside the old, puts it in place, and deletes what was replaced. undone is
// the journal that r undoes, if it does.
func (f *Folder) carry(ctx context.Context, r, undone *record, told func(Progress)) (left []manifest.Problem, err error) {
	if !validName(r.name) {
		return nil, fmt.Errorf("%q can't name a journal", r.name)
	}
	if err := errors.Join(f.here(), valid(r.steps)); err != nil {
		return nil, err
	}
	unlock, err := f.lock(r.in)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := f.free(r); err != nil {
		return nil, err
	}
	var id [idBytes]byte
	_, _ = rand.Read(id[:])
	r.id, r.at, r.path, r.dev, r.ino, r.fsid = hex.EncodeToString(id[:]), time.Now(), f.path, f.dev, f.ino, f.fsid()
	x := newExecutor(ctx, f, r, told)
	defer x.close()
	if err := x.check(); err != nil {
		return nil, err
	}
	r.folders = x.folders(undone)
	if undone == nil {
		r.names = x.otherNames()
	} else {
		x.links.noted = undone.names
	}
	if err := r.begin(); err != nil {
		return nil, err
	}
	if err := x.make(); err != nil {
		err = errors.Join(err, x.reverse(true))
		return x.left, err
	}
	err = r.become(stageMoving)
	if err == nil {
		err = x.moveAll()
	}
	if err == nil {
		err = x.settle()
	}
	if err != nil {
		err = errors.Join(err, x.reverse(false))
		return x.left, err
	}
	x.finish()
	x.alone()
	return x.left, nil
}

// settle makes sure that what is about to be deleted is in the record, on disk,
// and says in the journal that from here on there is no way back.
func (x *executor) settle() error {
	if err := x.queue.Flush(x.ctx); err != nil {
		return err
	}
	d, err := os.Open(x.r.in.Dir)
	if err != nil {
		return err
	}
	err = change(func() error { return unix.Syncfs(int(d.Fd())) })
	if err = errors.Join(err, d.Close()); err != nil {
		return fmt.Errorf("cannot write the record to disk: %w", explain(err))
	}
	return x.r.become(stageCleaning)
}

// finish deletes what was replaced and closes the journal. Whatever it meets, all
// steps are carried out; what is left to do then is Recover's.
func (x *executor) finish() {
	x.detach()
	err := errors.Join(x.clean(false), x.settleFolders(), x.sync())
	if err == nil {
		err = x.r.become(stageDone)
	}
	if err != nil {
		x.leave("", "all of it is done, but the next start has to clean up: %v", err)
	}
}

// lock keeps every other process out of the project's writing until unlock.
func (f *Folder) lock(j Journals) (unlock func(), err error) {
	if err := os.MkdirAll(j.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot lock the project: %w", err)
	}
	name := filepath.Join(j.Dir, fmt.Sprintf("lock-%x-%x", f.dev, f.ino))
	l, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the project: %w", err)
	}
	if err := unix.Flock(int(l.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if err == unix.EWOULDBLOCK {
			err = ErrBusy
		}
		return nil, errors.Join(err, l.Close())
	}
	return func() {
		_ = unix.Flock(int(l.Fd()), unix.LOCK_UN) // a process that was just forked has the file as well
		_ = l.Close()
	}, nil
}

// fsid names the file system across reboots, where it can be told: statfs(2).
func (f *Folder) fsid() uint64 {
	var st unix.Statfs_t
	if inode.Retry(func() error { return unix.Fstatfs(f.fd, &st) }) != nil {
		return 0
	}
	return uint64(uint32(st.Fsid.Val[0])) | uint64(uint32(st.Fsid.Val[1]))<<32
}

// is says whether this is the folder that a journal was written for.
func (f *Folder) is(r *record) bool {
	return f.ino == r.ino && (f.dev == r.dev || r.fsid != 0 && f.fsid() == r.fsid)
}

// free fails when an earlier journal of the project is half-way, or when there is
// one like r.
func (f *Folder) free(r *record) error {
	found, err := r.in.find()
	for _, o := range found {
		if o.name == r.name && o.undo == r.undo {
			return fmt.Errorf("there is a journal %q already", r.name)
		}
		// One that can't be read is Recover's to name: each step is checked anyway.
		if o.open() && o.load() == nil && f.is(o) {
			return fmt.Errorf("%q: %w", o.name, ErrUnfinished)
		}
	}
	return err
}
