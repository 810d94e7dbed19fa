package e2e

import (
	"slices"
	"strings"
	"testing"
)

// A person replays a real session: files, terminal, network and actions are as they
// were, the past can be searched and decides nothing, and a live session goes on
// while its past is looked at.
func TestReplay(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("a.txt", "one\n")
	p.do("run", "--mode", "watch", "--name", "past", "--", "bash", "-c",
		`echo first words; sed -i s/one/two/ a.txt; sleep 0.3; echo second words; sed -i s/two/three/ a.txt; sleep 0.3; touch late.txt; curl -sS http://nowhere.example; clear; echo last words`)
	tm := p.open(120, 35, "replay", "past", "--at", "1")
	tm.shows("REPLAY", "first words", "1 file", "+ two", "sed -i s/one/two/")
	for _, later := range []string{"second words", "last words", "late.txt", "nowhere.example"} {
		tm.gone(later)
	}
	// To where the touch began. Each step is waited for: how many there are depends on
	// whether what the first action did was known before the second began.
	here := func() string {
		_, after, _ := strings.Cut(tm.rows()[33], " #")
		number, _, _ := strings.Cut(after, " ")
		return number
	}
	for at := here(); at != "5"; at = here() {
		tm.press("]")
		tm.until("it is further than #"+at, func() bool { return here() != at })
	}
	tm.shows("second words", "+ three", "touch late.txt")
	tm.until("the touch has begun, and done nothing", func() bool {
		return slices.ContainsFunc(tm.box("4 Actions"), func(r string) bool {
			return strings.Contains(r, "touch late.txt") && strings.Contains(r, "running")
		}) && !slices.ContainsFunc(tm.box("2 Changes"), func(r string) bool { return strings.Contains(r, "late.txt") })
	})
	tm.press("4w")
	tm.shows("this is the past")
	tm.press("\x1b[F") // end
	tm.shows("ENDED: exit 0", "last words", "A late.txt", "nowhere.example", "■")
	tm.gone("second words")
	tm.press("2\x1b[B@") // the second file: when it first changed
	tm.shows("REPLAY", "second words")
	tm.gone("nowhere.example")
	tm.press("+++++ ") // plays to its end
	tm.shows("■", "last words")

	p.do("run", "--mode", "step", "--name", "alive", "--detach", "--", "bash", "-c", "echo before; true one; /bin/true; read -r line; echo got $line; /bin/true again")
	tm = p.open(120, 35, "attach", "alive")
	tm.held("#1 held")
	tm.press(leader + "r")
	tm.shows("REPLAY", "◆ 1 held now")
	tm.press("[")
	tm.press("a")
	tm.shows("this is the past")
	p.holds("alive", 1)
	tm.press("L")
	tm.held("#1 held")
	tm.gone("REPLAY")
	p.do("kill", "alive")
	tm.shows("ENDED")
}
