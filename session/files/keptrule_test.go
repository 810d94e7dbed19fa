package files

import (
	"os"
	"path/filepath"
	"testing"

	"stepbox/policy/git"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// repository is a project that ignores some things.
func repository(t *testing.T) *git.Repository {
	t.Helper()
	dir := t.TempDir()
	rules := "build/\n*.o\nsecret*\n.env\n.vscode\n.*\n"
	must.OK(t, os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(rules), 0o644))
	r := git.Open(dir, git.Person{})
	r.ReadFolder(".")
	return r
}

func file(path string) diff.Change {
	return diff.Change{Path: path, Status: diff.Added, New: &diff.File{Entry: manifest.Entry{Kind: manifest.KindFile}}}
}

func folder(path string) diff.Change {
	return diff.Change{Path: path, Status: diff.Added, New: &diff.File{Entry: manifest.Entry{Kind: manifest.KindDir}}}
}

func link(path string) diff.Change {
	return diff.Change{Path: path, Status: diff.Added, New: &diff.File{Entry: manifest.Entry{Kind: manifest.KindSymlink}}}
}

func renamed(from, to string) diff.Change {
	old := diff.File{Entry: manifest.Entry{Kind: manifest.KindFile}}
	return diff.Change{Path: to, From: from, Status: diff.Renamed, Old: &old, New: &old}
}

func becomes(path string, from, to manifest.Kind) diff.Change {
	return diff.Change{Path: path, Status: diff.Modified,
		Old: &diff.File{Entry: manifest.Entry{Kind: from}}, New: &diff.File{Entry: manifest.Entry{Kind: to}}}
}

func TestNeedsReview(t *testing.T) {
	rules := repository(t)
	for name, c := range map[string]struct {
		changed []diff.Change
		git     bool
		want    bool
	}{
		"build output":           {[]diff.Change{folder("build"), file("build/a"), file("src/a.o")}, false, false},
		"and a source":           {[]diff.Change{file("build/a"), file("src/a.c")}, false, true},
		"moved out of build":     {[]diff.Change{renamed("build/a", "src/a.c")}, false, true},
		"moved into build":       {[]diff.Change{renamed("src/a.c", "build/a")}, false, true},
		"moved in build":         {[]diff.Change{renamed("build/a", "build/b")}, false, false},
		"a link named build":     {[]diff.Change{link("x/build")}, false, true},
		"build becomes a link":   {[]diff.Change{becomes("build", manifest.KindDir, manifest.KindSymlink)}, false, true},
		"an ignored secret":      {[]diff.Change{file("build/.env")}, false, true},
		"an editor's settings":   {[]diff.Change{file(".vscode/tasks.json")}, false, true},
		"the rules":              {[]diff.Change{file("a/.gitignore")}, false, false}, // it ignores ".*"
		"objects without git":    {[]diff.Change{file(".git/objects/ab/cd")}, false, true},
		"a commit":               {[]diff.Change{folder(".git/objects/ab"), file(".git/objects/ab/cd"), file(".git/refs/heads/main"), file(".git/logs/HEAD"), file(".git/index"), file(".git/HEAD"), file(".git/COMMIT_EDITMSG"), file(".git/ORIG_HEAD"), file(".git/packed-refs")}, true, false},
		"a commit of output":     {[]diff.Change{file(".git/index"), file("build/a")}, true, false},
		"a commit and a source":  {[]diff.Change{file(".git/index"), file("a.c")}, true, true},
		"a hook":                 {[]diff.Change{file(".git/index"), file(".git/hooks/pre-commit")}, true, true},
		"the configuration":      {[]diff.Change{file(".git/config")}, true, true},
		"info":                   {[]diff.Change{file(".git/info/attributes")}, true, true},
		"modules":                {[]diff.Change{file(".git/modules/a/hooks/x")}, true, true},
		"other folders' commits": {[]diff.Change{file(".git/objects/info/alternates")}, true, true},
		"a link for a reference": {[]diff.Change{link(".git/refs/heads/main")}, true, true},
		"a link for objects":     {[]diff.Change{becomes(".git/objects", manifest.KindDir, manifest.KindSymlink)}, true, true},
		"a file for references":  {[]diff.Change{file(".git/refs")}, true, true},
		"another repository":     {[]diff.Change{file("sub/.git/index")}, true, true},
		"a repository in build":  {[]diff.Change{file("build/.git/hooks/x")}, true, true},
		"a new repository":       {[]diff.Change{folder(".git")}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := needsReview(c.changed, rules, c.git); got != c.want {
				t.Errorf("it needs a review: %v", got)
			}
		})
	}
}

// ended is an action that has ended.
type ended struct {
	api.Action
	ahead, lingers, mixed, idle bool
}

func TestKeptByRule(t *testing.T) {
	rules := repository(t)
	output, source, hook := file("build/a"), file("a.c"), file(".git/hooks/x")
	many := make([]diff.Change, mostJudged)
	for i := range many {
		many[i] = output
	}
	for name, c := range map[string]struct {
		change func(c *ended)
		files  []diff.Change
		kept   bool
	}{
		"output":             {func(*ended) {}, []diff.Change{output}, true},
		"source":             {func(*ended) {}, []diff.Change{source}, false},
		"approved with it":   {func(c *ended) { c.ahead = true }, []diff.Change{source}, true},
		"but not its hooks":  {func(c *ended) { c.ahead = true }, []diff.Change{source, hook}, false},
		"an edit":            {func(c *ended) { c.Kind = api.KindEdit }, []diff.Change{output}, false},
		"something lives":    {func(c *ended) { c.lingers = true }, []diff.Change{output}, false},
		"others ran":         {func(c *ended) { c.Shared = true }, []diff.Change{output}, false},
		"the agent ran":      {func(c *ended) { c.mixed = true }, []diff.Change{output}, false},
		"it may have looked": {func(c *ended) { c.mixed, c.idle = true, true }, []diff.Change{output}, true},
		"too many to list":   {func(*ended) {}, many, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := &ended{Action: api.Action{Kind: api.KindCommand, Verdict: api.Allow}}
			c.change(e)
			trust := TrustIn(c.files, nil, rules)
			trust.Idle = e.idle
			if why := KeptByRule(&e.Action, e.ahead, e.lingers, e.mixed, trust); (why != "") != c.kept {
				t.Errorf("kept: %q", why)
			}
		})
	}
}

func TestOnlyGit(t *testing.T) {
	parts := func(texts ...string) (c api.Command) {
		for _, p := range texts {
			c.Parts = append(c.Parts, api.Part{Text: p})
		}
		return c
	}
	written := parts("git add .")
	written.Written = true
	for name, c := range map[string]struct {
		commands []api.Command
		want     bool
	}{
		"one":            {[]api.Command{parts("git commit -m x")}, true},
		"by path":        {[]api.Command{parts("/usr/bin/git commit -m x")}, true},
		"several":        {[]api.Command{parts("cd /p", "git add .", "git commit -m x")}, true},
		"with a message": {[]api.Command{parts("cat", "git commit -F -")}, false},
		"not at all":     {[]api.Command{parts("make")}, false},
		"only cd":        {[]api.Command{parts("cd /p")}, false},
		"with variables": {[]api.Command{parts("GIT_DIR=x git add .")}, false},
		"a pipe":         {[]api.Command{parts("git log"), parts("tee .git/HEAD")}, false},
		"unread":         {[]api.Command{parts()}, false},
		"the agent's":    {[]api.Command{written}, false},
		"nothing":        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := onlyGit(c.commands); got != c.want {
				t.Errorf("only git: %v", got)
			}
		})
	}
}
