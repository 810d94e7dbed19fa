package e2e

import (
	"strings"
	"testing"
)

// Keys pressed before a question was in view, and the keyboard silent, for the
// quiet time don't answer it, wherever keys answer questions.
func TestKeysInFlightNeverDecide(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("agent.sh", "uname -m\nuname -s\n")
	tm := p.open(120, 35, "run", "--name", "s", "--mode", "step", "--", "sh", "agent.sh")
	tm.held("#1 held")

	// In the opened question: all in one go, as from a keyboard that was ahead.
	tm.press(leader + "aaaaayio")
	tm.shows("◆ #1 command held", "too soon")
	p.holds("s", 1)
	tm.shows("keys answer this question")
	// Once it takes keys, other keys make it wait again.
	tm.press("vvvva")
	tm.until("it waits again", func() bool {
		return strings.Contains(tm.text(), "too soon") && strings.Contains(tm.text(), "keys answer this question")
	})
	p.holds("s", 1)

	// In the list.
	tm.press(escape)
	tm.gone("◆ #1 command held")
	tm.press(leader + "4aaa")
	tm.shows("too soon")
	p.holds("s", 1)

	// In what asks for a reason: a line that was ahead isn't sent.
	tm.awake("d deny")
	tm.press("d" + enter + enter)
	tm.shows("Deny command")
	p.holds("s", 1)
	tm.press(escape)
	tm.gone("Deny command")

	// After the window comes back to the front all is new to the eye.
	tm.press(leader + "a")
	tm.shows("keys answer this question")
	tm.press("\x1b[O\x1b[Ia")
	tm.tick()
	p.holds("s", 1)

	// A calm key does answer, once, and not what comes next. Another is pressed before it, as
	// one that may have been held down since then answers nothing. While the answer is on its
	// way it was too soon for those that came next alone.
	for answered := false; !answered; {
		tm.press("v")
		tm.gone("too soon") // that was about the keys before
		tm.tick()
		tm.shows("keys answer this question")
		tm.press("aaaa")
		tm.until("approved, or too soon", func() bool {
			now := tm.text()
			answered = !strings.Contains(now, "◆ #1 command held")
			return answered || strings.Contains(now, "too soon") && !strings.Contains(now, "the answer is on its way")
		})
	}
	tm.held("#2 held")
	p.holds("s", 2)
	tm.tick()
	p.holds("s", 2)
}

// What is typed or pasted for the agent never answers a question that comes up
// meanwhile, and all of it reaches the agent.
func TestTypingToTheAgentNeverDecides(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("agent.sh", "echo what is your name\nread -r name\ntouch made\nread -r more\nread -r pasted\necho \"got: $name, $more, $pasted.\"\n")
	tm := p.open(120, 35, "run", "--name", "s", "--mode", "step", "--", "sh", "agent.sh")
	tm.agentShows("what is your name")
	tm.press("anna" + enter + "aaayuin" + enter)
	tm.held("#1 held")
	tm.agentShows("aaayuin")
	tm.press("\x1b[200~a\x1b[201~" + enter)
	tm.tick()
	p.holds("s", 1)
	tm.ask("◆ #1 command held")
	tm.press("\x1b[200~a\x1b[201~") // pasted at a question
	tm.tick()
	p.holds("s", 1)
	tm.answer("a", "approved", func() bool { return !strings.Contains(tm.text(), "◆ #1 command held") })
	tm.agentShows("got: anna, aaayuin, a.")
}

// Clicks decide nothing, wherever they land.
func TestClicksNeverDecide(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("agent.sh", "touch made\n")
	tm := p.open(80, 24, "run", "--name", "s", "--mode", "step", "--", "sh", "agent.sh")
	tm.held("#1 held")
	clicks := func() {
		var b strings.Builder
		for y := 1; y <= 24; y++ {
			for x := 1; x <= 80; x += 5 {
				mouse(&b, x, y)
			}
		}
		tm.press(b.String())
		tm.tick()
		p.holds("s", 1)
	}
	clicks()
	tm.ask("◆ #1 command held")
	clicks()
	tm.answer("a", "approved", func() bool { return !strings.Contains(tm.text(), "◆ #1 command held") })
	tm.until("the title says that it ended", func() bool { return strings.Contains(tm.first(), "ENDED") })
}
