package e2e

import (
	"strings"
	"testing"

	"stepbox/session/api"
)

// What two agents over one folder ask is answered from the first screen: at once where both
// ask the same, and each by itself where they don't. Nothing of it happens before.
func TestAnsweredFromHome(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	for _, name := range []string{"one", "two"} {
		p.write("agent.sh", "touch same\ntouch only-$1\necho all of it done by $1\nread -r line\n")
		p.do("run", "--name", name, "--mode", "step", "--detach", "--", "sh", "agent.sh", name)
	}
	tm := p.open(120, 35)
	tm.until("both ask the same", func() bool {
		in := strings.Join(tm.box("Held in all sessions"), "\n")
		return strings.Contains(in, "touch same") && strings.Contains(in, "2×")
	})
	p.holds("one", 1)
	p.holds("two", 1)
	tm.press("\t")
	kept := func(name string, n int) func() bool {
		return func() bool {
			for _, a := range p.show(name).List {
				if a.N == n {
					return a.Review == api.ReviewKept
				}
			}
			return false
		}
	}
	tm.answer("b", "both ran", func() bool { return kept("one", 1)() && kept("two", 1)() })
	tm.until("each asks something of its own", func() bool {
		in := strings.Join(tm.box("Held in all sessions"), "\n")
		return strings.Contains(in, "touch only-one") && strings.Contains(in, "touch only-two") && !strings.Contains(in, "×")
	})
	p.holds("one", 2)
	p.holds("two", 2)
	if !strings.Contains(tm.text(), "┏ Held in all sessions") { // it keeps the keys for a moment
		tm.press("\t")
	}
	tm.shows("┏ Held in all sessions")
	tm.press(enter)
	tm.shows("command held", "Held in all sessions")
	name := "one" // whichever asked first
	if strings.Contains(tm.box("Held in all sessions")[0], "only-two") {
		name = "two"
	}
	tm.answer("b", "the one that was opened ran", kept(name, 2))
	tm.until("the next one follows", func() bool {
		return strings.Contains(tm.text(), "command held") && len(p.show(name).Questions) == 0
	})
	other := map[string]string{"one": "two", "two": "one"}[name]
	tm.answer("b", "so did the other", kept(other, 2))
	tm.gone("Held in all sessions")
	tm.shows("all of it done by one", "all of it done by two") // the last line of each
	tm.press("q")
	if code, _ := tm.ended(); code != 0 {
		t.Errorf("exit %d", code)
	}
}
