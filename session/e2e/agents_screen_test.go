package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/standintest"
)

// screen starts the agent in a sandbox in its own screen and waits until it takes a prompt.
func (a *agent) screen(t *testing.T, p *person, model *standintest.Server, mode, name string, args ...string) *terminal {
	t.Helper()
	tm := p.start(120, 35, func(ctx context.Context) *exec.Cmd {
		flags := []string{"--mode", mode, "--name", name, "--allow-host", "host.stepbox.internal:" + model.Port()}
		return a.command(ctx, t, p, flags, args)
	})
	for _, title := range a.also { // what it does at its start holds it up
		if mode == "step" && strings.HasPrefix(title, "edit ") {
			tm.decide(tm.question(p, name, strings.TrimPrefix(title, "edit ")), "y")
		}
	}
	tm.agentShows(a.ready)
	return tm
}

// back waits until keys are the agent's again: while another question is awaited after an
// answer, and just after that, they don't reach it.
func (tm *terminal) back() {
	tm.t.Helper()
	tm.until("no question is awaited", func() bool { return !strings.Contains(tm.text(), "◇ deciding") })
	tm.tick()
}

// tell types a prompt and sends it.
func (tm *terminal) tell(prompt string) {
	tm.t.Helper()
	tm.back()
	tm.press(prompt)
	tm.agentShows(prompt)
	tm.press(enter)
}

// question waits until the screen says that something is held and asks about it, and
// says how the screen calls it.
func (tm *terminal) question(p *person, session, about string) string {
	tm.t.Helper()
	title := ""
	tm.until("it asks about "+about, func() bool {
		if !strings.HasPrefix(tm.last(), " ◆ ") {
			return false
		}
		for _, q := range p.show(session).Questions {
			if q.Open() && strings.Contains(q.Title, about) {
				switch q.Subject {
				case api.SubjectConnection:
					title = "◆ connection held"
				case api.SubjectCall:
					title = fmt.Sprintf("◆ #%d question of the agent's held", q.Action)
				default:
					title = fmt.Sprintf("◆ #%d %s held", q.Action, q.Subject)
				}
			}
		}
		return title != ""
	})
	return title
}

// deny denies the first question with a reason.
func (tm *terminal) deny(title, reason string) {
	tm.t.Helper()
	tm.ask(title)
	asks := func() bool { return strings.Contains(tm.text(), "Deny ") }
	tm.answer("d", "asks for a reason", asks)
	tm.press(reason)
	tm.shows(reason)
	tm.tick() // a line that was typed before the question was in view isn't sent
	tm.answer(enter, "denied", func() bool { return !asks() })
}

// A person works with the agent in its own screen: approves, denies with a reason, takes
// an edit back, stops a command, pastes, resizes, and leaves.
func TestAgentsScreen(t *testing.T) {
	const reason = "Kim still needs it"
	each(t, agents, func(t *testing.T, a *agent, p *person, model *standintest.Server) {
		if a.ready == "" {
			t.Skipf("nothing here drives %s in its own screen", a.name)
		}
		model.Add(calls(
			a.shell("ls"),
			a.shell("rm old.txt"),
			a.read(p.project+"/calc.py"),
			a.edit(p.project+"/calc.py", "    return a - b", "    return a + b"),
			a.shell("cat ./calc.py"),
		)...)
		tm := a.screen(t, p, model, "step", "screen")
		tm.tell("tidy up")
		tm.decide(tm.question(p, "screen", "ls"), "a", "$ ls")

		tm.deny(tm.question(p, "screen", "rm old.txt"), reason)

		if a.name == "codex" { // which reads with a command
			tm.decide(tm.question(p, "screen", "cat /"), "a")
		}
		edit := tm.question(p, "screen", "edit calc.py")
		tm.ask(edit)
		tm.answer("u", "shows what would go back", func() bool { return strings.Contains(tm.text(), "Roll back what ") })
		tm.shows("M calc.py")
		tm.tick()
		tm.answer("y", "taken back", func() bool { return !strings.Contains(tm.text(), edit) })
		tm.decide(tm.question(p, "screen", "cat ./calc.py"), "a")
		tm.agentShows("The work is done.")
		got := results(t, model, 5)
		// A hook tells of what was taken back with the edit, else the next command does.
		if !strings.Contains(got[1], reason) || !strings.Contains(got[4], "a - b") || !strings.Contains(got[3]+got[4], "rolled back by the person") {
			t.Errorf("the model was told %q", got)
		}

		// A command that runs is stopped by the agent's own key.
		model.Add(calls(a.shell("timeout 300 tail -f old.txt"))[0])
		tm.tell("wait a while")
		tm.decide(tm.question(p, "screen", "timeout 300 tail -f old.txt"), "a")
		tm.until("it runs", func() bool { return strings.Contains(strings.Join(tm.box("4 Actions"), "\n"), "running") })
		tm.back()
		tm.press(escape)
		if a.twice != "" {
			tm.agentShows(a.twice)
			tm.press(escape)
		}
		if a.stop != "" {
			tm.tick()
			tm.press(a.stop)
			tm.agentShows(a.stop)
			tm.tick() // else it takes the key for a part of pasted text
			tm.press(enter)
		}
		tm.until("it was stopped", func() bool { return !strings.Contains(strings.Join(tm.box("4 Actions"), "\n"), "running") })

		// Pasted text isn't taken for keys, and the agent draws anew at another size.
		tm.agentShows(a.ready)
		tm.press("\x1b[200~pasted text of two lines\nhere\x1b[201~")
		tm.agentShows("here")
		tm.resize(80, 24)
		tm.until("it is drawn anew", func() bool { return len(tm.rows()) == 24 && strings.Contains(tm.agent(), "here") })
		tm.resize(120, 35)
		tm.until("it is drawn anew", func() bool { return len(tm.rows()) == 35 && strings.Contains(tm.agent(), "here") })
		tm.tick() // a person reads first, and the agent takes quick keys for pasted ones
		tm.press(ctrlC)
		tm.until("the line is empty", func() bool { return !strings.Contains(tm.agent(), "pasted text") })
		tm.press(ctrlC)
		tm.press(ctrlC)
		tm.until("the title says that it ended", func() bool { return strings.Contains(tm.first(), "ENDED: exit 0") })
		tm.press(leader + "d")
		if code, words := tm.ended(); code != 0 {
			t.Errorf("exit %d: %s", code, words)
		}
		titles(t, a, p, p.show("screen"), "ls", "rm old.txt", "edit calc.py", "cat ./calc.py", "timeout 300 tail -f old.txt")

		// A following session takes the conversation up, and the work goes on in policy mode.
		rest := calls(
			a.read(p.project+"/calc.py"),
			a.edit(p.project+"/calc.py", "    return a - b", "    return a + b"),
			a.shell("./check.sh"),
			a.shell("git commit -qam 'Add instead of subtracting' && git log --oneline"),
			a.shell("rm old.txt"),
			a.shell("cat <>/dev/tcp/unknown.example/443; echo go''ing on"),
			a.shell("sleep 300 >/dev/null 2>&1 & echo started"),
		)
		model.Add(append(rest[:len(rest)-1], standintest.Say("It went on."))...)
		tm = a.screen(t, p, model, "policy", "following", a.resume...)
		tm.agentShows(cmp.Or(a.resumed, "wait a while"))
		tm.tell("go on")
		tm.deny(tm.question(p, "following", "unknown.example:443"), "nobody knows it")
		tm.agentShows("It went on.")
		turns := model.Turns()
		last := turns[len(turns)-1]
		if !last.Says(reason) || !last.Says("go on") {
			t.Errorf("the model was asked %s", last.Body)
		}
		if len(last.Results) < 7 {
			t.Fatalf("the model was told %q", last.Results)
		}
		got = last.Results[len(last.Results)-7:]
		for i, want := range []string{"a - b", "", "all tests passed", "Add instead of subtracting", "", "going on", "started"} {
			if !strings.Contains(got[i], want) {
				t.Errorf("call %d gave %q, want %q in it", i, got[i], want)
			}
		}
		titles(t, a, p, p.show("following"), "edit calc.py", "./check.sh", "git commit -qam 'Add instead of subtracting' && git log --oneline",
			"rm old.txt", "cat <>/dev/tcp/unknown.example/443; echo go''ing on", "sleep 300 >/dev/null 2>&1 & echo started")
		p.do("kill", "following")
	})
}
