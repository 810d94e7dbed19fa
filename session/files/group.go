package files

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"sync"

	"stepbox/policy/git"
	"stepbox/session/api"
)

// Groups of changes that a reader may want folded away: see api.Change.Group.
const (
	groupLock      = "lock"
	groupGenerated = "generated"
	groupIgnored   = "ignored"
	groupGit       = "git"
)

// grouped is the order of pages that are asked for in groups.
var grouped = [...]string{"", groupLock, groupGenerated, groupIgnored, groupGit}

func groupAt(name string) int { return slices.Index(grouped[:], name) }

// Rules are what a project says of its files. They are asked one at a time.
type Rules interface {
	Ignored(path string, dir bool) bool // git ignores it
	Generated(path string) bool         // .gitattributes say that a program writes it
}

// grouping finds the groups of paths. It is safe for concurrent use.
type grouping struct {
	mu    sync.Mutex
	rules Rules              // guarded by mu; nil for none
	known memo[string, bool] // what the rules said of a path: ignored
}

// maxGrouped bounds the paths of which a grouping knows what the rules say.
const maxGrouped = 1 << 18

// Sort sorts changes into groups by a project's own rules, too. The first rules
// stay.
func (f *Files) Sort(r Rules) {
	f.groups.mu.Lock()
	defer f.groups.mu.Unlock()
	if f.groups.rules == nil {
		f.groups.rules = r
	}
}

// folderRules are what a project folder's repository says now, for a session that
// is over. They are read as they are asked for, with a grouping's lock held.
type folderRules struct {
	folder string
	person git.Person
	repo   *git.Repository // nil until the first question
}

func (r *folderRules) open() *git.Repository {
	if r.repo == nil {
		r.repo = git.OpenLazily(r.folder, r.person)
	}
	return r.repo
}

func (r *folderRules) Ignored(name string, dir bool) bool { return r.open().Ignored(name, dir) }
func (r *folderRules) Generated(name string) bool         { return r.open().Generated(name) }

// of is the group of a path; generated says that its content shows that a program
// wrote it.
func (g *grouping) of(name string, generated bool) string {
	base := path.Base(name)
	switch {
	case name == ".git" || strings.HasPrefix(name, ".git/") || strings.Contains(name, "/.git/") || strings.HasSuffix(name, "/.git"):
		return groupGit
	case isLock(base):
		return groupLock
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.ignored(name):
		return groupIgnored
	case generated || isGenerated(base) || g.rules != nil && g.rules.Generated(name):
		return groupGenerated
	}
	return ""
}

// Ignored says whether git ignores a changed file, by the rules that changes are
// sorted with; nothing is where there are none.
func (f *Files) Ignored(path string) bool {
	f.groups.mu.Lock()
	defer f.groups.mu.Unlock()
	return f.groups.ignored(path)
}

// ignored is called with mu held.
func (g *grouping) ignored(name string) bool {
	if g.rules == nil {
		return false
	}
	yes, known := g.known.get(name)
	if !known {
		yes = g.rules.Ignored(name, false)
		g.known.put(name, yes, maxGrouped)
	}
	return yes
}

// isLock says whether a file says which versions a package manager chose.
func isLock(base string) bool {
	switch base {
	case "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock",
		"go.sum", "go.work.sum", "Cargo.lock", "Gemfile.lock", "composer.lock", "poetry.lock", "uv.lock", "pdm.lock", "Pipfile.lock",
		"mix.lock", "pubspec.lock", "Podfile.lock", "Package.resolved", "flake.lock", "gradle.lockfile", "packages.lock.json",
		"Chart.lock", ".terraform.lock.hcl", "MODULE.bazel.lock", "stack.yaml.lock", "cabal.project.freeze":
		return true
	}
	return false
}

// isGenerated says whether a file's name is one that programs give what they write.
func isGenerated(base string) bool {
	for _, end := range [...]string{
		".pb.go", ".pb.gw.go", "_pb2.py", "_pb2.pyi", "_pb2_grpc.py", ".pb.cc", ".pb.h", ".g.dart", ".freezed.dart", ".designer.cs", ".g.cs",
		".min.js", ".min.css", ".js.map", ".css.map",
	} {
		if strings.HasSuffix(base, end) {
			return true
		}
	}
	return false
}

// generated says whether a text's beginning says that a program wrote it, as
// go generate's and others' do.
func generated(b []byte) bool {
	b = b[:min(len(b), 2<<10)]
	return bytes.Contains(b, []byte("@generated")) || bytes.Contains(b, []byte("Code generated ")) && bytes.Contains(b, []byte("DO NOT EDIT"))
}

// order lists changes in the order of grouped pages: by group, and in it by path.
// It is called with counting held.
func (c *comparison) order() []int32 {
	if c.byGroup == nil {
		c.byGroup = make([]int32, len(c.shown.Changes))
		for i := range c.byGroup {
			c.byGroup[i] = int32(i)
		}
		slices.SortStableFunc(c.byGroup, func(a, b int32) int {
			return groupAt(c.lines[a].group) - groupAt(c.lines[b].group)
		})
	}
	return c.byGroup
}

// tally is how much is in each group, in their order.
func (c *comparison) tally() []api.Group {
	var out [len(grouped)]api.Group
	for i := range c.lines {
		g := &out[groupAt(c.lines[i].group)]
		g.Files, g.Added, g.Removed = g.Files+1, g.Added+c.lines[i].added, g.Removed+c.lines[i].removed
	}
	var list []api.Group
	for i, g := range out {
		if g.Name = grouped[i]; i > 0 && g.Files > 0 {
			list = append(list, g)
		}
	}
	return list
}
