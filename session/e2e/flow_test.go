package e2e

import (
	"strings"
	"testing"
)

// Ten questions of an agent that asks one after the other, each once the last was answered,
// take at most fifteen keys from its terminal, and no key for them reaches it.
func TestTenQuestions(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("agent.sh", `uname -m; uname -s; uname -r; expr 1 + 1; id -u
sh -c 'echo more >>notes.txt'
date +%Y; dirname /a/b; cat notes.txt
read -r line; echo "it got <$line>"
`)
	p.write("notes.txt", "notes\n")
	tm := p.open(80, 24, "run", "--name", "ten", "--mode", "step", "--", "sh", "agent.sh")
	tm.held("#1 held")
	tm.tick()
	keys := 0
	asks := func() bool { return strings.Contains(tm.text(), "keys answer this question") }
	for _, q := range []string{
		"#1 command", "#2 command", "#3 command", "#4 command", "#5 command", "#6 command", "#6 edit", "#7 command", "#8 command", "#9 command",
	} {
		title := "◆ " + q + " held"
		tm.until("it is asked: "+title, func() bool {
			return strings.Contains(tm.text(), title) && asks() || strings.Contains(tm.last(), "open it") && strings.Contains(tm.last(), "◆")
		})
		if !asks() {
			keys += 2
			tm.ask(title)
		}
		key := "a"
		if strings.HasSuffix(q, "edit") {
			tm.shows("+ more")
			key = "y"
		}
		tm.answer(key, "answered: "+title, func() bool { return !strings.Contains(tm.text(), title) })
		keys++
		tm.press(key) // a second one, at once, is nobody's
	}
	if keys > 15 {
		t.Errorf("ten answers took %d keys", keys)
	}
	tm.gone("Nothing waits") // after a while the keys are the agent's again
	tm.tick()
	tm.press("the end" + enter)
	tm.agentShows("it got <the end>")
}
