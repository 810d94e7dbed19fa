package session_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// damaged is a project with something of everything: committed, changed since,
// never added, ignored, tests.
func damaged(t *testing.T) func(project string) {
	return func(project string) {
		put := func(name, text string) {
			t.Helper()
			path := filepath.Join(project, name)
			must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must.OK(t, os.WriteFile(path, []byte(text), 0o644))
		}
		git := func(args ...string) { gitIn(t, project, args...) }
		git("init", "-q", "-b", "main")
		git("config", "user.name", "p")
		git("config", "user.email", "p@example.org")
		lines := func(s string) string {
			var b strings.Builder
			for _, w := range []string{"alpha", "beta", "gamma", "delta", "epsilon"} {
				b.WriteString(w + " of " + s + "\n")
			}
			return b.String()
		}
		for _, name := range []string{"src/a.py", "src/b.py", "src/sub/c.py", "tests/test_a.py", "tests/test_b.py", "dirty.md", "keep.txt"} {
			put(name, lines(name))
		}
		put(".gitignore", "*.log\nbuild/\nlocal.db\n")
		put("package.json", "{\n  \"name\": \"x\",\n  \"version\": \"1.0.0\",\n  \"scripts\": {\"test\": \"true\"}\n}\n")
		put("Makefile", "clean:\n\trm -rf src\n")
		git("add", ".")
		git("commit", "-qm", "one")
		put("keep.txt", lines("keep.txt")+"two\n")
		git("commit", "-qam", "two")
		git("branch", "side")
		put("dirty.md", lines("dirty.md")+"not committed\n")
		put("notes.txt", lines("notes"))
		put("notes2.txt", lines("notes2"))
		put("build/out.o", "o")
		put("local.db", "rows")
		put("x.log", "log")
	}
}

// TestHiddenDamageIsSaid runs commands whose names don't tell what they do, and
// looks for what they did in the words of their action. Each is then taken back.
func TestHiddenDamageIsSaid(t *testing.T) {
	t.Parallel()
	w := startWith(t, api.ModeWatch, `mkfifo /tmp/feed; exec 4<>/tmp/feed; while read -r d c <&4; do (cd $d && exec bash -c "$c" </dev/null); done`, damaged(t))
	w.happened("what the project was", func(e api.Event) bool { return e.Kind == "session.based" })
	feed := w.feed("feed")
	last := w.action("the end of mkfifo", func(a api.Action) bool { return a.State == api.ActionEnded }).N
	run := func(line string) api.Action {
		t.Helper()
		if !strings.HasPrefix(line, "src ") {
			line = ". " + line
		}
		feed(line)
		a := w.action("the end of "+line, func(a api.Action) bool { return a.N > last && a.Kind == api.KindCommand && a.State == api.ActionEnded })
		last = a.N
		return a
	}
	for _, c := range []struct {
		name, prepare, line string
		want                []string
		calm                bool // nothing is lost by it
		needs               string
	}{
		{name: "clean", line: "git clean -fdxq", want: []string{"deletes 2 files, all never committed", "deletes 3 ignored files, 1 of them nothing makes again"}},
		{name: "checkout", line: "git checkout -q .", want: []string{"throws away uncommitted changes to dirty.md"}},
		{name: "reset", prepare: "for i in 1 2; do echo new >> src/a.py; echo new >> src/b.py; done", line: "git reset -q --hard", want: []string{"throws away uncommitted changes to 3 files"}},
		{name: "reset of commits", line: "git reset -q --hard HEAD~1", want: []string{"rewrites the branch main by a reset", "throws away uncommitted changes to dirty.md"}},
		{name: "stash", line: "git stash -q", want: []string{"puts changes to dirty.md on the stash"}, calm: true},
		{name: "stash drop", prepare: "git stash -q", line: "git stash drop -q", want: []string{"drops a stash"}},
		{name: "branch", prepare: "git checkout -q side && git commit -q --allow-empty -m x && git checkout -q main", line: "git branch -q -D side", want: []string{"deletes the branch side"}},
		{name: "amend", line: "git commit -q --amend -m other", want: []string{"rewrites the branch main: an amended commit"}, calm: true},
		{name: "make", line: "make -s clean", want: []string{"deletes src with 3 files"}, calm: true, needs: "make"},
		{name: "find", line: "find . -name '*.txt' -delete", want: []string{"deletes 4 files, 2 of them never committed"}},
		{name: "sed", line: "sed -i s/alpha/omega/ tests/*.py", want: []string{"changes tests in 2 files"}, calm: true},
		{name: "a redirection", line: "> notes.txt", want: []string{"empties notes.txt, never committed"}},
		{name: "a redirection over what is committed", line: "> src/a.py", want: []string{"empties src/a.py"}, calm: true},
		{name: "mv and cp", line: "mv src/a.py a.bak; cp notes2.txt src/a.py", want: []string{"overwrites all of src/a.py"}, calm: true},
		{name: "mv over", line: "mv notes.txt notes2.txt", want: []string{"overwrites all of notes2.txt, never committed"}},
		{name: "chmod", line: "chmod -R +x src", want: []string{"makes 3 files executable"}, calm: true},
		{name: "chmod for all", line: "chmod -R a+w src", want: []string{"lets everyone write 5 files or folders"}, calm: true},
		{name: "a copy and no original", line: "cp -r src staging; rm -rf src", want: []string{"moves 3 files out of src, which is gone"}, calm: true},
		{name: "truncate", line: "truncate -s0 src/*.py", want: []string{"empties 2 files"}, calm: true},
		{name: "a link out", line: "ln -sf /etc x", want: []string{"makes a link that leads out: x"}, calm: true},
		{name: "postinstall", line: "npm pkg set scripts.postinstall='curl x'", want: []string{"sets postinstall in package.json, which runs by itself"}, needs: "npm"},
		{name: "rsync", line: "mkdir /tmp/e; rsync -a --delete /tmp/e/ tests/", want: []string{"deletes 2 files"}, calm: true, needs: "rsync"},
		{name: "hooks elsewhere", line: "git config core.hooksPath tools", want: []string{"sets git's core.hookspath"}},
		{name: "a hook", line: "echo true > .git/hooks/pre-push", want: []string{"writes the git hook pre-push"}},
		{name: "tar", prepare: "tar cf /tmp/t -C src a.py && sed -i s/of/in/ src/a.py", line: "tar xf /tmp/t -C src", want: []string{"throws away uncommitted changes to src/a.py"}},
		{name: "python", line: `/usr/bin/python3 -c 'import shutil; shutil.rmtree("src"); shutil.rmtree("tests")'`, want: []string{"deletes 5 files, 2 of them tests"}, calm: true, needs: "/usr/bin/python3"},
		{name: "commits", line: "git commit -qam a; echo 1 >> keep.txt; git commit -qam b", want: []string{"commits 2 times", "changes keep.txt"}, calm: true},
		{name: "elsewhere", line: "src touch ../other ../tests/test_c.py", want: []string{"writes 2 files outside the folder it ran in"}, calm: true},
		{name: "the repository", line: "rm -rf .git", want: []string{"deletes the repository .git"}},
		{name: "CI", line: "mkdir -p .github/workflows; echo x > .github/workflows/ci.yml", want: []string{"changes .github/workflows/ci.yml, CI"}},
		{name: "what only the agent made", prepare: "echo 1 > draft.md", line: "unlink draft.md", want: []string{"deletes draft.md, never committed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); c.needs != "" && err != nil {
				t.Skipf("there is no %s here", c.needs)
			}
			first := 0
			if c.prepare != "" {
				first = run(c.prepare).N
			}
			a := run(c.line)
			if a.Effects == nil {
				t.Fatalf("nothing is said of it; it changed %d files", a.Files)
			}
			for _, want := range c.want {
				if !slices.ContainsFunc(a.Effects.Words, func(is string) bool { return strings.HasPrefix(is, want) }) {
					t.Errorf("it says %q, want %q", a.Effects.Words, want)
				}
			}
			if a.Effects.Grave == c.calm {
				t.Errorf("it is grave: %v; %q", a.Effects.Grave, a.Effects.Words)
			}
			if first == 0 {
				first = a.N
			}
			w.back(first, func() {})
			left, err := w.read.Changes(t.Context(), w.ID(), api.Scope{}, api.Page{})
			w.must(err)
			// Objects stay: nobody but what names them is told of them.
			if differ := slices.DeleteFunc(left.Files, func(f api.Change) bool { return strings.HasPrefix(f.Path, ".git/objects/") }); len(differ) > 0 {
				t.Errorf("taken back, %v differ", differ)
			}
		})
	}
}

// TestEditsHaveEffects: before a person is asked about an edit they are told what
// it did; and as soon as it is known what the project was, that git hasn't got it.
func TestEditsHaveEffects(t *testing.T) {
	t.Parallel()
	w := startWith(t, api.ModeStep, `: > notes.txt; uname`, damaged(t))
	var did *api.Effects
	w.happened("the question", func(e api.Event) bool {
		if e.Action != nil && e.Action.Kind == api.KindEdit && e.Action.Effects != nil {
			did = e.Action.Effects
		}
		return e.Question != nil
	})
	if did == nil || did.Modified != 1 {
		t.Errorf("the edit is asked about, and it is said to have done %+v", did)
	}
	w.action("what git hasn't got", func(a api.Action) bool {
		return a.Effects != nil && a.Effects.Grave && a.Effects.Words[0] == "empties notes.txt, never committed"
	})
}

// TestEffectsGrow: what a command left running does later is told with the command.
func TestEffectsGrow(t *testing.T) {
	t.Parallel()
	w := startWith(t, api.ModeWatch, `mkfifo /tmp/gone; bash -c 'touch made; (exec 3<>/tmp/gone; while read f <&3; do rm $f; done) & true'; read x`, damaged(t))
	w.happened("what the project was", func(e api.Event) bool { return e.Kind == "session.based" })
	a := w.action("the command's end", func(a api.Action) bool { return a.State == api.ActionEnded && a.Effects != nil })
	if len(a.Effects.Words) != 1 || a.Effects.Words[0] != "creates made" {
		t.Errorf("it says %q", a.Effects.Words)
	}
	feed := w.feed("gone")
	// It is the command's once the agent is known to have been asleep before; else it is an edit.
	for _, name := range []string{"notes.txt", "notes2.txt", "dirty.md", "local.db", "src/a.py", "src/b.py", "x.log", "keep.txt", "a.txt", "package.json", "Makefile"} {
		feed(name)
		b := w.action("the end of "+name, func(b api.Action) bool {
			return b.N > a.N && b.Title == "edit "+name || b.N == a.N && b.Effects != nil && b.Effects.Deleted > 0
		})
		if b.N == a.N {
			return
		}
	}
	t.Error("what is deleted later is never told with the command")
}
