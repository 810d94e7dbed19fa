package scratch

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/policy/git"
	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/files"
)

// maxOther bounds the files that were moved, perhaps, in bytes, 4 kB for each name among them.
const maxOther = 64 << 20

// carried is what leads to the commit that carriedOut makes.
const carried = "refs/carried"

// carriedOut is a commit that has, on top of a branch, what a plan and the working tree have of all
// that a tip changes; the branch itself if it has that.
func (a *apart) carriedOut(ctx context.Context, plan Shown, branch, tip, none string, plain []differs) (string, error) {
	all, err := a.touched(ctx, branch, tip, none, plain)
	c := &carrier{apart: a, plan: plan, planned: map[string]*manifest.Entry{}, room: maxOther}
	for _, d := range all {
		if err = cmp.Or(err, context.Cause(ctx)); err == nil {
			err = c.look(ctx, d)
		}
	}
	if c.lacks && err == nil {
		err = c.moved(ctx, branch, byPath(all))
	}
	filtered := a.attributed(ctx, c.unsure, "filter", "ident", "working-tree-encoding")
	c.have = slices.DeleteFunc(c.have, func(d differs) bool {
		if !slices.Contains(filtered, d.path) {
			return false
		}
		_, text, unread := c.read(ctx, c.planned[d.path], d.path)
		return unread != nil || asTip(d, text) == nil
	})
	if len(c.gone)+len(c.have) == 0 || err != nil {
		return branch, err
	}
	return carried, c.commit(ctx, strings.TrimPrefix(branch, none))
}

// touched lists all files that a tip changes as a branch has them before, and what else a merge does.
func (a *apart) touched(ctx context.Context, branch, tip, none string, plain []differs) (out []differs, err error) {
	bases, err := a.bases(ctx, branch, tip, none)
	all := map[string]differs{}
	for _, base := range bases {
		var changed []differs
		changed, err = a.trees(ctx, err, base, tip)
		for _, d := range changed {
			d.was, d.from = d.is, d.to // the branch has that as well, unless they differ
			all[d.path] = d
		}
	}
	between, err := a.trees(ctx, err, branch, tip)
	for _, d := range between {
		if _, is := all[d.path]; is {
			all[d.path] = d
		}
	}
	maps.Copy(all, byPath(plain))
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if isLocal(all[path]) {
			out = append(out, all[path])
		}
	}
	return out, err
}

// carrier makes such a commit: see git-fast-import(1).
type carrier struct {
	*apart
	plan    Shown
	planned map[string]*manifest.Entry // by path, what the plan writes
	have    []differs                  // files that are the plan's, or else those of the working tree
	unsure  []string                   // of those, what a filter may make the branch's
	gone    []string
	room    int64         // bytes of the working tree's other files that are still looked at
	lacks   bool          // it has not all that the tip changes: that may have gone elsewhere
	out     *bufio.Writer // an error stays until it is flushed
}

// look finds out what there is at a path.
func (c *carrier) look(ctx context.Context, d differs) error {
	in, shown := c.s.inProject(c.r, d.path)
	if shown {
		if is, err := c.writes(in, d); is || err != nil {
			return err
		}
	}
	switch {
	case shown && c.plan.Deletes(in):
		c.gone, c.lacks = append(c.gone, d.path), true
	case d.made():
		c.lacks = true
	default:
		c.lookAt(ctx, c.s.root(c.r), d)
	}
	return nil
}

// writes has a file be as the plan writes it, if it does.
func (c *carrier) writes(in string, d differs) (bool, error) {
	e, err := c.plan.Writes(in)
	if e == nil || err != nil {
		return false, err
	}
	c.planned[d.path] = e
	c.have, c.unsure = append(c.have, d), append(c.unsure, d.path)
	return true, nil
}

// moved adds the files that the plan and the working tree have and the branch hasn't: git may take
// some for others that are there no more, renamed.
func (c *carrier) moved(ctx context.Context, branch string, known map[string]differs) (err error) {
	root := c.s.root(c.r)
	for p := range c.plan.Paths {
		at, failure := filepath.Rel(root, filepath.Join(c.s.cfg.Workspace, p))
		if _, is := known[at]; is || failure != nil || c.nested(root, at) {
			continue
		}
		if _, err = c.writes(p, differs{path: at}); err != nil {
			return err
		}
	}
	for _, p := range c.gone {
		known[p] = differs{was: p} // it isn't looked at again
	}
	return c.untracked(ctx, root, branch, known)
}

// untracked does that of the working tree's, as far as git doesn't ignore them.
func (c *carrier) untracked(ctx context.Context, root, branch string, known map[string]differs) error {
	others, err := c.working(ctx, nil, "ls-files", "-z", "--full-name", "--others", "--exclude-standard", "--", ":/")
	staged, failure := c.working(ctx, nil, "diff-index", "-z", "--cached", "--name-only", "--diff-filter=A", branch, "--")
	for p := range strings.SplitSeq(string(others)+string(staged), "\x00") {
		if d, is := known[p]; c.planned[p] == nil && (!is || d.made()) {
			c.add(root, p)
		}
	}
	return cmp.Or(err, failure)
}

// add adds a file of the working tree's that the branch hasn't.
func (c *carrier) add(root, p string) {
	info, err := os.Lstat(filepath.Join(root, p))
	if err != nil || modeOf(info.Mode()) == "" || info.Size() > maxBlob {
		return
	}
	if takes := info.Size() + 4<<10; takes <= c.room {
		c.room -= takes
		c.have, c.unsure = append(c.have, differs{path: p}), append(c.unsure, p)
	}
}

// nested says whether a path is in a repository of its own within a working tree, or out of that.
func (c *carrier) nested(root, p string) bool {
	if !filepath.IsLocal(p) {
		return true
	}
	for p = path.Dir(p); p != "."; p = path.Dir(p) {
		if _, err := os.Lstat(filepath.Join(root, p, ".git")); err == nil {
			return true
		}
	}
	return false
}

// lookAt is that of a file of the branch's that no plan has anything of.
func (c *carrier) lookAt(ctx context.Context, root string, d differs) {
	info, err := os.Lstat(filepath.Join(root, d.path))
	switch {
	case err == nil && c.noted.untracks(root, d.path) && len(c.ignored(ctx, root, []string{d.path})) > 0, err == nil && modeOf(info.Mode()) == "", err != nil && c.noted.letGo(root, d.path):
		c.gone, c.lacks = append(c.gone, d.path), true
	case !c.noted.stands(root, d):
		c.have, c.unsure = append(c.have, d), append(c.unsure, d.path)
	}
}

// commit makes it, on top of another; of none if that is "".
func (c *carrier) commit(ctx context.Context, on string) error {
	file, err := os.Create(filepath.Join(c.dir, "import"))
	if err != nil {
		return err
	}
	defer file.Close()
	c.out = bufio.NewWriter(file)
	c.say("commit %s\ncommitter x <x> 0 +0000\ndata 0\n", carried)
	if on != "" {
		c.say("from %s\n", on)
	}
	for _, path := range c.gone {
		c.say("D %s\n", imported(path))
	}
	for _, d := range c.have {
		if err == nil {
			err = c.write(ctx, d)
		}
	}
	if err = cmp.Or(err, c.out.Flush()); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = c.git(ctx, file, "fast-import", "--quiet", "--force")
	}
	return err
}

func (c *carrier) say(format string, args ...any) { _, _ = fmt.Fprintf(c.out, format, args...) }

// write adds a file.
func (c *carrier) write(ctx context.Context, d differs) error {
	e := c.planned[d.path]
	if e != nil && e.Size > maxBlob {
		r, err := content.Open(ctx, files.Bodies{Store: c.s.cfg.Store}, e.Hash, e.Size)
		if err != nil {
			return err
		}
		defer r.Close()
		return c.inline(entryMode(e), d.path, r, e.Size)
	}
	mode, text, err := c.read(ctx, e, d.path)
	if err != nil {
		return err
	}
	text = c.asStored(ctx, d, text)
	return c.inline(mode, d.path, bytes.NewReader(text), int64(len(text)))
}

func (c *carrier) inline(mode, path string, r io.Reader, size int64) error {
	c.say("M %s inline %s\ndata %d\n", mode, imported(path), size)
	_, err := io.CopyN(c.out, r, size)
	return cmp.Or(err, c.out.WriteByte('\n'))
}

// read reads a file, or a link: what is planned, or else what the working tree has.
func (c *carrier) read(ctx context.Context, planned *manifest.Entry, path string) (mode string, text []byte, err error) {
	if planned != nil {
		text, err = c.text(ctx, planned)
		return entryMode(planned), text, err
	}
	return there(filepath.Join(c.s.root(c.r), path))
}

// asStored is a text as the tip has it, or else with the ends of lines that git stores where it writes
// others: those of the index, or of a file that isn't in it what attributes and settings say.
func (c *carrier) asStored(ctx context.Context, d differs, text []byte) []byte {
	if stored := asTip(d, text); stored != nil {
		return stored
	}
	if !bytes.Contains(text, []byte("\r\n")) {
		return text
	}
	said, err := c.working(ctx, nil, "ls-files", "--eol", "--", ":(top,literal)"+d.path)
	if bytes.HasPrefix(said, []byte("i/lf ")) || err == nil && len(said) == 0 && c.normalized(ctx, d.path) {
		return unixLines(text)
	}
	return text
}

// normalized says whether git stores a new text with its own ends of lines.
func (c *carrier) normalized(ctx context.Context, path string) bool {
	converts, _ := c.s.real(ctx, c.r, call{}, "config", "core.autocrlf") // it isn't set, or else git says so again
	return strings.TrimSpace(string(converts)) == "true" || strings.TrimSpace(string(converts)) == "input" ||
		len(c.attributed(ctx, []string{path}, "text", "eol")) > 0
}

// asTip is a content as a tip has it: itself, with other ends of lines, or what git-lfs keeps in its
// place, see https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md; nil if it has another.
func asTip(d differs, text []byte) []byte {
	name, _ := hex.DecodeString(d.is) // it is git's
	pointer := fmt.Appendf(nil, "version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n", sha256.Sum256(text), len(text))
	for _, as := range [][]byte{unixLines(text), text, pointer} {
		if git.Holds(as, name) {
			return as
		}
	}
	return nil
}

func unixLines(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }

// imported is a path as git-fast-import(1) reads it.
func imported(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}
