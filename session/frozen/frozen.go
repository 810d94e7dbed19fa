// Package frozen has what git is in a session: the repositories of its project as they
// were when it began. A project is an overlay over the host's folder, and the host's git
// goes on; were a repository's folder made of both, the agent's index would be compared
// with the host's branches, and what the one has and the other hasn't would be committed
// as deleted.
//
// So the session has a layer of its own in front of the project: each repository's whole
// folder, which hides the host's. Files that git writes in place are copied; those that
// it only replaces (references, the object store) get another name there, a hard link.
// Whatever becomes of the host's objects, by gc, prune or repack, those of the session
// stay for as long as its folder does, and go with it.
//
// The layer is written before the agent runs and never again but between two runs of it.
// The agent sees it through the overlay and can't write it. Functions are safe for
// concurrent use on different folders.
package frozen

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/policy/git"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// Git is the layer of one session.
type Git struct {
	Project      string
	Folder       string   // the session's own
	Repositories []string // in the project, relative: folders named .git, and bare ones
	Outer        string   // the folder of the project's repository outside of it; "" for none
	At           string   // the working tree's own folder in that, relative
}

// Taken is what is known of a layer beside its files.
type Taken struct {
	Run      int      `json:"run,omitempty"`
	Redacted []string `json:"redacted,omitempty"` // files of the project that are shown without their secrets
	Hidden   []string `json:"hidden,omitempty"`   // settings of the project that can't be read
	Stores   []Store  `json:"stores,omitempty"`   // object stores that couldn't be linked
	From     string   `json:"from,omitempty"`     // Git's Outer
	FromAt   string   `json:"fromAt,omitempty"`   // Git's At
	Borrows  []string `json:"borrows,omitempty"`  // object stores that others look in, and that aren't shown
	NoGit    string   `json:"noGit,omitempty"`    // why the repository outside of the project isn't shown
}

// Store is an object store of the host's that is shown as it is, at a place of its own.
type Store struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Kept   bool   `json:"kept,omitempty"` // there is a copy of it, too
}

// Layer is the folder that stands in front of the project's.
func Layer(folder string) string { return filepath.Join(folder, "git", "project") }

// OuterLayer is what is shown in place of an outer repository's folder.
func OuterLayer(folder string) string { return filepath.Join(folder, "git", "outer") }

func note(folder string) string { return filepath.Join(folder, "git", "taken.json") }

// Restored is the folder of those files of the project that the session has as they were
// though the host's are others by now.
func Restored(folder string) string { return filepath.Join(folder, "git", "restored") }

// Beyond finds the repository outside of the project: where it is or, if the project has
// none any more, where what was taken is from.
func (g *Git) Beyond(t Taken) (err error) {
	g.Outer, err = git.Outer(g.Project)
	_, metadata := git.Above(g.Project)
	if metadata == "" && exists(t.From) {
		g.Outer, g.At = t.From, t.FromAt
	} else if g.Outer != "" {
		g.At, _ = filepath.Rel(g.Outer, metadata) // Outer is metadata or above it
	}
	return err
}

// Gone says whether the project has its repository outside no more, as after git worktree
// prune. What was taken of it is all that there is then.
func (g Git) Gone() bool {
	_, metadata := git.Above(g.Project)
	return g.Outer != "" && metadata == ""
}

// Of says where a folder of the host's that belongs to a repository is as the session has it.
func (g Git) Of(dir string) string {
	for host, ours := range map[string]string{g.Outer: OuterLayer(g.Folder), g.Project: Layer(g.Folder)} {
		rel, err := filepath.Rel(host, dir)
		if host == "" || err != nil || !filepath.IsLocal(rel) {
			continue
		}
		if frozen := filepath.Join(ours, rel); exists(filepath.Join(frozen, "HEAD")) {
			return frozen
		}
	}
	return dir
}

// Load gives what was taken into a folder; ok is false when nothing was.
func Load(folder string) (t Taken, ok bool, err error) {
	body, err := os.ReadFile(note(folder))
	if errors.Is(err, fs.ErrNotExist) {
		body, err = os.ReadFile(filepath.Join(before(folder), "taken.json"))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return t, false, nil
	}
	if err == nil {
		err = json.Unmarshal(body, &t)
	}
	if err != nil {
		return t, false, fmt.Errorf("cannot read what git was when the session began: %w", err)
	}
	return t, true, nil
}

// Take takes the repositories as they are now. What was taken before is kept aside until
// Settle. No sandbox may have the layer mounted. Run is how often the session was resumed by then.
func (g Git) Take(run int) (t Taken, err error) {
	if err = g.aside(); err != nil {
		return t, fmt.Errorf("cannot put aside what git was before: %w", err)
	}
	for range 5 {
		if t, err = g.take(run); err == nil || !errors.Is(err, fs.ErrNotExist) {
			break // else git was at work there just then
		}
	}
	if err != nil {
		return t, fmt.Errorf("cannot take over the project's git folder: %w", err)
	}
	return t, nil
}

func (g Git) take(run int) (t Taken, err error) {
	t.Run, t.From, t.FromAt = run, g.Outer, g.At
	if err := g.clear(); err != nil {
		return t, err
	}
	c := &copier{names: maxNames, bytes: maxCopied, stored: maxStored}
	for _, at := range g.Repositories {
		if filepath.Base(at) != ".git" {
			continue // a bare one: nobody works there, and it is shown as it is
		}
		if err := g.repository(c, &t, filepath.Join(g.Project, at), g.in(at)); err != nil {
			return t, err
		}
		if err := unix.Setxattr(g.in(at), inode.Opaque, []byte("y"), 0); err != nil {
			return t, fmt.Errorf("cannot hide the host's: %w", err)
		}
	}
	if t.Redacted, t.Hidden, err = git.Serve(g.Project, Layer(g.Folder), g.Repositories); err != nil {
		return t, err
	}
	for _, rel := range t.Hidden { // else it would be here with its secrets
		if err := os.Remove(g.in(rel)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return t, err
		}
	}
	if err := g.looks(); err != nil {
		return t, err
	}
	if err := g.outer(c, &t); errors.Is(err, fs.ErrNotExist) || errors.Is(err, errBusy) {
		return t, err
	} else if err != nil {
		t.NoGit = err.Error()
	}
	body, err := json.Marshal(t)
	if err != nil {
		return t, err
	}
	return t, os.WriteFile(note(g.Folder), body, 0o600)
}

// Host is the folder of a repository, given from the project, or "" for the one outside of it.
func (g Git) Host(repository string) string {
	if repository == "" {
		return g.Outer
	}
	return filepath.Join(g.Project, repository)
}

// in is a path of the project's in the layer.
func (g Git) in(rel string) string { return filepath.Join(Layer(g.Folder), rel) }

// clear empties the layers; their own folders stay, since they may be open.
func (g Git) clear() error {
	if err := os.Remove(note(g.Folder)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, layer := range []string{Layer(g.Folder), OuterLayer(g.Folder), Restored(g.Folder)} {
		if err := empty(layer); err != nil {
			return err
		}
	}
	return nil
}

// empty makes a folder, or removes all that is in it.
func empty(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if err == nil {
			err = remove(filepath.Join(folder, e.Name()))
		}
	}
	return err
}

// remove removes folders too that can't be written, as the person's may be.
func remove(path string) error {
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(p, 0o700)
		}
		return err
	})
	return os.RemoveAll(path)
}

// Fork gives a session's folder what another's has.
func Fork(from, to string) error {
	c := &copier{names: 2 * maxNames, bytes: maxCopied, layer: true}
	err := os.MkdirAll(to, 0o700)
	if err == nil {
		_, err = c.folder(filepath.Join(from, "git"), filepath.Join(to, "git"), linked)
	}
	if err == nil {
		err = Git{Folder: to}.Recover()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot take over what git is in the other session: %w", err)
	}
	return nil
}

// repository takes one repository's folder, its object stores last.
func (g Git) repository(c *copier, t *Taken, from, to string) error {
	rest, err := c.ofOneTime(from, to)
	if err != nil {
		return fmt.Errorf("%q: %w", from, err)
	}
	for ; len(rest) > 0; rest = rest[1:] {
		source, target := filepath.Join(from, rest[0].path), filepath.Join(to, rest[0].path)
		if rest[0].as == objects {
			t.Borrows = append(t.Borrows, g.borrows(source)...)
		}
		more, err := c.folder(source, target, rest[0].as)
		if errors.Is(err, errApart) {
			err = t.share(c, source, target)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", source, err)
		}
		for _, l := range more {
			rest = append(rest, later{filepath.Join(rest[0].path, l.path), l.as})
		}
	}
	return nil
}

// errBusy says that what is to be taken didn't stand still.
var errBusy = errors.New("git is at work there: wait until it is done, and try again")

// ofOneTime copies what git writes of a repository. Git does that one after the other: with a new
// HEAD and an old index, what is new would be committed as deleted.
func (c *copier) ofOneTime(from, to string) (rest []later, err error) {
	start := *c
	start.seen, start.locked = nil, false
	err = still(func() (moved, locked bool, err error) {
		*c = start
		if err := empty(to); err != nil {
			return false, false, err
		}
		rest, err = c.folder(from, to, copied)
		return c.moved(), c.locked, err
	})
	return rest, err
}

// still looks until nothing moved meanwhile. A lock may be about to be let go of, or else was left
// by a crash, or waits for a person's words: then nothing moves.
func still(look func() (moved, locked bool, err error)) error {
	for try := range tries {
		moved, locked, err := look()
		if err != nil || !moved && (!locked || try >= patience) {
			return err
		}
		time.Sleep(pause)
	}
	return errBusy
}

// How often what git writes is copied until it stands still, how often again only since there
// is a lock, and how long that waits in between.
const (
	tries    = 25
	patience = 4
	pause    = 20 * time.Millisecond
)

// borrows are the object stores outside of what is shown in which git looks for what isn't
// in one: see gitrepository-layout(5), alternates. A file that came with the project may
// name any folder.
func (g Git) borrows(store string) (out []string) {
	text, _ := git.ReadFile(filepath.Join(store, "info", "alternates"), 1<<16) // mostly there is none
	for line := range strings.Lines(string(text)) {
		at := strings.TrimSpace(line)
		if at == "" || at[0] == '#' {
			continue
		}
		if !filepath.IsAbs(at) {
			at = filepath.Join(store, at)
		}
		at = filepath.Clean(at)
		if !manifest.Within(at, g.Project) && (g.Outer == "" || !manifest.Within(at, g.Outer)) {
			out = append(out, at)
		}
	}
	return out
}

// share has an object store that can't be linked be shown at a place of its own, where
// git looks for what isn't in its own: see gitrepository-layout(5), alternates. There is a
// copy of it beside that unless it is too large: what the host throws away stays there.
func (t *Taken) share(c *copier, source, target string) error {
	if err := remove(target); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(target, "info"), 0o755); err != nil {
		return err
	}
	s := Store{Source: source, Target: fmt.Sprintf("/run/stepbox-objects/%d", len(t.Stores))}
	if err := os.WriteFile(filepath.Join(target, "info", "alternates"), []byte(s.Target+"\n"), 0o644); err != nil {
		return err
	}
	if left := c.stored - size(source); left >= 0 {
		entries, err := os.ReadDir(source)
		copies := &copier{names: c.names, bytes: c.stored}
		for _, e := range entries {
			if err == nil && e.IsDir() && e.Name() != "info" {
				_, err = copies.folder(filepath.Join(source, e.Name()), filepath.Join(target, e.Name()), copied)
			}
		}
		if err != nil {
			return err
		}
		c.stored, s.Kept = left, true
	}
	t.Stores = append(t.Stores, s)
	return nil
}

// Lost are the object stores of which the session keeps nothing that the host throws away.
func (t *Taken) Lost() (sources []string) {
	for _, s := range t.Stores {
		if !s.Kept {
			sources = append(sources, s.Source)
		}
	}
	return sources
}

// looks has the folders above repositories look like the project's.
func (g Git) looks() error {
	for _, at := range g.Repositories {
		for dir := filepath.Dir(at); dir != "."; dir = filepath.Dir(dir) {
			err := inode.Look(g.in(dir), filepath.Join(g.Project, dir))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// outer takes the folder of a repository outside of the project.
func (g Git) outer(c *copier, t *Taken) error {
	if g.Outer == "" {
		return nil
	}
	to := OuterLayer(g.Folder)
	if err := g.repository(c, t, g.Outer, to); err != nil {
		return err
	}
	return git.ServeOuter(g.Project, g.Outer, to)
}
