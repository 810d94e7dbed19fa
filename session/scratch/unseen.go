package scratch

import (
	"context"
	"encoding/hex"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"

	"stepbox/policy/git"
)

// A merge may write more than its commits' author did: what the person had in the working tree
// and threw away since, what they took off the branch, or the session's file without what they
// have changed there. No plan has that.

// here notes what a merge does to the files that the project has.
func (a *apart) here(ctx context.Context, l *losses, shown Shown, b branch, t *tip, list, written []differs) (err error) {
	if l.over, err = a.overwritten(ctx, b.hash, t.hash, list); err == nil && t.head {
		err = a.unseen(ctx, l, shown, t, written)
	}
	return err
}

// unseen notes what a merge of commits that the agent has checked out writes unasked while the
// plan doesn't; and what the project has as the commits have it, but git isn't to know of.
func (a *apart) unseen(ctx context.Context, l *losses, plan Shown, t *tip, written []differs) error {
	root, said := a.s.root(a.r), slices.Concat(l.over, l.bare, l.older)
	var there, filtered []string
	for _, d := range written {
		// Git writes no path that leads out, and a submodule's commit is none.
		if !filepath.IsLocal(d.path) || d.to == modeSubmodule || slices.Contains(said, d.path) || a.planned(ctx, l, plan, t, d) {
			continue
		}
		is, sure := a.noted.stands(root, d)
		switch {
		case is:
			l.unseen = append(l.unseen, d.path)
		case !sure:
			filtered = append(filtered, d.path)
		case d.made() && sameFile(filepath.Join(root, d.path), d.is):
			there = append(there, d.path)
		}
	}
	l.unseen = append(l.unseen, a.attributed(ctx, filtered, "filter", "ident", "working-tree-encoding")...)
	slices.Sort(l.unseen)
	l.ignored = a.ignored(ctx, root, there)
	return context.Cause(ctx)
}

// planned says whether a plan writes a file as a merge leaves it, or as the session has it. Of
// one that both changed, it is what the plan would make of what was committed that counts. It notes what of the session's own file the merge takes all the same.
func (a *apart) planned(ctx context.Context, l *losses, plan Shown, t *tip, d differs) (is bool) {
	in, shown := a.s.inProject(a.r, d.path)
	if !shown {
		return false
	}
	is, with := plan.Writes(in)
	if is && with != nil {
		committed, err := a.git(ctx, nil, "cat-file", "blob", t.hash+":"+d.path)
		name, _ := hex.DecodeString(d.is) // it is git's
		is = err == nil && with(committed, func(text []byte) bool { return git.Holds(text, name) })
	}
	if is && a.keeps(ctx, in, d) {
		l.kept = append(l.kept, d.path)
	}
	return is
}

// noted is what the index of the person's working tree notes of its files; read when asked.
type noted struct {
	entries map[string]git.Entry // nil where it can't be read
	written git.Stamp
	read    bool
}

// stands says whether a file is what git takes for the branch's, which a merge writes over
// unasked; it refuses to where there is another. That isn't sure if a filter may make it the same.
func (n *noted) stands(root string, d differs) (is, sure bool) {
	file := filepath.Join(root, d.path)
	info, err := os.Lstat(file)
	if err != nil || d.made() {
		return err != nil, true
	}
	n.load(root)
	e := n.entries[d.path]
	switch size := info.Size(); {
	case modeOf(info.Mode()) != d.from, n.entries != nil && hex.EncodeToString(e.Hash) != d.was:
		return false, true
	case e.Size == uint32(size) && n.unchanged(e, info), size > maxBlob:
		return true, true
	case e.Size != uint32(size) && e.Size != 0: // git doesn't read it, either
		return false, true
	}
	is = sameFile(file, d.was)
	return is, is
}

// letGo says whether a file that the branch has isn't there since the person let go of it, not
// since git was told not to have it there, or nothing was checked out.
func (n *noted) letGo(root, p string) bool {
	_, err := os.Lstat(filepath.Join(root, p))
	if n.load(root); err == nil || n.entries == nil || n.written == (git.Stamp{}) {
		return false
	}
	for at := p; at != "."; at = path.Dir(at) {
		if n.entries[at].Sparse || n.entries[at+"/"].Sparse {
			return false
		}
	}
	return true
}

func (n *noted) load(root string) {
	if n.read {
		return
	}
	n.read = true
	all, written, err := git.Open(root, git.Person{}).Index()
	if err != nil {
		return
	}
	n.entries, n.written = make(map[string]git.Entry, len(all)), written
	for _, e := range all {
		n.entries[e.Path] = e
	}
}

// unchanged says whether a file's times are those that git noted before it wrote the index.
func (n *noted) unchanged(e git.Entry, info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	at := git.Stamp{Sec: uint32(info.ModTime().Unix()), Nsec: uint32(info.ModTime().Nanosecond())}
	return ok && e.MTime == at && e.CTime == git.Stamp{Sec: uint32(st.Ctim.Sec), Nsec: uint32(st.Ctim.Nsec)} &&
		(at.Sec < n.written.Sec || at.Sec == n.written.Sec && at.Nsec < n.written.Nsec)
}

// sameFile says whether a file has the content that git names so, or that with the ends of
// lines that other systems have. Behind a filter or an encoding it never has.
func sameFile(file, hash string) bool {
	if info, err := os.Lstat(file); err != nil || sameBlob(file, info, hash) {
		return err == nil
	}
	text, err := git.ReadFile(file, maxBlob)
	name, _ := hex.DecodeString(hash) // it is git's
	return err == nil && git.Holds(text, name)
}
