package session_test

import (
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// gitServer is an empty repository that a service of this machine takes pushes to.
func gitServer(t *testing.T) (repository, port string) {
	t.Helper()
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Skipf("git isn't installed: %v", err)
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := exec.LookPath(backend); err != nil {
		t.Skipf("git's server isn't installed: %v", err)
	}
	root := t.TempDir()
	repository = filepath.Join(root, "a.git")
	gitIn(t, root, "init", "-q", "--bare", "-b", "main", repository)
	gitIn(t, repository, "config", "http.receivepack", "true")
	gitIn(t, repository, "config", "receive.autogc", "false") // it would outlive the test
	srv := httptest.NewServer(&cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}})
	t.Cleanup(srv.Close)
	at, err := url.Parse(srv.URL)
	must.OK(t, err)
	return repository, at.Port()
}

// A push is asked about once: where it leaves, with what it sends. Answered for always, the
// next session pushes without a question.
func TestAPushIsAskedAboutOnce(t *testing.T) {
	t.Parallel()
	repository, port := gitServer(t)
	var head string
	w := startWith(t, api.ModePolicy, "git push origin main; read x", func(project string) {
		gitIn(t, project, "init", "-q", "-b", "main")
		gitIn(t, project, "add", "a.txt")
		gitIn(t, project, "commit", "-q", "-m", "one")
		gitIn(t, project, "remote", "add", "origin", "http://host.stepbox.internal:"+port+"/a.git")
		head = gitIn(t, project, "rev-parse", "HEAD")
	})
	ended := func(e api.Event) bool { return e.Kind == "action.ended" && e.Action.Title == "git push origin main" }
	pushed := func() {
		t.Helper()
		if a := w.happened("the push", ended).Action; a.Exit == nil || a.Exit.Code != 0 {
			t.Fatalf("it ended with %+v", a.Exit)
		}
		if got := gitIn(t, repository, "rev-parse", "main"); got != head {
			t.Errorf("%s came, %s was pushed", got, head)
		}
	}
	q := w.asks(api.Question{}, "host.stepbox.internal:"+port)
	if got := q.Connection.Sent(); len(got) != 1 || got[0] != "pushes main to http://host.stepbox.internal:"+port+"/a.git" || q.Action == 0 {
		t.Errorf("of #%d, it is said to send %q", q.Action, got)
	}
	if refs := gitIn(t, repository, "for-each-ref"); refs != "" {
		t.Errorf("it is asked about, and %s is there", refs)
	}
	w.must(w.answer(q, api.AnswerApprove, api.ExtentAlways, ""))
	pushed()
	w.reads(w.policy(), "network:\n  - allow: host.stepbox.internal:"+port+" # TODAY\n")
	_, err := w.Kill(t.Context())
	w.must(err)
	gitIn(t, repository, "update-ref", "-d", "refs/heads/main")

	cfg := w.config
	cfg.ID += "2"
	w.Session, err = session.Start(t.Context(), w.store, cfg)
	w.must(err)
	w.read = w.Reader()
	e := w.happened("the push, or a question", func(e api.Event) bool { return e.Question != nil || ended(e) })
	if e.Question != nil {
		t.Fatalf("it asks about %s", e.Question.Title)
	}
	pushed()
}
