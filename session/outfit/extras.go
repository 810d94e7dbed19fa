package outfit

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/runner"
	"stepbox/session/api"
)

// Extras are what a person asked of a sandbox as its session was started, besides what
// rules say. A session that goes on, or is forked, has them again.
type Extras struct {
	Dirs     []Dir `json:"dirs,omitempty"`
	NoCaches bool  `json:"no_caches,omitempty"` // the person's build caches aren't shown

	// Unasked says whether the agent is started with the arguments that turn off its own
	// questions; nil: the person hasn't said.
	Unasked *bool `json:"unasked,omitempty"`

	Publish []api.Publishing `json:"publish,omitempty"` // from the start on
}

// Dir is a folder besides the project that a sandbox has at its own path.
type Dir struct {
	Path     string `json:"path"` // absolute, and no link
	ReadOnly bool   `json:"read_only,omitempty"`
}

// given is where a folder was named that no rule mounts.
const given = "--add-dir"

// ParseDir reads DIR or DIR:ro, and follows links. Whether it may be shown is told by For.
func ParseDir(text, home string) (d Dir, err error) {
	name, readOnly := strings.CutSuffix(text, ":ro")
	bad := func(why string) (Dir, error) {
		return d, fmt.Errorf("cannot add the folder %q: %s; name one that is there, as DIR or DIR:ro", name, why)
	}
	if name == "" || !utf8.ValidString(name) {
		return bad("it has no name that can be kept")
	}
	if d.Path, err = filepath.Abs(Expand(name, home)); err == nil {
		d.Path, err = filepath.EvalSymlinks(d.Path)
	}
	d.ReadOnly = readOnly
	switch {
	case err != nil:
		return bad("it isn't there")
	case !isDir(d.Path):
		return bad("it isn't a folder")
	}
	return d, nil
}

// dropGone leaves out the folders that aren't there any more, as when a session goes on
// after long, and says which.
func (e *Extras) dropGone() (words []string) {
	there := e.Dirs[:0:0]
	for _, d := range e.Dirs {
		if isDir(d.Path) {
			there = append(there, d)
		} else {
			words = append(words, fmt.Sprintf("the folder %q isn't shown: it isn't there any more", d.Path))
		}
	}
	e.Dirs = there
	return words
}

// layer has the folders as a policy's mounts.
func (e Extras) layer() policy.Layer {
	l := policy.Layer{Name: given, Origin: policy.Given}
	for _, d := range e.Dirs {
		l.Mounts = append(l.Mounts, policy.Mount{Path: d.Path, Write: !d.ReadOnly, Where: policy.Where{Layer: given, File: given}})
	}
	return l
}

// dirs tell of mounts.
func dirs(mounts []runner.Bind) (out []api.Dir) {
	for _, m := range mounts {
		out = append(out, api.Dir{Path: m.Target, Write: m.Upper != ""})
	}
	return out
}

// Written lists what a session wrote to a folder that it has besides the project: at most
// so many paths, relative, a removed one with words behind it. The agent made the names
// and may be changing them: nothing is followed.
func Written(stateDir, path string, most int) (names []string, more bool) {
	root, err := os.OpenRoot(upperOf(stateDir, path))
	if err != nil {
		return nil, false // it has written nothing
	}
	defer root.Close()
	defer func() { slices.Sort(names) }()
	for dirs := []string{"."}; len(dirs) > 0; dirs = dirs[1:] {
		dir, err := root.OpenFile(dirs[0], os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
		if err != nil {
			more = true // it can't be looked at
			continue
		}
		entries, _ := dir.ReadDir(most + 1) // fewer are as good
		dir.Close()
		for _, e := range entries {
			if len(names) == most {
				return names, true
			}
			name := filepath.Join(dirs[0], e.Name())
			switch {
			case e.IsDir():
				dirs = append(dirs, name)
				continue
			case e.Type()&fs.ModeCharDevice != 0: // as overlayfs marks it
				name += " (removed)"
			}
			names = append(names, name)
		}
		if len(dirs) > most {
			return names, true
		}
	}
	return names, more
}
