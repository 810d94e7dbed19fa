package scratch

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stepbox/policy/git"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
)

// What a merge of the agent's commits takes from a branch of the person's, or adds to it, is
// told by trees: that of the branch, and that which git makes of it when it merges, see merged.
// Where the agent has them checked out, all that the merge leaves otherwise than the plan does is
// told, see beyond. Of others the plan has nothing: there it is files that go, and neither the
// person let go of nor what is to be applied deletes, and what is put back to an earlier state.

// Bounds of a comparison.
const (
	maxPack    = 256 << 20 // bytes of commits, trees and what isn't large
	compareFor = 30 * time.Second
	maxNamed   = 3   // paths that are named of many
	maxName    = 100 // bytes of one
	maxDanger  = 4 << 10
)

// Shown says of a file of the project, relative, what a person is shown together with the
// commits.
type Shown struct {
	Deletes func(path string) bool

	// Writes is what a file becomes; nil if nothing writes it. Of a text that both changed, and of which
	// nobody said what becomes of it, it has both, and the session's where they meet.
	Writes func(path string) (*manifest.Entry, error)
	Paths  iter.Seq[string] // of what it writes
}

// losses is what a merge would take.
type losses struct{ over, left, otherwise, older, without, ignored, may []string }

// branch is what may be merged into.
type branch struct {
	hash, name string // no hash where there is no commit yet
	out        bool   // it is checked out
}

// compare says of each tip what its merge would take from the project's branches. What
// can't be told is said as well.
func (s *Scratch) compare(ctx context.Context, r *repository, state *manifest.Manifest, shown Shown, dir, pack string) {
	if len(r.tips) == 0 || shown.Deletes == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, compareFor)
	defer cancel()
	a := &apart{s: s, r: r, state: state, dir: filepath.Join(dir, "apart")}
	err := a.take(ctx, pack, filepath.Join(dir, "pack"))
	var branches []branch
	if err == nil {
		branches, err = s.branches(ctx, r)
	}
	for i := range r.tips {
		var said []string
		if t := &r.tips[i]; api.IsNotes(t.ref) {
			said, err = a.notes(ctx, t, err)
		} else {
			said, err = a.takes(ctx, shown, t, branches, err)
		}
		r.tips[i].danger = api.Escape(api.Trim(strings.Join(said, "; "), maxDanger))
	}
	_ = os.RemoveAll(a.dir) // it goes with the sandbox, anyway
}

// takes says what a tip's merge would take, unless something failed before, which stays said.
func (a *apart) takes(ctx context.Context, shown Shown, t *tip, branches []branch, err error) (said []string, failed error) {
	for _, b := range branches {
		if err == nil && (b.out || "refs/heads/"+b.name == t.ref) {
			var l losses
			l, err = a.losses(ctx, shown, b, t)
			said = append(said, l.words(b.name)...)
		}
	}
	if err != nil {
		said = append(said, "what its merge changes couldn't be compared with the project's branch: "+err.Error())
	}
	return said, err
}

func (l *losses) words(name string) (out []string) {
	for _, x := range []struct {
		paths []string
		does  string
	}{
		{l.over, "writes over %s that git has no copy of"},
		{l.left, "deletes %s that this plan doesn't"},
		{l.otherwise, "leaves %s otherwise than this plan"},
		{l.older, "puts %s back to what had been there before"},
		{l.without, "counts %s of other branches as merged and leaves them out"},
		{l.ignored, "has %s that git ignores there"},
		{l.may, "may change %s that both sides changed"},
	} {
		if n := len(x.paths); n > 0 {
			does := fmt.Sprintf(x.does, api.Counted(n, "file"))
			out = append(out, fmt.Sprintf("merged into %s it %s: %s", name, does, few(x.paths)))
		}
	}
	return out
}

// branches are those that the project's repository has, what is checked out first.
func (s *Scratch) branches(ctx context.Context, r *repository) (out []branch, err error) {
	list, err := s.real(ctx, r, call{}, "for-each-ref", "--format=%(objectname) %(HEAD)%(refname)", "refs/heads")
	head, failure := s.real(ctx, r, call{}, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	out = []branch{{name: "what is checked out", out: true}}
	if failure == nil { // else there is no commit yet
		out[0].hash = strings.TrimSpace(string(head))
	}
	for line := range strings.Lines(string(list)) {
		hash, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, checkedOut := strings.CutPrefix(ref, "*")
		name = strings.TrimPrefix(strings.TrimSpace(name), "refs/heads/")
		switch {
		case checkedOut:
			out[0].name = name
		default:
			out = append(out, branch{hash: hash, name: name})
		}
	}
	return out, err
}

// losses compares a tip with a branch.
func (a *apart) losses(ctx context.Context, shown Shown, b branch, t *tip) (l losses, err error) {
	none := hex.EncodeToString(git.Object("tree", 0, len(t.hash)/2).Sum(nil))
	b.hash = cmp.Or(b.hash, none)
	list, may, err := a.merged(ctx, b, t.hash, none)
	plain, planned := list, b.out && t.head
	if planned && err == nil {
		list, may, err = a.beyond(ctx, shown, b, t.hash, none, plain)
	}
	if err != nil {
		return l, err
	}
	l.may = may
	written := a.deleted(&l, shown, b, list)
	if b.out {
		err = a.checkedOut(ctx, &l, b, t.hash, none, plain)
	}
	if planned && err == nil {
		return l, a.others(ctx, &l, shown, written)
	}
	if b.hash != none && err == nil {
		l.older, err = a.older(ctx, shown, b.hash, written)
	}
	return l, err
}

// checkedOut notes what a merge of a tip into what the person has checked out does beside what it changes.
func (a *apart) checkedOut(ctx context.Context, l *losses, b branch, tip, none string, plain []differs) (err error) {
	list := slices.Clone(plain)
	for i, d := range list {
		if !d.gone() && a.noted.untracks(a.s.root(a.r), d.path) {
			list[i].was = "" // it is the person's alone by then
		}
	}
	if l.over, err = a.overwritten(ctx, b.hash, tip, list); err == nil && b.hash != none {
		l.without, err = a.without(ctx, b, tip, none)
	}
	return err
}

// without lists what the person's other branches have, a tip counts as merged and would have if it were
// merged once more: nothing else brings that, as after a merge with -s ours, or one that was reverted.
func (a *apart) without(ctx context.Context, b branch, tip, none string) (out []string, err error) {
	refs, err := a.s.real(ctx, a.r, call{}, "for-each-ref", "--format=^%(objectname)", "refs/heads", "refs/remotes")
	var tops, merged []byte
	if err == nil {
		tops, err = a.git(ctx, strings.NewReader(tip+"\n"+string(refs)), "rev-list", "--boundary", "--stdin")
	}
	if err == nil {
		merged, err = a.git(ctx, nil, "rev-list", tip, "^"+b.hash)
	}
	for line := range strings.Lines(string(tops)) {
		top, theirs := strings.CutPrefix(line, "-")
		if !theirs || !strings.Contains(string(merged), top) || err != nil {
			continue
		}
		var list []differs
		list, err = a.again(ctx, b, tip, strings.TrimSpace(top), none)
		for _, d := range list {
			if !slices.Contains(out, d.path) {
				out = append(out, d.path)
			}
		}
	}
	slices.Sort(out)
	return out, err
}

// again lists what a merge of some commits would change in a tip if that hadn't merged them, but for what
// git would ask about, which was answered, and files that it has elsewhere.
func (a *apart) again(ctx context.Context, b branch, tip, top, none string) ([]differs, error) {
	bases, err := a.bases(ctx, b.hash, top, none)
	files, failure := a.git(ctx, nil, "ls-tree", "-r", tip)
	if err = cmp.Or(err, failure); err != nil {
		return nil, err
	}
	commit := []string{"-c", "user.name=x", "-c", "user.email=x", "commit-tree", "-m", "x", tip + "^{tree}"}
	if bases[0] != none {
		commit = append(commit, "-p", bases[0])
	}
	made, err := a.git(ctx, nil, commit...)
	if err != nil {
		return nil, err
	}
	list, _, err := a.merged(ctx, branch{hash: strings.TrimSpace(string(made)), name: b.name}, top, none)
	if err != nil {
		return nil, err
	}
	texts, err := a.blobs(ctx, slices.DeleteFunc(slices.Clone(list), func(d differs) bool { return !isLocal(d) }))
	return slices.DeleteFunc(list, func(d differs) bool {
		if d.made() {
			return d.asked || strings.Contains(string(files), d.is)
		}
		return isLocal(d) && d.to == d.from && answered(texts[d.is]) == texts[d.was]
	}), err
}

// answered is a text in which git asks with what there had been instead.
func answered(text string) string {
	var out strings.Builder
	theirs := false
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "<<<<<<< "), strings.HasPrefix(line, ">>>>>>> "):
			theirs = false
		case line == "=======\n":
			theirs = true
		case !theirs:
			out.WriteString(line)
		}
	}
	return out.String()
}

// notes says which of the person's notes a merge of the agent's takes or changes unasked, unless
// something failed before.
func (a *apart) notes(ctx context.Context, t *tip, failed error) (said []string, err error) {
	none := hex.EncodeToString(git.Object("tree", 0, len(t.hash)/2).Sum(nil))
	hash, err := a.s.real(ctx, a.r, call{}, "rev-parse", "--verify", "--quiet", t.ref+"^{commit}")
	if failed != nil || exited(err, 1) {
		return nil, failed
	}
	var list []differs
	if err == nil {
		list, _, err = a.merged(ctx, branch{hash: strings.TrimSpace(string(hash))}, t.hash, none)
	}
	strategy, _ := a.s.real(ctx, a.r, call{}, "config", "--get-regexp", `^notes\.(.*\.)?mergestrategy$`) // none is set, or else git says so again
	var names []string
	for _, d := range list {
		if (len(strategy) > 0 || !d.asked) && !d.made() {
			names = append(names, api.Trim(strings.ReplaceAll(d.path, "/", ""), 12))
		}
	}
	if len(names) > 0 {
		said = []string{fmt.Sprintf("merged into yours it changes %s: %s", api.Counted(len(names), "note"), few(names))}
	}
	return said, err
}

// few names some of many; of a long name its end.
func few(names []string) string {
	var out []string
	for _, name := range names[:min(len(names), maxNamed)] {
		if cut := len(name) - maxName; cut > 0 {
			name = "…" + name[cut:]
		}
		out = append(out, name)
	}
	if n := len(names) - maxNamed; n > 0 {
		return strings.Join(out, ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(out, ", ")
}

// deleted notes the files that a merge deletes unasked, unless what is shown beside it deletes them,
// or the person has; and lists those that it writes.
func (a *apart) deleted(l *losses, plan Shown, b branch, list []differs) (written []differs) {
	for _, d := range list {
		in, shown := a.s.inProject(a.r, d.path)
		switch {
		case d.asked:
		case !d.gone():
			written = append(written, d)
		case shown && plan.Deletes(in), b.out && a.noted.letGo(a.s.root(a.r), d.path):
		default:
			l.left = append(l.left, d.path)
		}
	}
	return written
}

// older are the paths at which a tip has what an earlier commit of the branch had there, the
// tip's own as they were picked among them: a content, a submodule's commit, or whether it may
// be run; but what is shown.
func (a *apart) older(ctx context.Context, plan Shown, branch string, written []differs) (out []string, err error) {
	had, paths, err := a.known(ctx, written)
	if len(had) == 0 || err != nil {
		return nil, err
	}
	commits, err := a.s.real(ctx, a.r, call{
		in: strings.NewReader(branch + "\n--\n" + paths),
	}, "rev-list", "--full-history", "--stdin")
	if err != nil {
		return nil, err
	}
	changes, err := a.changes(ctx, commits, "-m") // a merge may have more than both sides had
	for _, c := range changes {
		if d, asked := had[c.path]; asked && (d.back(c.from, c.was) || d.back(c.to, c.is)) {
			delete(had, c.path)
			if !a.shows(ctx, plan, d) {
				out = append(out, c.path)
			}
		}
	}
	slices.Sort(out)
	return out, err
}

// known are the differences, by path, that may not be new, and those paths by line: the
// project's repository has the blob as well, or it isn't the content.
func (a *apart) known(ctx context.Context, written []differs) (had map[string]differs, paths string, err error) {
	var ask strings.Builder
	for _, d := range written {
		ask.WriteString(d.is + "\n")
	}
	kinds, err := a.s.real(ctx, a.r, call{in: strings.NewReader(ask.String())}, "cat-file", "--batch-check=%(objecttype)")
	had = map[string]differs{}
	for i, kind := range strings.Split(string(kinds), "\n") { // a line each, and nothing after the last
		if i == len(written) || err != nil {
			break
		}
		if d := written[i]; (kind == "blob" || d.to == modeSubmodule || d.to != d.from) && filepath.IsLocal(d.path) {
			had[d.path] = d
			paths += onLines(d)
		}
	}
	return had, paths, err
}
