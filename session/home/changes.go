package home

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/judge"
)

// Bounds on what is looked at of a session's home, and on a file that is taken over.
const (
	maxSeen   = 50_000
	maxListed = 2_000
	maxKept   = 64 << 20
)

// view is a session's home that is looked at: what was written, and what is below that.
type view struct {
	upper Dir
	below []Dir // topmost first; the last is the profile's
}

// look opens a session's home and does something with it.
func (p Place) look(f func(view) error) error {
	if p.Upper == "" {
		return api.Problemf(api.CodeInvalid, "its home isn't a session's own view of the profile's (stepbox run --home session): there is nothing to compare")
	}
	var open []Dir
	defer func() {
		for _, d := range open {
			d.Close()
		}
	}()
	for _, folder := range []string{p.Upper, p.Front, p.Folder} {
		d, err := Open(folder)
		if errors.Is(err, fs.ErrNotExist) && folder != p.Folder {
			continue // nothing was written, or brought
		}
		if err != nil {
			return err
		}
		open = append(open, d)
	}
	if open[0].Name() != p.Upper {
		return nil
	}
	return f(view{open[0], open[1:]})
}

// Changes lists what a session changed in its home against the profile's, and what it
// was brought. Some paths may be named, files or folders: then only these.
func (p Place) Changes(profile *policy.Profile, paths ...string) (out api.HomeChanges, err error) {
	brought := profile.Brings()
	seen := 0
	err = p.look(func(v view) error {
		return fs.WalkDir(v.upper.FS(), ".", func(rel string, e fs.DirEntry, err error) error {
			if seen++; seen > maxSeen || len(out.Files) >= maxListed {
				out.More++
				return fs.SkipAll
			}
			if rel == "." && err == nil || !chosen(rel, paths) {
				return nil
			}
			c, changed := v.change(rel, e, err)
			if c.Path = []byte(rel); changed {
				c.Beware = append(c.Beware, beware(rel, brought)...)
				out.Files = append(out.Files, c)
			}
			return nil
		})
	})
	return out, err
}

// chosen says whether a path is one of some, below one of them or above; of none all are.
func chosen(rel string, of []string) bool {
	return len(of) == 0 || slices.ContainsFunc(of, func(o string) bool { return manifest.Within(rel, filepath.Clean(o)) })
}

// change is what became of one file; changed is false where it is as it was.
func (v view) change(rel string, e fs.DirEntry, err error) (c api.HomeChange, changed bool) {
	if err != nil {
		return api.HomeChange{Kind: "added", Why: "it can't be read"}, true
	}
	info, err := v.upper.Lstat(rel)
	switch {
	case err != nil: // it is gone by now
		return c, false
	case info.IsDir(): // alone it is nothing
		return api.HomeChange{Kind: "modified", Why: "the folder is another: what is in the profile's stays there"}, v.opaque(rel)
	}
	was, found := fs.FileInfo(nil), false
	for _, d := range slices.Backward(v.below) {
		if i, err := d.Lstat(rel); err == nil {
			was, found = i, true
		}
	}
	c.Kind, c.Size = "added", info.Size()
	if found {
		c.Kind = "modified"
	}
	st, _ := info.Sys().(*syscall.Stat_t)
	switch {
	case st != nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == 0: // overlayfs.rst, "whiteouts"
		c.Kind, c.Size = "deleted", 0
		if found && !was.Mode().IsRegular() && was.Mode()&fs.ModeSymlink == 0 {
			c.Why = "what was there isn't a file: delete it in the profile's home yourself"
		}
		return c, found
	case !info.Mode().IsRegular():
		c.Why = "it is neither a file nor a folder"
		if info.Mode()&fs.ModeSymlink != 0 {
			c.Why = "it is a link, and links aren't kept"
		}
		return c, true
	case info.Size() > maxKept:
		c.Why = fmt.Sprintf("it has more than %d MiB", maxKept>>20)
	case v.same(rel, info):
		return c, false
	}
	if info.Mode()&0o111 != 0 {
		c.Beware = append(c.Beware, "it can be run")
	}
	return c, true
}

// opaque says whether a folder stands in the place of another, overlayfs.rst.
func (v view) opaque(rel string) bool {
	f, err := v.upper.Open(rel)
	if err != nil {
		return false
	}
	defer f.Close()
	n, err := unix.Fgetxattr(int(f.Fd()), "user.overlay.opaque", make([]byte, 8))
	return err == nil && n > 0 && slices.ContainsFunc(v.below, func(d Dir) bool { _, err := d.Lstat(rel); return err == nil })
}

// same says whether a file is as one of those below it.
func (v view) same(rel string, info fs.FileInfo) bool {
	return slices.ContainsFunc(v.below, func(d Dir) bool {
		was, err := d.Lstat(rel)
		if err != nil || was.Size() != info.Size() || (was.Mode()^info.Mode())&0o100 != 0 {
			return false
		}
		a, _, err := d.Read(rel, maxKept)
		b, _, failed := v.upper.Read(rel, maxKept)
		return err == nil && failed == nil && bytes.Equal(a, b)
	})
}

// beware says what a file does to the next session that has it.
func beware(rel string, brought policy.Brings) (out []string) {
	listed := slices.ContainsFunc(brought.Settings, func(s policy.BroughtSettings) bool { return s.File == rel }) ||
		slices.ContainsFunc(brought.Texts, func(t string) bool { return manifest.Within(rel, strings.TrimSuffix(t, "/")) })
	if listed {
		out = append(out, "the agent obeys it, and yours goes over it at the next start")
	}
	if judge.Obeyed(rel) {
		out = append(out, "programs take commands from it")
	}
	for _, word := range []string{"hook", "plugin", "extension", "settings", "config", "mcp", "/bin/", "rc"} {
		name := "/" + strings.ToLower(rel)
		if strings.Contains(name, word) && len(out) == 0 && (word != "rc" || strings.HasSuffix(name, word)) {
			out = append(out, "by its name it is a setting, or runs by itself")
		}
	}
	return out
}

// Keep takes a session's changes, or some of them, into the profile's home, and says
// which: files and deletions, never links. What fails says why.
func (p Place) Keep(profile *policy.Profile, paths ...string) (api.HomeChanges, error) {
	out, err := p.Changes(profile, paths...)
	if err != nil {
		return out, err
	}
	err = p.look(func(v view) error {
		into := v.below[len(v.below)-1]
		for i := range out.Files {
			c := &out.Files[i]
			if c.Why != "" {
				continue
			}
			var err error
			rel := string(c.Path)
			if into.linked(rel) {
				c.Why = "it can't be kept: in the profile's home something else than a folder is above it, such as a link"
				continue
			}
			if c.Kind == "deleted" {
				if err = into.Remove(rel); errors.Is(err, fs.ErrNotExist) {
					err = nil // it was only brought
				}
			} else {
				var data []byte
				var mode fs.FileMode
				if data, mode, err = v.upper.Read(rel, maxKept); err == nil {
					err = into.Write(rel, data, mode&0o111 != 0)
				}
			}
			if c.Kept = err == nil; err != nil {
				c.Why = "it can't be kept: " + cause(err)
			}
		}
		return nil
	})
	return out, err
}

// cause is an error without its path, which is told already.
func cause(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return api.Escape(err.Error())
}
