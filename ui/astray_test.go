package ui

import (
	"strings"
	"testing"
)

// A key that means nothing where it is pressed is answered on the last line with what does.
func TestAstrayKeysAreAnswered(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		press []string
		want  string
	}{
		{"deny in Changes", []string{leader, "2", "d"}, "d is for Actions: 4 goes there"},
		{"a tree's key in Actions", []string{leader, "4", "t"}, "t is for Changes: 2 goes there"},
		{"quit in a pane", []string{leader, "3", "q"}, "q does nothing here: ctrl+] h does that"},
		{"no key of ours", []string{leader, "4", "$"}, "$ does nothing here: ? shows what does"},
		{"after the leader", []string{leader, "$"}, "$ does nothing after ctrl+]: ctrl+] ? shows what does"},
		{"in a question", []string{leader, "a", "x"}, "x does nothing here: a approve once"},
		{"in details", []string{leader, "i", "x"}, "x does nothing here: ? shows what does"},
		{"in a confirmation", []string{leader, "2", "ctrl+k", "Z"}, "Z does nothing here: y kill everything in it · n no"},
		{"too soon", []string{leader, "4", "a"}, tooSoonWords},
	} {
		t.Run(c.name, inBubble(func(t *testing.T) {
			d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
			d.press(c.press...)
			rows := strings.Split(strings.TrimRight(d.text(), "\n"), "\n")
			if last := rows[len(rows)-1]; !strings.Contains(last, c.want) {
				t.Errorf("the last line is %q", last)
			}
			if got := d.c.LastTerminal().Got(); got != "" {
				t.Errorf("the agent got %q", got)
			}
			d.decided()
		}))
	}
}

// In a narrow terminal, and in the list of sessions.
func TestAstrayKeysElsewhere(t *testing.T) { alone(t, testAstrayKeysElsewhere) }

func testAstrayKeysElsewhere(t *testing.T) {
	narrow := bench(t, sceneWorkbench(sceneQuestion()), 80, 24, "plain")
	narrow.press(leader, "a", "x")
	narrow.shows("x does nothing here: a approve once · ")
	narrow.lacks("deciding: ") // which would cut it
	edit := bench(t, sceneWorkbench(sceneEdit()), 80, 24, "plain")
	edit.press(leader, "a", "x")
	edit.shows("x does nothing here: y keep · u roll back… · d roll back, why… · esc later")
	d := drive(t, sceneWorkbench(), 100, 30, Options{Config: themed("plain")})
	d.shows("fix-tests")
	d.press("$")
	d.shows("$ does nothing here: ? shows what does")
	d.press("esc")
	d.shows("nothing is open here: q leaves Stepbox")
}

const tooSoonWords = "too soon: keys count 0.4 s after"

// Esc where nothing is open says so, too.
func TestEscWhereNothingIsOpen(t *testing.T) { alone(t, testEscWhereNothingIsOpen) }

func testEscWhereNothingIsOpen(t *testing.T) {
	d := drive(t, sceneWorkbench(), 120, 35, Options{Config: themed("plain"), Session: sceneSession().ID, Watching: true})
	d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() })
	d.press("esc")
	d.shows("nothing is open here: ctrl+] d leaves")
	d.decided()
}
