package git

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stepbox/session/e2e/must"
)

// oracle runs the real git in a repository that the test made.
func oracle(t rapid.TB, dir, home, input string, args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t"}
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && !(args[0] == "check-ignore" && cmd.ProcessState.ExitCode() == 1) {
		t.Fatalf("git %v: %v: %s", args, err, stderr.String())
	}
	return string(out)
}

func needGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git to compare with")
	}
}

func put(t rapid.TB, dir string, files map[string]string) {
	for name, text := range files {
		path := filepath.Join(dir, name)
		folder := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			folder = path
		}
		must.OK(t, os.MkdirAll(folder, 0o755))
		if folder == path {
			continue
		}
		must.OK(t, os.WriteFile(path, []byte(text), 0o644))
	}
}

// read opens a project and reads all its folders' rules, as a walk does.
func read(t rapid.TB, project, home string) (*Repository, map[string]bool) {
	r := Open(project, Person{Home: home})
	paths := map[string]bool{} // relative; true for a folder
	err := filepath.WalkDir(project, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(project, p)
		if d.Name() == ".git" {
			return fs.SkipDir
		}
		if d.IsDir() {
			r.ReadFolder(rel)
		}
		if rel != "." {
			paths[rel] = d.IsDir()
		}
		return nil
	})
	must.OK(t, err)
	return r, paths
}

// compare asks both about every path that there is.
func compare(t rapid.TB, project, home string) {
	r, paths := read(t, project, home)
	var input []string
	for p := range paths {
		input = append(input, p)
	}
	slices.Sort(input)
	theirs := strings.Split(oracle(t, project, home, strings.Join(input, "\x00"), "check-ignore", "-z", "--stdin"), "\x00")
	for _, p := range input {
		// git says of a folder with something tracked in it what its rules say;
		// here it isn't ignored, as what is in it isn't all.
		if paths[p] && r.Tracked(p) {
			continue
		}
		if ours, git := r.Ignored(p, paths[p]), slices.Contains(theirs, p); ours != git {
			t.Errorf("%q is ignored: %v here, %v for git", p, ours, git)
		}
	}
}

func TestIgnoredAsGitDoes(t *testing.T) {
	needGit(t)
	for name, files := range map[string]map[string]string{
		"plain":         {".gitignore": "*.o\nbuild\n", "a.o": "", "x/b.o": "", "build/c": "", "x/build": "", "kept": ""},
		"negation":      {".gitignore": "*.log\n!keep.log\nout/\n!out/keep\n", "a.log": "", "keep.log": "", "out/keep": "", "d/keep.log": ""},
		"folders only":  {".gitignore": "dist/\nlink/\n", "dist/a": "", "x/dist/b": "", "y/dist": ""},
		"anchored":      {".gitignore": "/top\na/b\n/c/*.x\n", "top": "", "x/top": "", "a/b": "", "x/a/b": "", "c/1.x": "", "c/d/1.x": ""},
		"two stars":     {".gitignore": "**/deep\nq/**\nm/**/n\nw**z\n**/\n!**/s/\n", "deep": "", "x/y/deep": "", "q/a/b": "", "m/n": "", "m/1/2/n": "", "w/z": "", "wyz": "", "s/1": ""},
		"nested":        {".gitignore": "*.tmp\n", "a/.gitignore": "!x.tmp\n/only\n", "a/x.tmp": "", "a/y.tmp": "", "a/only": "", "a/b/only": "", "a/b/x.tmp": "", "only": ""},
		"below ignored": {".gitignore": "gone\n", "gone/.gitignore": "!*\n", "gone/x": ""},
		"escapes":       {".gitignore": "\\#hash\n\\!bang\nsp\\ \ntrail   \n#comment\ncr\r\n", "#hash": "", "!bang": "", "sp ": "", "trail": "", "#comment": "", "cr": ""},
		"sets":          {".gitignore": "[ab].c\n[!x].d\nf[0-9]\n{g,h}\nopen[\n?.e\n", "a.c": "", "c.c": "", "x.d": "", "y.d": "", "f1": "", "g": "", "{g,h}": "", "open[": "", "1.e": "", "12.e": ""},
		"outer":         {".git/info/exclude": "private\n*.mine\n", ".gitignore": "!b.mine\n", "private": "", "a.mine": "", "b.mine": ""},
		"keep some":     {".gitignore": "/*\n!/src\n/src/*\n!/src/keep\n", "x": "", "src/keep/1": "", "src/lose/1": ""},
		"bom":           {".gitignore": "\ufeffone\ntwo", "one": "", "two": ""},
		"own file":      {".gitignore": ".*\n!.gitignore\n", ".x": "", "a/.y": ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, home := t.TempDir(), t.TempDir()
			oracle(t, dir, home, "", "init", "-q")
			put(t, dir, files)
			compare(t, dir, home)
		})
	}
}

func TestIgnoredByThePersonsOwnFile(t *testing.T) {
	needGit(t)
	for name, where := range map[string]struct{ config, file string }{
		"default":       {"", ".config/git/ignore"},
		"excludesFile":  {"[core]\n\texcludesFile = ~/mine # here\n", "mine"},
		"quoted":        {"[CORE] excludesfile = \"~/my \\\"rules\"\n", `my "rules`},
		"another's key": {"[other \"core\"]\n excludesfile = ~/wrong\n[core]\nautocrlf\n", ".config/git/ignore"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, home := t.TempDir(), t.TempDir()
			oracle(t, dir, home, "", "init", "-q")
			put(t, home, map[string]string{where.file: "*.swp\n", ".gitconfig": where.config})
			put(t, dir, map[string]string{"a.swp": "", "a.txt": "", ".git/info/exclude": "!b.swp\n", "b.swp": ""})
			compare(t, dir, home)
			if r, _ := read(t, dir, home); !r.Ignored("a.swp", false) {
				t.Error("the person's own rule doesn't count")
			}
		})
	}
}

func TestWhatIsTrackedIsNotIgnored(t *testing.T) {
	needGit(t)
	for _, version := range []string{"2", "3", "4"} {
		t.Run("index version "+version, func(t *testing.T) {
			dir, home := t.TempDir(), t.TempDir()
			oracle(t, dir, home, "", "init", "-q")
			put(t, dir, map[string]string{".gitignore": "build/\n", "build/made": "", "build/kept": "", "build/deep/kept": "", "other/made": "", "zz": ""})
			oracle(t, dir, home, "", "add", "-f", ".gitignore", "build/kept", "build/deep/kept", "zz")
			if version == "3" { // an intent to add has flags of the third version
				oracle(t, dir, home, "", "add", "-N", "other/made")
			} else {
				oracle(t, dir, home, "", "update-index", "--index-version", version)
			}
			if data, _ := os.ReadFile(filepath.Join(dir, ".git/index")); len(data) < 8 || fmt.Sprint(data[7]) != version {
				t.Fatalf("git wrote another index: %q", data[:min(8, len(data))])
			}
			compare(t, dir, home)
			r, _ := read(t, dir, home)
			for path, want := range map[string]bool{"build/made": true, "build/new": true, "build/kept": false, "build/deep/kept": false, "build/deep": false} {
				if got := r.Ignored(path, path == "build/deep"); got != want {
					t.Errorf("%q is ignored: %v", path, got)
				}
			}
		})
	}
}

func TestAProjectInsideARepository(t *testing.T) {
	needGit(t)
	dir, home := t.TempDir(), t.TempDir()
	oracle(t, dir, home, "", "init", "-q")
	project := filepath.Join(dir, "packages/one")
	put(t, dir, map[string]string{".gitignore": "*.o\n/packages/*/out\n", "packages/.gitignore": "cache\n", "packages/one/a.o": "", "packages/one/out/x": "", "packages/one/cache": "", "packages/one/src": ""})
	compare(t, project, home)
}

func TestALinkedWorktree(t *testing.T) {
	needGit(t)
	dir, home := t.TempDir(), t.TempDir()
	oracle(t, dir, home, "", "init", "-q")
	put(t, dir, map[string]string{"file": "", ".git/info/exclude": "*.out\n"})
	oracle(t, dir, home, "", "add", "file")
	oracle(t, dir, home, "", "commit", "-q", "-m", "one")
	tree := filepath.Join(t.TempDir(), "tree")
	oracle(t, dir, home, "", "worktree", "add", "-q", tree)
	put(t, tree, map[string]string{"a.out": "", "b": ""})
	compare(t, tree, home)
}

// A link could make the host's own files count as rules, or block for ever.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	needGit(t)
	dir, home := t.TempDir(), t.TempDir()
	oracle(t, dir, home, "", "init", "-q")
	put(t, home, map[string]string{"rules": "*\n"})
	put(t, dir, map[string]string{"a": "", "sub/b": ""})
	must.OK(t, os.Symlink(filepath.Join(home, "rules"), filepath.Join(dir, ".gitignore")))
	must.OK(t, os.Mkdir(filepath.Join(dir, "sub/.gitignore"), 0o755))
	r, _ := read(t, dir, home)
	if r.Ignored("a", false) || r.Ignored("sub/b", false) {
		t.Error("a link's or a folder's rules count")
	}
}

func TestNothingIsIgnoredWhereOneCannotTell(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"large rules":   {".gitignore": strings.Repeat("#\n", maxRules/2) + "*\n"},
		"broken index":  {".gitignore": "*\n", ".git/HEAD": "ref: refs/heads/main\n", ".git/index": "DIRC\x00\x00\x00\x02\x00\x00\x00\x09"},
		"unknown index": {".gitignore": "*\n", ".git/HEAD": "ref: refs/heads/main\n", ".git/index": "DIRC\x00\x00\x00\x09\x00\x00\x00\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, files)
			if r, _ := read(t, dir, ""); r.Ignored("a", false) {
				t.Error("something is ignored")
			}
		})
	}
	dir := t.TempDir()
	put(t, dir, map[string]string{".gitignore": "*\n"})
	r, _ := read(t, dir, "")
	if !r.Ignored("a", false) {
		t.Error("a folder outside of a repository has no rules")
	}
	for _, path := range []string{"", ".", "..", "../a", "/a"} {
		if r.Ignored(path, true) {
			t.Errorf("%q is ignored", path)
		}
	}
	r.Unsure()
	if r.Ignored("a", false) {
		t.Error("something is ignored though not all was read")
	}
}

// Random rules over random trees: whatever git says. Two stars behind a letter
// are left out: git takes them for folders too when no wildcard is before them.
func TestIgnoredAsGitDoesWhateverTheRules(t *testing.T) {
	needGit(t)
	names := rapid.SampledFrom([]string{"a", "b", "ab", "a.b", "x", ".c", "[", "a b", "é", "{a,b}"})
	part := rapid.SampledFrom([]string{"a", "b", "*", "**", "?", "a*", "*b", "[ab]", "[!a]", "[^b]", "[a-c]*", "a.b", "\\a", "{a,b}", "[", ".*", "a b"})
	line := rapid.Custom(func(t *rapid.T) string {
		s := strings.Join(rapid.SliceOfN(part, 1, 3).Draw(t, "parts"), "/")
		return rapid.SampledFrom([]string{"", "", "!"}).Draw(t, "not") + rapid.SampledFrom([]string{"", "", "/"}).Draw(t, "anchor") +
			s + rapid.SampledFrom([]string{"", "", "/", " "}).Draw(t, "end")
	})
	rules := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 1, 5).Draw(t, "lines"), "\n")
	})
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "ignore")
		must.OK(t, err)
		defer os.RemoveAll(dir)
		put(t, dir, map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/objects/": "", ".git/refs/": ""})
		for range rapid.IntRange(1, 8).Draw(t, "files") {
			p := filepath.Join(dir, strings.Join(rapid.SliceOfN(names, 1, 3).Draw(t, "path"), "/"))
			if os.MkdirAll(filepath.Dir(p), 0o755) == nil {
				_ = os.WriteFile(p, nil, 0o644) // a folder may be there
			}
		}
		put(t, dir, map[string]string{".gitignore": rules.Draw(t, "rules")})
		if info, err := os.Stat(filepath.Join(dir, "a")); err == nil && info.IsDir() {
			put(t, dir, map[string]string{"a/.gitignore": rules.Draw(t, "nested")})
		}
		compare(t, dir, dir)
	})
}
