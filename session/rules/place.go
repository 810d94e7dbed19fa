package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/session/api"
)

// path is the file that rules of an extent are in.
func (c *Config) path(e api.Extent) (path string, own bool, err error) {
	switch e {
	case api.ExtentAlways:
		path, own = c.User, true
	case api.ExtentProject:
		path = c.Project
	}
	if path == "" {
		return "", false, fmt.Errorf("there is no policy for %q", e)
	}
	return path, own, nil
}

// Check says why no rule can be put into a file as it stands.
func (c *Config) Check(made ...api.Rule) error {
	for _, r := range made {
		was, _, err := c.edited(r, func(text []byte) ([]byte, error) { return Insert(text, r, "") })
		if err != nil {
			return err
		}
		if err := mayWrite(filepath.Dir(was.path)); err != nil {
			return fmt.Errorf("cannot change %q: %w; a rule for this session needs no file", was.path, err)
		}
	}
	return nil
}

// mayWrite says why no file can be put into a folder, or into the one that it would be
// made in. An answer is refused for that before it lets anything go.
func mayWrite(dir string) error {
	err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	if above := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && above != dir {
		return mayWrite(above)
	}
	if err != nil {
		return &fs.PathError{Op: "write to", Path: dir, Err: err}
	}
	return nil
}

// Has says whether a rule is in its file.
func (c *Config) Has(r api.Rule) bool {
	_, _, err := c.edited(r, func(text []byte) ([]byte, error) { return Delete(text, r) })
	return err == nil
}

// Add puts rules into their file, which is made where there is none. A project's that
// was trusted stays so.
func (c *Config) Add(remark string, made ...api.Rule) error {
	for _, r := range made {
		if err := c.change(r, func(text []byte) ([]byte, error) { return Insert(text, r, remark) }); err != nil {
			return err
		}
	}
	return nil
}

// Remove takes a rule out of its file, which goes where nothing else is in it: as Add made
// it. One that a link leads to stays.
func (c *Config) Remove(r api.Rule) error {
	return c.change(r, func(text []byte) ([]byte, error) { return Delete(text, r) })
}

// edit is what a file is to be.
type edit struct {
	text []byte
	sum  string // see policy.Layer
}

// edited is a file with something changed, which is no file yet.
func (c *Config) edited(r api.Rule, change func([]byte) ([]byte, error)) (was content, now edit, err error) {
	path, own, err := c.path(r.For)
	if err != nil {
		return was, now, err
	}
	if was, err = read(path, own); err != nil {
		return was, now, err
	}
	if was.there() {
		l, err := was.layer("", was.data)
		if err != nil {
			return was, now, fmt.Errorf("its policy has to be put right first: %w", err)
		}
		if !own && !c.Trust.Has(was.path, l.Sum) {
			return was, now, fmt.Errorf("the policy %q isn't trusted, so nothing is put into it: look at it with stepbox policy trust %s", was.path, filepath.Dir(was.path))
		}
	}
	now.text, err = change(was.data)
	if err == nil {
		var l policy.Layer
		l, err = was.layer("", now.text)
		now.sum = l.Sum
	}
	if err != nil && !errors.Is(err, errNone) {
		err = fmt.Errorf("cannot change %q: %w", was.path, err)
	}
	return was, now, err
}

// change changes a file, alone of all Stepboxes.
func (c *Config) change(r api.Rule, change func([]byte) ([]byte, error)) error {
	path, own, err := c.path(r.For)
	if err != nil {
		return err
	}
	linked := false
	if own {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("cannot make the folder of your policy: %w", err)
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real // is what is changed, by whatever link
		}
		_, err := os.Readlink(c.User)
		linked = err == nil
	}
	unlock, err := lock(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("cannot change %q: %w", path, err)
	}
	defer unlock()
	was, now, err := c.edited(r, change)
	if err != nil {
		return err
	}
	clearAway(was.path)
	if len(now.text) == 0 && !linked {
		if err := remove(was.path); err != nil {
			return fmt.Errorf("cannot remove %q, in which nothing is any more: %w", was.path, err)
		}
		return nil
	}
	if !own { // before it is there: between the two it is what it was
		if err := c.Trust.Confirm(was.path, now.sum, r.By); err != nil {
			return err
		}
	}
	mode, uid, gid := fs.FileMode(0o644), -1, -1
	var st unix.Stat_t
	if unix.Stat(was.path, &st) == nil { // it stays whose it is
		mode, uid, gid = fs.FileMode(st.Mode)&fs.ModePerm, int(st.Uid), int(st.Gid)
	}
	if err := replace(was.path, now.text, mode, uid, gid); err != nil {
		return fmt.Errorf("cannot change %q: %w", was.path, err)
	}
	return nil
}

// clearAway removes what was to take a file's place when its writer was killed. The file's
// folder is locked, so that nobody is just writing there.
func clearAway(path string) {
	dir, base := filepath.Split(path)
	all, _ := os.ReadDir(dir) // what stays is no harm
	for _, e := range all {
		rest, ours := strings.CutPrefix(e.Name(), "."+base+".")
		number, temp := strings.CutSuffix(rest, ".tmp")
		if _, err := strconv.ParseUint(number, 10, 64); err == nil && ours && temp { // as os.CreateTemp names one
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// lock has a folder alone until unlock: who changes a file in it waits for that.
func lock(dir string) (unlock func(), err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(d.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return func() { d.Close() }, nil
}

// IsNone says whether an error is that there is no such rule.
func IsNone(err error) bool { return errors.Is(err, errNone) }
