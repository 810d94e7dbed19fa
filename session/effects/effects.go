// Package effects says in words and numbers what an action did to the files of
// its project: what it deleted and whether git has it, what it made executable,
// what will run by itself. It goes by the changes and by what is recorded of the
// project, never by what the action says of itself.
//
// [Of] is a function of its input alone and may be called from any goroutine.
// All that it looks at is hostile: contents are read bounded, and what can't be
// read is said nothing of. Names are escaped.
package effects

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/base"
)

// Input is an action's changes, and what is known of the project.
type Input struct {
	Changed  []diff.Change
	More     int                // changes beyond those
	From, To *manifest.Manifest // between which they lie
	Base     *base.Record       // what the project was when the session started; nil: not known, and nothing is said to be lost
	Project  string             // the folder, absolute
	Folders  []string           // absolute, in which the action ran; none for an edit
	Ignored  func(path string, dir bool) bool
	// Open reads a side of a change whole, if it is at most so long.
	Open func(f *diff.File, most int64) ([]byte, bool)

	left int64 // bytes that may still be read
}

// Bounds of what is read and said.
const (
	maxFile    = 8 << 20  // bytes of one content
	maxRead    = 64 << 20 // of all
	maxCompare = 1 << 20  // of one that is compared line by line
	maxPhrases = 5
	maxName    = 32 // columns of a name, about
)

// Read reads a side of a change, while there is budget for it.
func (in *Input) Read(f *diff.File) ([]byte, bool) { return in.read(f, maxFile) }

func (in *Input) read(f *diff.File, most int64) ([]byte, bool) {
	if f == nil || f.Kind != manifest.KindFile || f.Size > min(most, in.left) {
		return nil, false
	}
	in.left -= f.Size
	return in.Open(f, most)
}

// at reads a file of a state, if the session wrote it.
func (in *Input) at(m *manifest.Manifest, p string) ([]byte, bool) {
	e := m.Lookup(p)
	if e.Absent() {
		return nil, false
	}
	return in.Read(&diff.File{Entry: *e, Path: p})
}

// Of says what an action did; nil: nothing.
func Of(in Input) *api.Effects {
	if len(in.Changed) == 0 {
		return nil
	}
	in.left = maxRead
	s := &summary{in: &in, kept: repositories{in: &in, indexes: map[string][]git.Entry{}}, ignored: map[string]bool{}}
	internals := map[string][]diff.Change{} // by the folder that .git is in
	for _, c := range in.Changed {
		if repo, ok := inGit(c.Path); ok {
			internals[repo] = append(internals[repo], c)
		} else {
			s.change(c)
		}
	}
	for _, repo := range slices.Sorted(maps.Keys(internals)) {
		s.repository(repo, internals[repo])
	}
	s.say()
	slices.SortStableFunc(s.phrases, func(a, b phrase) int { return cmp.Compare(a.weight, b.weight) })
	for _, p := range s.phrases[:min(len(s.phrases), maxPhrases)] {
		s.out.Words = append(s.out.Words, p.text)
	}
	return &s.out
}

// inGit says which folder's repository keeps a path, if it is in a .git.
func inGit(p string) (folder string, ok bool) {
	for i, rest := 0, p; ; {
		name, after, more := strings.Cut(rest, "/")
		if name == ".git" {
			return strings.TrimSuffix(p[:i], "/"), true
		}
		if !more {
			return "", false
		}
		i, rest = i+len(name)+1, after
	}
}

// phrase is one of the words; lighter ones come later.
type phrase struct {
	weight int
	text   string
}

// Weights of phrases, the weightiest first.
const (
	loses = iota
	reverts
	runs
	history
	leads
	opens
	moves
	executes
	touches
	outside
	minor
	plain
)

// group is what happened to some files.
type group struct {
	names []string
	lost  int // of them: that git hasn't got
	tests int
}

func (g *group) add(p string, lost bool) {
	g.names = append(g.names, p)
	if lost {
		g.lost++
	}
	if IsTest(p) {
		g.tests++
	}
}

// summary is the work of one Of.
type summary struct {
	in      *Input
	out     api.Effects
	kept    repositories
	ignored map[string]bool // folders that were asked about
	phrases []phrase

	deleted, ignoredGone, unknown, reverted, emptied, overwritten, replaced, moved, renamed     group
	executable, open, setid, links, created, changed, tests, locks, ignoredMade, selfRun, apart group
	newExecutable, uncertain                                                                    int
	kinds                                                                                       map[string]int // of selfRun
	stashed                                                                                     bool
}

func (s *summary) add(weight int, format string, args ...any) {
	s.phrases = append(s.phrases, phrase{weight, fmt.Sprintf(format, args...)})
}

// isIgnored asks about folders once: whatever is in an ignored one is ignored.
func (s *summary) isIgnored(p string, dir bool) bool {
	if s.in.Ignored == nil {
		return false
	}
	parent := path.Dir(p)
	whole, asked := s.ignored[parent]
	if !asked {
		whole = parent != "." && s.isIgnored(parent, true)
		s.ignored[parent] = whole
	}
	return whole || s.in.Ignored(p, dir)
}

// change sorts one change in.
func (s *summary) change(c diff.Change) {
	dir := c.Kind() == manifest.KindDir
	ignored := s.isIgnored(c.Path, dir)
	if ignored {
		s.out.Ignored++
	}
	s.modes(c)
	if dir && c.Status != diff.Retyped {
		if c.Status == diff.Deleted && c.Old.Unsaved != "" {
			s.unknown.add(c.Path, false)
		}
		return
	}
	if !ignored {
		s.where(c)
	}
	if c.New != nil && c.New.Kind == manifest.KindSymlink && (c.Status != diff.Modified || c.Content) && s.leadsOut(c.Path, c.New.Target) {
		s.links.add(c.Path, false)
	}
	switch c.Status {
	case diff.Added:
		s.out.Created++
		s.made(c, ignored)
	case diff.Deleted:
		s.out.Deleted++
		if lost := s.loses(c, ignored); ignored {
			s.ignoredGone.add(c.Path, lost)
		} else {
			s.deleted.add(c.Path, lost)
		}
	case diff.Renamed:
		s.out.Renamed++
		if path.Dir(c.From) == path.Dir(c.Path) {
			s.renamed.add(c.From, false)
		} else {
			s.moved.add(c.From, false)
		}
		s.runsItself(c)
	case diff.Retyped:
		s.out.Modified++
		s.replaced.add(c.Path, s.loses(c, ignored))
	default:
		s.out.Modified++
		if c.Content {
			s.wrote(c, ignored)
		}
	}
}

// loses says whether what a change took away is nowhere but in the session's
// record, and counts it. What programs make again is no loss.
func (s *summary) loses(c diff.Change, ignored bool) bool {
	if s.in.Base == nil || c.Old == nil || c.Old.Kind != manifest.KindFile && c.Old.Kind != manifest.KindSymlink || c.Old.Kind == manifest.KindFile && c.Old.Size == 0 {
		return false
	}
	if ignored && isDerived(c.Path) || s.kept.committed(c.Path, c.Old, s.in.From, s.in.From, s.in.To) {
		return false
	}
	s.out.Uncommitted++
	s.out.Grave = true
	return true
}

// made is about a new file.
func (s *summary) made(c diff.Change, ignored bool) {
	switch {
	case s.runsItself(c):
	case ignored:
		s.ignoredMade.add(c.Path, false)
	case IsLock(c.Path):
		s.locks.add(c.Path, false)
	default:
		s.created.add(c.Path, false)
	}
}

// wrote is about a file whose content changed.
func (s *summary) wrote(c diff.Change, ignored bool) {
	switch {
	case c.New.Kind == manifest.KindFile && c.New.Size == 0 && c.Old.Size > 0:
		s.emptied.add(c.Path, s.loses(c, ignored))
	case !ignored && s.kept.committed(c.Path, c.New, s.in.To, s.in.From):
		s.reverted.add(c.Path, s.loses(c, ignored))
	case s.runsItself(c):
	case ignored:
		s.ignoredMade.add(c.Path, false)
	case s.whole(c):
		s.overwritten.add(c.Path, s.loses(c, ignored))
	case IsLock(c.Path):
		s.locks.add(c.Path, false)
	case IsTest(c.Path):
		s.tests.add(c.Path, false)
	default:
		s.changed.add(c.Path, false)
	}
}

// whole says whether a change left nothing of what the file was.
func (s *summary) whole(c diff.Change) bool {
	if c.Old.Kind != manifest.KindFile {
		return false
	}
	old, ok := s.in.read(c.Old, maxCompare)
	if !ok {
		return false
	}
	now, ok := s.in.read(c.New, maxCompare)
	if !ok {
		return false
	}
	was := map[string]bool{}
	for line := range bytes.Lines(old) {
		if line = bytes.TrimSpace(line); len(line) > 1 { // a bracket alone is in any file
			was[string(line)] = true
		}
	}
	for line := range bytes.Lines(now) {
		if was[string(bytes.TrimSpace(line))] {
			return false
		}
	}
	return len(was) > 2 && !bytes.HasPrefix(now, old) // of a line or two, an edit leaves nothing either
}

// runsItself notes a file that runs without being asked for.
func (s *summary) runsItself(c diff.Change) bool {
	what := Runs(c.Path)
	if what == "" && path.Base(c.Path) == "package.json" && !s.isIgnored(c.Path, false) {
		old, _ := s.in.read(c.Old, maxCompare)
		now, ok := s.in.read(c.New, maxCompare)
		names, self := scripts(old, now)
		switch {
		case ok && self > 0 && !strings.Contains(c.Path, "node_modules/"):
			s.add(runs, "sets %s in %s, which runs by itself", short(names[0], 16), short(c.Path, 20))
			s.out.Grave = true
			return true
		case ok && len(names) > 0 && c.Old != nil:
			s.add(touches, "changes scripts in %s: %s", short(c.Path, 20), short(strings.Join(names, ", "), 16))
			return true
		}
	}
	if what == "" {
		return false
	}
	if s.kinds == nil {
		s.kinds = map[string]int{}
	}
	s.kinds[what]++
	s.selfRun.add(c.Path, false)
	s.out.Grave = true
	return true
}

// modes is about permissions.
func (s *summary) modes(c diff.Change) {
	if c.New == nil || c.New.Kind != manifest.KindFile && c.New.Kind != manifest.KindDir {
		return
	}
	was := uint32(0)
	if c.Old != nil && c.Old.Kind == c.New.Kind {
		was = c.Old.Mode
	}
	file, more := c.New.Kind == manifest.KindFile, c.New.Mode&^was
	if file && more&0o111 != 0 && was&0o111 == 0 {
		switch {
		case c.Old != nil:
			s.out.Executable++
			s.executable.add(c.Path, false)
		case !s.isIgnored(c.Path, false):
			s.out.Executable++
			s.newExecutable++
		}
	}
	if more&0o002 != 0 && c.New.Mode&0o1000 == 0 {
		s.open.add(c.Path, false)
	}
	if file && more&0o6000 != 0 {
		s.setid.add(c.Path, false)
	}
}

// leadsOut says whether a link leads out of the project, by its text.
func (s *summary) leadsOut(at, target string) bool {
	if !path.IsAbs(target) {
		return !filepath.IsLocal(path.Join(path.Dir(at), target)) && path.Join(path.Dir(at), target) != "."
	}
	target = path.Clean(target)
	return target != s.in.Project && !strings.HasPrefix(target, s.in.Project+"/")
}

// where notes what lies outside of the folders that the action ran in.
func (s *summary) where(c diff.Change) {
	p := path.Join(s.in.Project, c.Path)
	if len(s.in.Folders) > 0 && !slices.ContainsFunc(s.in.Folders, func(dir string) bool {
		return dir == "/" || strings.HasPrefix(p, dir+"/")
	}) {
		s.apart.add(c.Path, false)
	}
}

// gone says whether a folder that something vanished from isn't there any more.
func (s *summary) gone(dir string) bool {
	for i := 0; i <= len(dir); i++ {
		if i < len(dir) && dir[i] != '/' {
			continue
		}
		switch e := s.in.To.Lookup(dir[:i]); {
		case e == nil:
			above := s.in.To.Lookup(path.Dir(dir[:i]))
			return above != nil && above.Opaque || s.in.From.Lookup(dir[:i]) != nil
		case e.Kind != manifest.KindDir:
			return true
		}
	}
	return false
}

// goneFolder is the topmost folder that is gone with all of some files, "" for none.
func (s *summary) goneFolder(names []string) string {
	common := path.Dir(names[0])
	for _, n := range names[1:] {
		for common != "." && !strings.HasPrefix(n, common+"/") {
			common = path.Dir(common)
		}
	}
	if common == "." || !s.gone(common) {
		return ""
	}
	for path.Dir(common) != "." && s.gone(path.Dir(common)) {
		common = path.Dir(common)
	}
	return common
}

// short makes a name fit to be said: escaped, its end when it is long.
func short(name string, most int) string {
	name = api.Escape(name)
	n := utf8.RuneCountInString(name)
	if n <= most {
		return name
	}
	return "…" + string([]rune(name)[n-most+1:])
}
