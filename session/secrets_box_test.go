package session_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// A secret that the host makes while the session runs, by a name that tells, is
// out of the agent's reach from the first moment on.
func TestSecretsThatComeLater(t *testing.T) {
	t.Parallel()
	w := startWith(t, api.ModeWatch, `mkfifo /tmp/feed; exec 3<>/tmp/feed; read -u 3 x; cat .env sub/.env late >found 2>&1; echo own >.npmrc; touch end; read -u 3 x`, func(project string) {
		must.OK(t, os.Mkdir(filepath.Join(project, "sub"), 0o755))
		must.OK(t, os.WriteFile(filepath.Join(project, "sub/.env.example"), nil, 0o644))
	})
	do := w.feed("feed")
	for name, text := range map[string]string{".env": "hunter2", "sub/.env": "hunter2", "late": "seen"} {
		w.must(os.WriteFile(filepath.Join(w.project, name), []byte(text+"\n"), 0o644))
	}
	do("go")
	w.upperHas("end", true)
	found, err := os.ReadFile(filepath.Join(w.store.SessionDir(w.ID()), "upper", "found"))
	w.must(err)
	if text := string(found); strings.Contains(text, "hunter2") || !strings.Contains(text, "seen") {
		t.Errorf("the agent found:\n%s", text)
	}
	if got := w.changed(0); !slices.Equal(got, []string{"A .npmrc", "A end", "A found"}) {
		t.Errorf("the changes are %v", got)
	}
}

// An agent that looks for secrets finds none of them, neither by reading nor in
// what git says, and git goes on working.
func TestSecretsOfTheProjectAreOutOfReach(t *testing.T) {
	t.Parallel()
	needGit(t)
	script := `{ grep -rs hunter2 . ; find . -name '*.pem' -o -name .npmrc -o -name .aws
git config --list; git remote -v; } >found 2>&1
git remote add two https://example.com/two.git && git config -l >after; sleep 60`
	secret := "[remote \"o\"]\n\turl = https://me:hunter2@example.com/one.git\n[http]\n\textraheader = Authorization: hunter2\n"
	w := startWith(t, api.ModeWatch, script, func(project string) {
		gitIn(t, project, "init", "-q")
		config, err := os.OpenFile(filepath.Join(project, ".git/config"), os.O_APPEND|os.O_WRONLY, 0)
		must.OK(t, err)
		defer config.Close()
		if _, err := config.WriteString(secret); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a/b/c/d/e/f/key.pem", ".npmrc", ".aws/credentials", "prod.env", "infra/terraform.tfstate"} {
			p := filepath.Join(project, name)
			must.OK(t, os.MkdirAll(filepath.Dir(p), 0o755))
			must.OK(t, os.WriteFile(p, []byte("hunter2\n"), 0o644))
		}
	})
	w.happened("git remote add", func(e api.Event) bool {
		return e.Kind == "action.ended" && e.Action.Title == "git config -l"
	})
	upper := filepath.Join(w.store.SessionDir(w.ID()), "upper")
	found, err := os.ReadFile(filepath.Join(upper, "found"))
	w.must(err)
	if text := string(found); strings.Contains(text, "hunter2") || strings.Contains(text, "key.pem") || strings.Contains(text, ".npmrc") || strings.Contains(text, ".aws") {
		t.Errorf("the agent found:\n%s", text)
	}
	if !strings.Contains(string(found), "https://example.com/one.git") {
		t.Errorf("git doesn't know its remote any more:\n%s", found)
	}
	after, err := os.ReadFile(filepath.Join(upper, "after"))
	w.must(err)
	if text := string(after); !strings.Contains(text, "remote.two.url=https://example.com/two.git") || !strings.Contains(text, "remote.o.url=https://example.com/one.git") {
		t.Errorf("git can't change its configuration:\n%s", text)
	}
	for d, err := range w.read.Diffs(t.Context(), w.ID(), api.Scope{}) {
		w.must(err)
		for _, h := range d.Hunks {
			for _, l := range h.Lines {
				if strings.Contains(l.Text, "hunter2") {
					t.Errorf("the difference of %s shows %q", d.Change.Path, l.Text)
				}
			}
		}
	}
}

// What git has isn't hidden, however it is called: no commit of all changes deletes it,
// by whatever index it is made.
func TestWhatGitHasIsntHidden(t *testing.T) {
	t.Parallel()
	var head string
	w := startWith(t, api.ModePolicy, "git status --porcelain >status; git read-tree HEAD; echo more >>a.txt; git -c user.name=a -c user.email=a@b commit -qam two; git ls-tree --name-only HEAD >tree; git diff --name-status HEAD^ >diff; ls -a >there; read x", func(project string) {
		gitIn(t, project, "init", "-q")
		must.OK(t, os.WriteFile(filepath.Join(project, ".npmrc"), []byte("//r/:_authToken=hunter2\n"), 0o600))
		gitIn(t, project, "add", "-A")
		gitIn(t, project, "commit", "-q", "-m", "one")
		head = gitIn(t, project, "rev-parse", "HEAD")
		must.OK(t, os.WriteFile(filepath.Join(project, "key.pem"), []byte("key"), 0o600))
	})
	w.action("the last command's end", func(a api.Action) bool { return a.Title == "ls -a" && a.State == api.ActionEnded })
	if got := w.has("tree"); !strings.Contains(got, ".npmrc") {
		t.Errorf("the commit has %q", got)
	}
	if got := w.has("diff"); got != "M\ta.txt\n" {
		t.Errorf("the commit changed %q", got)
	}
	if got := w.has("status"); got != "?? status\n" {
		t.Errorf("git finds %q", got)
	}
	if got := w.has("there"); !strings.Contains(got, ".npmrc") || strings.Contains(got, "key.pem") {
		t.Errorf("hidden is what git has, or what it hasn't is not: %q", got)
	}
	if got := gitIn(t, w.project, "status", "--porcelain"); got != "?? key.pem" || gitIn(t, w.project, "rev-parse", "HEAD") != head {
		t.Errorf("the project changed: %q", got)
	}
}

// A credential that the agent doesn't have isn't recorded either, when it comes to know it.
func TestCredentialsAreNotRecorded(t *testing.T) {
	t.Parallel()
	const value = "of-no-known-shape-42"
	w := startConfigured(t, func(string) {}, func(c *session.Config) {
		c.Mode, c.Credentials, c.Env = api.ModeWatch, []string{"mistral"}, append(c.Env, "MISTRAL_API_KEY="+value)
	}, "bash", "-c", "/bin/echo "+value+"; read x")
	a := w.action("what it says", func(a api.Action) bool { return strings.HasPrefix(a.Title, "/bin/echo") })
	if want := "/bin/echo " + api.Hidden; a.Title != want {
		t.Errorf("it is recorded as %s", a.Title)
	}
	events, err := w.store.Events(t.Context(), w.ID(), 0, 1000)
	w.must(err)
	for _, e := range events {
		if strings.Contains(string(e.Doc), value) {
			t.Errorf("%s has it: %s", e.Event, e.Doc)
		}
	}
}
