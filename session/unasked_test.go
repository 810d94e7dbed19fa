package session_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stepbox/session"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// asking starts a session that asks about each command but says what becomes of questions.
func asking(t *testing.T, a api.Asking, script string) *world {
	t.Helper()
	return startConfigured(t, func(string) {}, func(c *session.Config) { c.Mode, c.Asking = api.ModeStep, a }, "bash", "-c", script)
}

func TestNobodyIsAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		a    api.Asking
		why  string
	}{
		{"deny", api.Asking{On: api.OnAskDeny}, "--on-ask deny"},
		{"timeout", api.Asking{Timeout: 10 * time.Millisecond}, "--ask-timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := asking(t, c.a, "cat a.txt; echo $? > code; sed -i s/hello/there/ a.txt; echo $? >> code")
			<-w.Done()
			denied := 0
			for e, err := range w.read.Events(t.Context(), w.ID(), 0) {
				must.OK(t, err)
				if d := e.Decision; d != nil {
					denied++
					if d.Answer != api.AnswerDeny || d.By != "stepbox" || !strings.Contains(d.Reason, c.why) {
						t.Errorf("decided %+v", *d)
					}
				}
				if q := e.Question; q != nil && e.Kind == "question.closed" && q.Closed != "deny" && q.Subject == api.SubjectCommand {
					t.Errorf("question %d is %s", q.ID, q.Closed)
				}
			}
			if denied != 2 {
				t.Errorf("%d were denied", denied)
			}
			if got := w.has("code"); got != "126\n126\n" {
				t.Errorf("the agent saw %q", got)
			}
		})
	}
}

// What is answered in time is as it was answered.
func TestAnswerBeforeTheTimeout(t *testing.T) {
	t.Parallel()
	w := asking(t, api.Asking{Timeout: time.Hour}, "cat a.txt")
	q := w.held(0)
	w.must(w.decide(q, api.AnswerApprove))
	<-w.Done()
	if s := w.over(); s.Denials != 0 || s.Actions != 1 {
		t.Errorf("it ended as %+v", s)
	}
}

// What policies say of questions counts beside what the session was started with, the
// stricter wins, and a change holds for what is asked already.
func TestPoliciesSayWhetherQuestionsWait(t *testing.T) {
	t.Parallel()
	w := asking(t, api.Asking{Timeout: time.Hour}, "cat a.txt")
	w.held(0)
	file := filepath.Join(w.project, ".stepbox.yaml")
	said := func(want api.Asking) func(api.Event) bool {
		return func(e api.Event) bool { return e.Kind == "session.ruled" && e.Session.Asking == want }
	}
	w.writes(file, "ask: {on: wait, timeout: 2h}\n")
	w.happened("a longer time", said(api.Asking{Timeout: time.Hour, By: "--ask-timeout"}))
	w.writes(file, "ask: {timeout: 30m}\n")
	w.happened("a shorter time", said(api.Asking{Timeout: 30 * time.Minute, By: "ask, " + file + ":1"}))
	w.writes(file, "version: 1\nask: {on: deny}\n") // which nobody confirmed: it only takes away
	<-w.Done()
	s := w.over()
	if got := s.Asking; got.On != api.OnAskDeny || got.Timeout != time.Hour || !strings.HasSuffix(got.By, "/.stepbox.yaml:2") || s.Denials != 1 {
		t.Errorf("it ended as %+v, with %d denied", got, s.Denials)
	}
}
