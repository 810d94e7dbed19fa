package e2e

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/standintest"
	"stepbox/session/tell"
)

// An agent whose profile sets up the tools of stepbox mcp, and hooks, has them beside
// what is brought of the person's own settings: its model is offered the tools and they
// answer, its calls are claims beside the actions that came of them, and nothing of
// either is asked about.
func TestAgentsTell(t *testing.T) {
	const reason = "Kim still needs it"
	each(t, agents, func(t *testing.T, a *agent, p *person, model *standintest.Server) {
		if a.tool == nil {
			t.Skipf("%s has no setting for servers of tools", a.name)
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
			if q.Subject == api.SubjectEdit {
				return approving(q)
			}
			return api.AnswerApprove, "as you like"
		})
		for i, want := range []string{"calc.py", reason, "rm old.txt: denied by test: " + reason, "as you like"} {
			if got := results(t, model, 4)[i]; !strings.Contains(got, want) {
				t.Errorf("call %d gave %q, want %q in it", i, got, want)
			}
		}
		for _, tool := range []string{tell.ToolMay, tell.ToolWhy, tell.ToolChanges, tell.ToolCheckpoint, tell.ToolTakeBack, tell.ToolAsk} {
			// Codex has its model look for tools by code, and lists none of them.
			if first := model.Turns()[0]; a.name != "codex" && !strings.Contains(strings.Join(first.Tools, " ")+string(first.Body), tool) {
				t.Errorf("the model isn't offered %s, but %q", tool, first.Tools)
			}
		}
		var asked []string
		server := false // the person's own is asked about
		for _, q := range r.asked {
			switch {
			case q.Title == p.project+"/server":
				server = true
			case !slices.Contains(a.also, q.Title):
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
		if want := map[bool]int{true: 2}[a.tells]; claims != want {
			t.Errorf("%d commands have a claim, want %d", claims, want)
		}
		if s.Brought == nil || len(s.Brought.Left) == 0 || !server {
			t.Errorf("brought is %+v, and asked were %+v", s.Brought, r.asked)
		}
		if r.exit != 0 || !strings.Contains(r.output, "The work is done.") {
			t.Errorf("exit %d: %s", r.exit, r.output)
		}
	})
}

// asking is an agent that asks at its own prompt before it runs a command.
type asking struct {
	args  []string
	files map[string]string // in its home, instead of those that keep it from asking
	ready string
	after bool // its own prompt comes only when nobody answered Stepbox's question
}

// An agent's own prompt is a question, too: a yes lets it go on, a no reaches its model
// with the reason, and an answer at the agent's own prompt withdraws the question.
func TestAgentsPrompt(t *testing.T) {
	const reason = "Kim does that herself"
	each(t, agents, func(t *testing.T, a *agent, p *person, model *standintest.Server) {
		if a.asking == nil {
			t.Skipf("%s has no hook for its own prompts", a.name)
		}
		with := *a
		with.args, with.ready, with.files = a.asking.args, a.asking.ready, maps.Clone(a.files)
		maps.Copy(with.files, a.asking.files)
		with.prepare(p, model)
		model.Add(calls(a.shell("touch first"), a.shell("touch second"))...)
		tm := with.screen(t, p, model, "policy", "prompt")
		tm.tell("do it")
		tm.decide(tm.question(p, "prompt", "touch first"), "a", "may it use")
		tm.deny(tm.question(p, "prompt", "touch second"), reason)
		tm.agentShows("The work is done.")
		if got := results(t, model, 2); !strings.Contains(got[1], reason) {
			t.Errorf("the model was told %q", got)
		}

		if !a.asking.after {
			model.Add(calls(a.shell("touch third"))[0])
			tm.agentShows(with.ready)
			tm.tell("and more")
			tm.question(p, "prompt", "touch third")
			tm.tick()
			tm.press(escape)
			tm.agentShows(with.ready)
			model.Add(standintest.Say("It goes on."))
			tm.tell("never mind")
			tm.agentShows("It goes on.")
			tm.until("nothing is held", func() bool { return !strings.HasPrefix(tm.last(), " ◆ ") })
		}
		for _, x := range p.show("prompt").List {
			if x.Kind == api.KindCommand && (strings.Contains(x.Title, "second") || strings.Contains(x.Title, "third")) {
				t.Errorf("it ran %s", x.Title)
			}
		}
		p.do("kill", "prompt")
	})
}
