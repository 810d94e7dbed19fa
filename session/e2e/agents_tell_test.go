package e2e

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/standin"
)

// An agent whose profile sets up hooks and the tools of stepbox mcp has both beside
// what is brought of the person's own settings: its calls are claims beside the actions
// that came of them, its tools answer, and nothing of either is asked about.
func TestAgentsTell(t *testing.T) {
	const reason = "Kim still needs it"
	each(t, func(t *testing.T, a *agent, p *person, model *standin.Server) {
		if a.tool == nil {
			t.Skipf("no profile sets up hooks and tools for %s", a.name)
		}
		put := strings.NewReplacer("URL", "http://host.stepbox.internal:"+model.Port(), "PROJECT", p.project)
		for name, text := range a.own {
			p.put(filepath.Join(p.home, name), put.Replace(text))
		}
		p.write("server", "#!/bin/sh\nexec cat\n") // speaks nothing
		model.Add(calls(
			a.shell("ls"),
			a.shell("rm old.txt"),
			a.tool("why_denied", object{}),
			a.tool("ask_person", object{"text": "May I go on?"}),
		)...)
		r := a.run(t, p, model, "step", "told", append(a.ask, "tidy up"), func(q api.Question) (api.Answer, string) {
			if strings.Contains(q.Title, "rm ") {
				return api.AnswerDeny, reason
			}
			return api.AnswerApprove, "as you like"
		})
		for i, want := range []string{"calc.py", reason, "rm old.txt: denied by test: " + reason, "as you like"} {
			if got := results(t, model, 4)[i]; !strings.Contains(got, want) {
				t.Errorf("call %d gave %q, want %q in it", i, got, want)
			}
		}
		var asked []string
		for _, q := range r.asked {
			if q.Title != p.project+"/server" { // which is the person's own
				asked = append(asked, q.Title)
			}
		}
		if len(asked) != 3 || !slices.Equal(asked[:2], []string{"ls", "rm old.txt"}) || !strings.Contains(asked[2], "May I go on?") {
			t.Errorf("asked were %q", asked)
		}
		s, claims := p.show("told"), 0
		for _, x := range s.List {
			if x.Claim != nil && (x.Title == "ls" || x.Title == "rm old.txt") {
				claims++
			}
		}
		if claims != 2 {
			t.Errorf("%d of 2 commands have a claim", claims)
		}
		if s.Brought == nil || len(s.Brought.Left) == 0 || len(r.asked) != len(asked)+1 {
			t.Errorf("brought is %+v, and asked were %+v", s.Brought, r.asked)
		}
		if r.exit != 0 || !strings.Contains(r.output, "The work is done.") {
			t.Errorf("exit %d: %s", r.exit, r.output)
		}
	})
}
