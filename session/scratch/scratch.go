// Package scratch makes throw-away sandboxes: each has a project in a given
// state, without a network, and runs one program in it to its end. Checks run so
// before anything is applied, and so does git where the agent could write the
// repository: to bundle the commits that the agent made, which the person's own
// git then fetches from the bundle.
//
// A program in there sees what a session over the same project would show it, in
// an empty home. It can write nothing but what goes with the sandbox, and ends
// when the context does. It isn't trusted: what it prints and leaves is bounded,
// and parsed as hostile.
//
// A Scratch may be used from several goroutines.
package scratch

import (
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/runner"
	"stepbox/runner/holder"
	"stepbox/store"
)

// Config says whose project it is, and what a sandbox may use.
type Config struct {
	Store     *store.Store
	Workspace string   // the project, checked by runner.CheckWorkspace
	Home      string   // the person's home folder
	Env       []string // the person's environment; most of it stays outside
	Hidden    []string // what the session hid of the project, relative; what one would hide today is hidden as well
	Outer     string   // what the session wrote of the project's repository, if that is outside of it: its overlay's upper folder
	DataDir   string   // the store's folder
	RunDir    string   // where the run-time folders of all sandboxes are
	Limits    runner.Limits
}

// Scratch makes sandboxes of one project.
type Scratch struct{ cfg Config }

// maxPids bounds the processes of a sandbox for which nobody chose a bound.
const maxPids = 4096

// New makes one for a project.
func New(cfg Config) *Scratch {
	cfg.Limits.Pids = cmp.Or(cfg.Limits.Pids, maxPids)
	return &Scratch{cfg}
}

// place is a sandbox's own folder, locked while this process lives, see flock(2).
type place struct {
	id, dir string
	lock    *os.File
}

// newPlace makes one, and removes what others left that were killed.
func (s *Scratch) newPlace() (*place, error) {
	root := filepath.Join(s.cfg.DataDir, "scratch")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make a folder for a throw-away sandbox: %w", err)
	}
	_ = Sweep(s.cfg.DataDir) // what can't be removed is in nobody's way
	var b [5]byte
	_, _ = rand.Read(b[:]) // never fails, crypto/rand
	p := &place{id: "scratch-" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))}
	p.dir = filepath.Join(root, p.id)
	err := locked(root, func() error {
		if err := os.Mkdir(p.dir, 0o700); err != nil {
			return err
		}
		lock, err := lockFolder(p.dir, unix.LOCK_NB)
		p.lock = lock
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for a throw-away sandbox: %w", err)
	}
	return p, nil
}

// remove takes the folder away.
func (p *place) remove() error {
	err := holder.RemoveAll(p.dir)
	p.lock.Close()
	return err
}

// Sweep removes the folders of sandboxes whose process was killed, below the
// store's folder; runner.Sweep removes what else they left.
func Sweep(dataDir string) error {
	root := filepath.Join(dataDir, "scratch")
	entries, err := os.ReadDir(root)
	if len(entries) == 0 {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	var dead []*place
	err = locked(root, func() error {
		for _, e := range entries {
			dir := filepath.Join(root, e.Name())
			if lock, err := lockFolder(dir, unix.LOCK_NB); err == nil {
				dead = append(dead, &place{e.Name(), dir, lock})
			}
		}
		return nil
	})
	failures := []error{err}
	for _, p := range dead {
		failures = append(failures, p.remove())
	}
	return errors.Join(failures...)
}

// locked runs f while no other process makes folders or takes them over: to
// whoever looks, a folder is there with its lock held, or nobody's.
func locked(root string, f func() error) error {
	lock, err := lockFolder(root, 0)
	if err != nil {
		return err
	}
	defer lock.Close()
	return f()
}

func lockFolder(dir string, how int) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|how)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %q: %w", dir, err)
	}
	return f, nil
}
