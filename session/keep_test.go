package session

import (
	"os"
	"path/filepath"
	"testing"

	"stepbox/policy/git"
	"stepbox/runner/overlay"
	"stepbox/session/api"
)

// repository is a project that ignores some things.
func repository(t *testing.T) *git.Repository {
	t.Helper()
	dir := t.TempDir()
	rules := "build/\n*.o\nsecret*\n.env\n.vscode\n.*\n"
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	return look(dir, git.Person{}, maxSurveyed).ignores
}

func file(path string) overlay.Change {
	return overlay.Change{Path: path, Status: overlay.Added, New: &overlay.File{Entry: overlay.Entry{Kind: overlay.KindFile}}}
}

func folder(path string) overlay.Change {
	return overlay.Change{Path: path, Status: overlay.Added, New: &overlay.File{Entry: overlay.Entry{Kind: overlay.KindDir}}}
}

func link(path string) overlay.Change {
	return overlay.Change{Path: path, Status: overlay.Added, New: &overlay.File{Entry: overlay.Entry{Kind: overlay.KindSymlink}}}
}

func renamed(from, to string) overlay.Change {
	old := overlay.File{Entry: overlay.Entry{Kind: overlay.KindFile}}
	return overlay.Change{Path: to, From: from, Status: overlay.Renamed, Old: &old, New: &old}
}

func becomes(path string, from, to overlay.Kind) overlay.Change {
	return overlay.Change{Path: path, Status: overlay.Modified,
		Old: &overlay.File{Entry: overlay.Entry{Kind: from}}, New: &overlay.File{Entry: overlay.Entry{Kind: to}}}
}

func TestNeedsReview(t *testing.T) {
	rules := repository(t)
	for name, c := range map[string]struct {
		changed []overlay.Change
		git     bool
		want    bool
	}{
		"build output":           {[]overlay.Change{folder("build"), file("build/a"), file("src/a.o")}, false, false},
		"and a source":           {[]overlay.Change{file("build/a"), file("src/a.c")}, false, true},
		"moved out of build":     {[]overlay.Change{renamed("build/a", "src/a.c")}, false, true},
		"moved into build":       {[]overlay.Change{renamed("src/a.c", "build/a")}, false, true},
		"moved in build":         {[]overlay.Change{renamed("build/a", "build/b")}, false, false},
		"a link named build":     {[]overlay.Change{link("x/build")}, false, true},
		"build becomes a link":   {[]overlay.Change{becomes("build", overlay.KindDir, overlay.KindSymlink)}, false, true},
		"an ignored secret":      {[]overlay.Change{file("build/.env")}, false, true},
		"an editor's settings":   {[]overlay.Change{file(".vscode/tasks.json")}, false, true},
		"the rules":              {[]overlay.Change{file("a/.gitignore")}, false, false}, // it ignores ".*"
		"objects without git":    {[]overlay.Change{file(".git/objects/ab/cd")}, false, true},
		"a commit":               {[]overlay.Change{folder(".git/objects/ab"), file(".git/objects/ab/cd"), file(".git/refs/heads/main"), file(".git/logs/HEAD"), file(".git/index"), file(".git/HEAD"), file(".git/COMMIT_EDITMSG"), file(".git/ORIG_HEAD"), file(".git/packed-refs")}, true, false},
		"a commit of output":     {[]overlay.Change{file(".git/index"), file("build/a")}, true, false},
		"a commit and a source":  {[]overlay.Change{file(".git/index"), file("a.c")}, true, true},
		"a hook":                 {[]overlay.Change{file(".git/index"), file(".git/hooks/pre-commit")}, true, true},
		"the configuration":      {[]overlay.Change{file(".git/config")}, true, true},
		"info":                   {[]overlay.Change{file(".git/info/attributes")}, true, true},
		"modules":                {[]overlay.Change{file(".git/modules/a/hooks/x")}, true, true},
		"other folders' commits": {[]overlay.Change{file(".git/objects/info/alternates")}, true, true},
		"a link for a reference": {[]overlay.Change{link(".git/refs/heads/main")}, true, true},
		"a link for objects":     {[]overlay.Change{becomes(".git/objects", overlay.KindDir, overlay.KindSymlink)}, true, true},
		"a file for references":  {[]overlay.Change{file(".git/refs")}, true, true},
		"another repository":     {[]overlay.Change{file("sub/.git/index")}, true, true},
		"a repository in build":  {[]overlay.Change{file("build/.git/hooks/x")}, true, true},
		"a new repository":       {[]overlay.Change{folder(".git")}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := needsReview(c.changed, rules, c.git); got != c.want {
				t.Errorf("it needs a review: %v", got)
			}
		})
	}
}

func TestKeptByRule(t *testing.T) {
	rules := repository(t)
	output, source, hook := file("build/a"), file("a.c"), file(".git/hooks/x")
	many := make([]overlay.Change, mostJudged)
	for i := range many {
		many[i] = output
	}
	for name, c := range map[string]struct {
		change func(a *action)
		files  []overlay.Change
		kept   bool
	}{
		"output":            {func(*action) {}, []overlay.Change{output}, true},
		"source":            {func(*action) {}, []overlay.Change{source}, false},
		"approved with it":  {func(a *action) { a.keeps = true }, []overlay.Change{source}, true},
		"but not its hooks": {func(a *action) { a.keeps = true }, []overlay.Change{source, hook}, false},
		"an edit":           {func(a *action) { a.Kind = api.KindEdit }, []overlay.Change{output}, false},
		"something lives":   {func(a *action) { a.lingers = true }, []overlay.Change{output}, false},
		"others ran":        {func(a *action) { a.Shared = true }, []overlay.Change{output}, false},
		"too many to list":  {func(*action) {}, many, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &action{Action: api.Action{Kind: api.KindCommand, Verdict: api.Allow}}
			c.change(a)
			if why := keptByRule(a, c.files, rules); (why != "") != c.kept {
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
