// Package effects says in words and numbers what an action did to the files of
// its project: what it deleted and whether git has it, what it made executable,
// what will run by itself. It goes by the changes and by what is recorded of the
// project, never by what the action says of itself.
//
// [Of] is a function of its input alone and may be called from any goroutine.
// All that it looks at is hostile: contents are read bounded, and of what can't
// be read nothing is said. Names are escaped.
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
}

// Bounds of what is read and said.
const (
	maxFile    = 8 << 20  // bytes of one content
	maxRead    = 64 << 20 // of all
	maxCompare = 1 << 20  // of one that is looked into
	maxPhrases = 5
	maxMessage = 200 // bytes of a commit's first line
)

// Of says what an action did; nil: nothing.
func Of(in Input) *api.Effects {
	if len(in.Changed) == 0 {
		return nil
	}
	s := &summary{Input: in, left: maxRead, indexes: map[string][]git.Entry{}, groups: map[string]*group{}}
	internals := map[string][]diff.Change{} // by the folder that .git is in
	for _, c := range in.Changed {
		if repo, ok := InGit(c.Path); ok {
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

// InGit says in which folder the repository is that a path is an internal of.
func InGit(p string) (folder string, ok bool) {
	i := strings.Index("/"+p+"/", "/.git/")
	if i < 0 {
		return "", false
	}
	return strings.TrimSuffix(p[:i], "/"), true
}

// summary is the work of one Of.
type summary struct {
	Input
	left    int64 // bytes that may still be read
	out     api.Effects
	indexes map[string][]git.Entry // by state and path of the repository
	groups  map[string]*group
	phrases []phrase
	stashed bool

	newExecutable int
}

// group is what happened to some files.
type group struct {
	names       []string
	lost, tests int // of them: that git hasn't got; that are tests
}

// put sorts a file into a group.
func (s *summary) put(kind, p string, lost bool) {
	if s.groups[kind] == nil {
		s.groups[kind] = &group{}
	}
	g := s.groups[kind]
	g.names = append(g.names, p)
	if lost {
		g.lost++
	}
	if Tests.Has(p) {
		g.tests++
	}
}

// read reads a side of a change, while there is budget for it.
func (s *summary) read(f *diff.File, most int64) ([]byte, bool) {
	if f == nil || f.Kind != manifest.KindFile || f.Size > min(most, s.left) {
		return nil, false
	}
	s.left -= f.Size
	return s.Open(f, most)
}

// change sorts one change in.
func (s *summary) change(c diff.Change) {
	dir := c.Kind() == manifest.KindDir && c.Status != diff.Retyped
	ignored := s.Ignored != nil && s.Ignored(c.Path, dir)
	if ignored {
		s.out.Ignored++
	}
	s.modes(c, ignored)
	if dir {
		switch {
		case c.Status == diff.Deleted && c.Old.Unsaved != "":
			s.put("unknown", c.Path, false)
		case c.Status == diff.Deleted:
			s.put("folder gone", c.Path, false)
		case c.Status == diff.Added:
			s.put("folder", c.Path, false)
		}
		return
	}
	if !ignored && s.isOutside(c.Path) {
		s.put("outside", c.Path, false)
	}
	if c.New != nil && c.New.Kind == manifest.KindSymlink && (c.Status != diff.Modified || c.Content) && s.leadsOut(c.Path, c.New.Target) {
		s.put("leads out", c.Path, false)
	}
	switch c.Status {
	case diff.Added:
		s.out.Created++
		s.put(s.kindOf(c, ignored, "created"), c.Path, false)
	case diff.Deleted:
		s.out.Deleted++
		kind := "deleted"
		if ignored {
			kind = "ignored deleted"
		}
		s.put(kind, c.Path, s.loses(c, ignored))
	case diff.Renamed:
		s.out.Renamed++
		kind := "moved"
		if path.Dir(c.From) == path.Dir(c.Path) {
			kind = "renamed"
		}
		s.put(kind, c.From, false)
		if kind := s.kindOf(c, ignored, ""); kind == "runs" {
			s.put(kind, c.Path, false)
		}
	default:
		s.out.Modified++
		if kind := s.wrote(c, ignored); kind != "" {
			lost := slices.Contains([]string{"replaced", "emptied", "reverted", "overwritten"}, kind) && s.loses(c, ignored)
			s.put(kind, c.Path, lost)
		}
	}
}

// loses says whether what a change took away is nowhere but in the session's
// record, and counts it. What programs make again is no loss.
func (s *summary) loses(c diff.Change, ignored bool) bool {
	repo := s.repositoryOf(c.Path)
	if s.Base == nil || repo != nil && repo.Unread != "" || c.Old.Kind != manifest.KindSymlink && (c.Old.Kind != manifest.KindFile || c.Old.Size == 0) ||
		ignored && Derived.Has(c.Path) || s.committed(c.Path, c.Old, s.From, s.From, s.To) {
		return false
	}
	s.out.Uncommitted++
	s.out.Grave = true
	return true
}

// wrote says in which group a file belongs that is another now; "" for none.
func (s *summary) wrote(c diff.Change, ignored bool) string {
	switch {
	case c.Status == diff.Retyped:
		return "replaced"
	case !c.Content:
		return ""
	case c.New.Kind == manifest.KindFile && c.New.Size == 0:
		return "emptied"
	case !ignored && s.committed(c.Path, c.New, s.To, s.From):
		return "reverted"
	}
	if kind := s.kindOf(c, ignored, "changed"); kind != "changed" || !s.whole(c) {
		return kind
	}
	return "overwritten"
}

// kindOf says in which group a file belongs by what it is, else in the given one.
func (s *summary) kindOf(c diff.Change, ignored bool, otherwise string) string {
	if Runs(c.Path) != "" {
		s.out.Grave = true
		return "runs"
	}
	if path.Base(c.Path) == "package.json" && !ignored {
		old, _ := s.read(c.Old, maxCompare)
		now, _ := s.read(c.New, maxCompare)
		if names, unasked, _, _ := Scripts(old, now, "scripts"); unasked > 0 {
			s.out.Grave = true
			s.add(runs, "sets %s in %s, which runs by itself", short(names[0], 16), short(c.Path, 20))
			return ""
		} else if len(names) > 0 && c.Old != nil {
			s.add(touches, "changes scripts in %s: %s", short(c.Path, 20), short(strings.Join(names, ", "), 16))
			return ""
		}
	}
	switch {
	case ignored:
		return "ignored"
	case Locks.Has(c.Path):
		return "locks"
	case c.Old != nil && Tests.Has(c.Path) && !s.whole(c):
		return "tests"
	}
	return otherwise
}

// whole says whether a change left nothing of what a text of some lines was. Of a
// line or two an edit leaves nothing either.
func (s *summary) whole(c diff.Change) bool {
	old, ok := s.read(c.Old, maxCompare)
	now, also := s.read(c.New, maxCompare)
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
	return ok && also && len(was) > 2
}

// modes is about permissions.
func (s *summary) modes(c diff.Change, ignored bool) {
	if c.New == nil || c.New.Kind != manifest.KindFile && c.New.Kind != manifest.KindDir {
		return
	}
	was := uint32(0)
	if c.Old != nil && c.Old.Kind == c.New.Kind {
		was = c.Old.Mode
	}
	more, file := c.New.Mode&^was, c.New.Kind == manifest.KindFile
	if file && more&0o111 != 0 && was&0o111 == 0 && (c.Old != nil || !ignored) {
		s.out.Executable++
		if c.Old != nil {
			s.put("executable", c.Path, false)
		} else {
			s.newExecutable++
		}
	}
	if more&0o002 != 0 && c.New.Mode&0o1000 == 0 {
		s.put("open", c.Path, false)
	}
	if file && more&0o6000 != 0 {
		s.put("setuid", c.Path, false)
	}
}

// leadsOut says whether a link leads out of the project, by its text.
func (s *summary) leadsOut(at, target string) bool {
	if !path.IsAbs(target) {
		target = path.Join(path.Dir(at), target)
		return !filepath.IsLocal(target)
	}
	return !manifest.Within(path.Clean(target), s.Project)
}

// isOutside says whether a path is in none of the folders that the action ran in.
func (s *summary) isOutside(p string) bool {
	p = path.Join(s.Project, p)
	return len(s.Folders) > 0 && !slices.ContainsFunc(s.Folders, func(dir string) bool { return manifest.Within(p, dir) })
}

// gone says whether a folder that something vanished from isn't there any more.
func (s *summary) gone(dir string) bool {
	for i := range len(dir) + 1 {
		if i < len(dir) && dir[i] != '/' {
			continue
		}
		switch e := s.To.Lookup(dir[:i]); {
		case e == nil:
			above := s.To.Lookup(strings.TrimPrefix(path.Dir(dir[:i]), "."))
			return above != nil && above.Opaque || s.From.Lookup(dir[:i]) != nil
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
		for common != "." && !manifest.Within(n, common) {
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

// phrase is one of the words; the weightiest have the least weight.
type phrase struct {
	weight int
	text   string
}

func (s *summary) add(weight int, format string, args ...any) {
	s.phrases = append(s.phrases, phrase{weight, fmt.Sprintf(format, args...)})
}
