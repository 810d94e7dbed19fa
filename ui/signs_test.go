package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"

	"stepbox/session/api"
	"stepbox/ui/config"
)

// With ASCII borders nothing of ours is beyond ASCII, whatever is shown.
func TestASCII(t *testing.T) {
	for name, keys := range map[string][]string{
		"terminal": nil, "actions": {leader, "4", "w"}, "details": {leader, "4", "k", "k", "enter"}, "decision": {leader, "a", "w"}, "raw": {leader, "a", "w", "v"},
		"help": {leader, "4", "?"}, "topics": {leader, "4", "?", "tab"}, "palette": {leader, ":"}, "menu": {leader, "w"}, "facts": {leader, "4", "I"}, "changes": {leader, "2", "enter"}, "network": {leader, "3", "g", "enter"},
		"apply": {leader, "2", "key w", "w"}, "clash": {leader, "2", "key w", "w", "j", "m", "w"}, "rollback": {leader, "4", "k", "k", "k", "w", "u", "w"}, "deny": {leader, "4", "w", "d", "n"},
		"filter": {leader, "4", "/", "key g"}, "replay": {leader, "r"}, "copy": {leader, "["}, "home": {leader, "h"},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			for _, size := range sizes {
				d := looking(t, size[0], size[1], sceneQuestion(), func(c *config.Config) { c.Borders = config.ASCIIBorders })
				look(d, keys)
				d.idle()
				for _, line := range strings.Split(d.content, "\n") {
					if strings.ContainsAny(line, "●⎿") { // the agent's own
						continue
					}
					for _, r := range line {
						if r > 0x7e {
							t.Fatalf("%d×%d: %q in %q", size[0], size[1], r, line)
						}
					}
				}
			}
		}))
	}
}

// Signs of ours in what the agent runs are spelled out: they aren't taken for the program's.
func TestASCIIOfAnAgent(t *testing.T) { alone(t, testASCIIOfAnAgent) }

func testASCIIOfAnAgent(t *testing.T) {
	q := sceneQuestion()
	q.Title, q.Command.Line = "git push —force › x", "git push —force › x"
	d := looking(t, 120, 35, q, func(c *config.Config) { c.Borders = config.ASCIIBorders })
	d.press(leader, "a", "w")
	d.shows(`git push \u2014force \u203a x`)
}

// looking drives the workbench as a person has it look.
func looking(t *testing.T, cols, rows int, q api.Question, set func(*config.Config)) *driver {
	t.Helper()
	c := themed("plain")
	set(c)
	d := drive(t, sceneWorkbench(q), cols, rows, Options{Session: sceneSession().ID, Config: c})
	d.until("the session is shown", func() bool {
		return d.m.bench != nil && d.m.bench.Arrived() && d.c.LastTerminal() != nil
	})
	d.idle()
	d.advance(time.Second)
	return d
}

// Plain screens have no boxes and no signs, one pane at a time, and the cursor where the focus is.
func TestPlainGolden(t *testing.T) {
	for name, keys := range map[string][]string{
		"terminal": nil, "actions": {leader, "4", "w"}, "decision": {leader, "a", "w"}, "changes": {leader, "2"}, "network": {leader, "3"},
		"help": {leader, "4", "?"}, "palette": {leader, ":", "k"}, "apply": {leader, "2", "key w", "w"}, "home": {leader, "h"},
	} {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s-%dx%d", name, size[0], size[1]), inBubble(func(t *testing.T) {
				d := looking(t, size[0], size[1], sceneQuestion(), func(c *config.Config) { c.Plain = true })
				look(d, keys)
				d.idle()
				for _, line := range strings.Split(d.content, "\n") {
					if strings.ContainsAny(line, "│─━┃▐✓✗◆") {
						t.Errorf("there is a sign in %q", line)
					}
				}
				if c := d.frame.Cursor; c == nil || c.Blink {
					t.Errorf("the cursor is %v", c)
				}
				d.advance(time.Second)
				was := d.content
				d.advance(time.Second)
				if name != "home" && d.content != was {
					t.Errorf("it changes by itself: %s\n%s", was, d.content)
				}
				golden.RequireEqual(t, []byte(d.content))
			}))
		}
	}
}

// look presses keys; w waits, as for golden screens.
func look(d *driver, keys []string) {
	for _, k := range keys {
		if k == "w" {
			d.advance(time.Second)
			continue
		}
		d.press(strings.TrimPrefix(k, "key "))
	}
	d.idle()
}
