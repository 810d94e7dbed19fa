package home

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/judge"
)

// Bounds on what is listed of a session's home, and on a file that is taken over.
const (
	maxListed = 2_000
	maxKept   = 64 << 20
)

// errNotOwn is said of homes that have nothing below them.
var errNotOwn = api.Problemf(api.CodeInvalid, "its home isn't a session's own view of the profile's (stepbox run --home session): there is nothing to compare")

// Changes lists what a session changed in its home against the profile's, and what it
// was brought; of a home that is shared, what programs obey there and is another by now. Some
// paths may be named, files or folders: then only these.
func (p Place) Changes(ctx context.Context, profile *policy.Profile, paths ...string) (out api.HomeChanges, err error) {
	if p.Saved != "" {
		found, err := p.disobeyed()
		if err != nil {
			return out, err
		}
		return list(found.differs, profile, paths), nil
	}
	if p.Upper == "" {
		return out, errNotOwn
	}
	upper, err := Open(p.Upper)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil // nothing was written
	}
	if err != nil {
		return out, err
	}
	upper.Close()
	c, err := p.compare(ctx, nil)
	if err != nil {
		return out, err
	}
	defer c.close()
	return list(c.differs, profile, paths), nil
}

// list tells what differs, or some paths of that.
func list(differs map[string]difference, profile *policy.Profile, paths []string) (out api.HomeChanges) {
	brought := profile.Brings()
	for _, at := range slices.Sorted(maps.Keys(differs)) {
		d := differs[at]
		switch change, is := d.told(); {
		case !is || !chosen(at, paths):
		case len(out.Files) >= maxListed:
			out.More++
		default:
			change.Path, change.Beware = []byte(at), d.traps(at, brought)
			out.Files = append(out.Files, change)
		}
	}
	return out
}

// chosen says whether a path is one of some, or below one of them; of none all are.
func chosen(rel string, of []string) bool {
	return len(of) == 0 || slices.ContainsFunc(of, func(o string) bool { return manifest.Within(rel, filepath.Clean(o)) })
}

// told is a difference as it is told of what may be kept; is is false for what is none
// then: folders, and modes, but for being executable.
func (d difference) told() (c api.HomeChange, is bool) {
	c.Kind = "added"
	switch {
	case d.now == nil:
		if c.Kind = "deleted"; d.old.Kind != manifest.KindFile && d.old.Kind != manifest.KindSymlink {
			c.Why = "what was there isn't a file: delete it in the profile's home yourself"
		}
		return c, true
	case d.unseen():
		if c.Why = "it is a folder that can't be looked into, so that nothing in it is listed"; d.obeyed {
			c.Why = d.now.Unsaved
		}
		return c, true
	case d.now.Kind == manifest.KindDir && (d.old == nil || d.old.Kind == manifest.KindDir):
		return c, false
	case d.old != nil:
		c.Kind = "modified"
	}
	switch c.Size = d.now.Size; {
	case d.now.Kind == manifest.KindSymlink:
		c.Why = "it is a link, and links aren't kept"
	case d.now.Kind == manifest.KindDir:
		c.Why = "it is a folder in the place of a file or a link"
	case d.now.Kind != manifest.KindFile:
		c.Why = "it is neither a file nor a folder"
	case d.old != nil && d.old.Kind == manifest.KindDir:
		c.Why = "it is in the place of a folder"
	case d.now.Unsaved != "":
		c.Why = "it can't be read"
	case d.now.Size > maxKept:
		c.Why = fmt.Sprintf("it has more than %d MiB", maxKept>>20)
	case !d.content && d.old != nil && (d.old.Mode^d.now.Mode)&0o100 == 0:
		return c, false
	}
	return c, true
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
func (p Place) Keep(ctx context.Context, profile *policy.Profile, paths ...string) (api.HomeChanges, error) {
	if p.Upper == "" {
		return api.HomeChanges{}, errNotOwn
	}
	out, err := p.Changes(ctx, profile, paths...)
	if err != nil || len(out.Files) == 0 {
		return out, err
	}
	upper, err := Open(p.Upper)
	if err != nil {
		return out, err
	}
	defer upper.Close()
	into, err := Open(p.Folder)
	if err != nil {
		return out, err
	}
	defer into.Close()
	for i := range out.Files {
		if c := &out.Files[i]; c.Why == "" {
			c.Why = keep(upper, into, c)
			c.Kept = c.Why == ""
		}
	}
	return out, nil
}

// keep takes one change over, or says why it can't.
func keep(upper, into Dir, c *api.HomeChange) string {
	rel := string(c.Path)
	if into.linked(rel) {
		return "it can't be kept: in the profile's home something else than a folder is above it, such as a link"
	}
	if c.Kind == "deleted" {
		if err := into.Remove(rel); err != nil && !errors.Is(err, fs.ErrNotExist) { // else it was only brought
			return "it can't be kept: " + cause(err)
		}
		return ""
	}
	data, mode, err := upper.Read(rel, maxKept)
	if err == nil {
		err = into.Write(rel, data, mode&0o111 != 0)
	}
	if err != nil {
		return "it can't be kept: " + cause(err)
	}
	return ""
}

// cause is an error without its path, which is told already.
func cause(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return api.Escape(err.Error())
}
