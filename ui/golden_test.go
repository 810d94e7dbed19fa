package ui

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
)

var sizes = [][2]int{{80, 24}, {120, 35}, {200, 50}}

// Golden screens: what a person sees, cell by cell, colours included. Run with
// -update after a change that is meant, and look at the difference.
func TestGolden(t *testing.T) {
	scenes := []struct {
		name  string
		open  func(t *testing.T, cols, rows int, theme string) *driver
		shows string
	}{
		{"home", func(t *testing.T, w, h int, theme string) *driver {
			d := drive(t, sceneWorkbench(), w, h, Options{Config: themed(theme), Version: "v0.1.0"})
			d.shows("fix-tests")
			if w >= 120 {
				d.shows("Last actions")
			} else {
				d.shows("Screen of")
			}
			return d
		}, "fix-tests"},
		{"calm", keysOn(nil), ""},
		{"held", keysOn([]api.Question{sceneQuestion()}), ""},
		{"held-actions", keysOn([]api.Question{sceneQuestion()}, leader, "4", "w"), ""},
		{"held-leader", keysOn([]api.Question{sceneQuestion()}, leader), ""},
		{"decision", keysOn([]api.Question{sceneQuestion()}, leader, "a", "w"), ""},
		{"decision-waits", keysOn([]api.Question{sceneQuestion()}, leader, "a"), ""},
		{"decision-raw", keysOn([]api.Question{sceneQuestion()}, leader, "a", "w", "v"), ""},
		{"decision-long", keysOn([]api.Question{sceneQuestion(), sceneLongQuestion()}, leader, "a", "tab", "w"), ""},
		{"deny", keysOn([]api.Question{sceneQuestion()}, leader, "4", "w", "d", "n", "o"), ""},
		{"rollback", keysOn(nil, leader, "4", "k", "k", "k", "w", "u", "w"), "Roll back"},
		{"apply", keysOn(nil, leader, "2", "key w", "w"), "4 to write"},
		{"apply-clash", keysOn(nil, leader, "2", "key w", "w", "j", "m", "w", "j", "w"), "1 of 1, line 4"},
		{"rollback-conflict", keysOn(nil, leader, "4", "k", "k", "w", "u", "w", "j", "w"), "2 in conflict"},
		{"applies", func(t *testing.T, w, h int, theme string) *driver {
			d := bench(t, sceneWorkbench(), w, h, theme)
			a := sceneApplied()
			d.c.SetApplied(a)
			d.c.Put(api.Event{Apply: &a})
			d.idle()
			d.press(leader, "4", "Z")
			return d
		}, "6 files"},
		{"end-summary", func(t *testing.T, w, h int, theme string) *driver {
			d := bench(t, sceneWorkbench(), w, h, theme)
			over(d)
			d.advance(time.Second)
			return d
		}, "w apply"},
		{"kill", keysOn(nil, leader, "4", "w", "ctrl+k", "w"), "Kill"},
		{"help", keysOn(nil, leader, "4", "?"), "Keys"},
		{"details", keysOn(nil, leader, "4", "k", "k", "enter"), "Command #11"},
		{"facts", func(t *testing.T, w, h int, theme string) *driver {
			d := bench(t, sceneWorkbench(), w, h, theme)
			for i := range int64(40) {
				d.c.Put(api.Event{Usage: &api.Usage{CPU: float64(i*i%17) / 8, Memory: (300 + 12*i) << 20, Pids: 12}})
				d.c.Put(api.Event{Attempt: &api.Attempt{ID: 99, At: sceneNow, Protocol: "tcp", Name: "example.org", Port: 443, Verdict: api.Allow, Open: true, Received: max(0, i-25) * 300 << 10}})
				d.idle()
				d.advance(time.Second)
			}
			d.press(leader, "i")
			return d
		}, "processor"},
		{"leader-panel", keysOn([]api.Question{sceneQuestion()}, leader, "w"), "and then"},
		{"palette", keysOn(nil, leader, ":", "k"), "Commands"},
		{"filter-typed", keysOn([]api.Question{sceneQuestion()}, leader, "4", "/", "key g", "key o", "w"), "enter to the list"},
		{"filter-kept", keysOn([]api.Question{sceneQuestion()}, leader, "4", "/", "key g", "key o", "enter", "w"), "/ go"},
		{"filter-changes", keysOn(nil, leader, "2", "/", "key M", "enter"), "/ M"},
		{"filter-network", keysOn(nil, leader, "3", "/", "key #", "key 1", "enter"), "/ #1"},
		{"changes", keysOn(nil, leader, "2", "enter"), "1/5"},
		{"network", keysOn(nil, leader, "3"), "Network"},
		{"edit-opened", keysOn([]api.Question{sceneEdit()}, leader, "a", "w"), "edit held"},
		{"connection", keysOn([]api.Question{sceneConnection()}), "HELD"},
		{"connection-network", keysOn([]api.Question{sceneConnection()}, leader, "3", "w"), "HELD"},
		{"connection-actions", keysOn([]api.Question{sceneConnection()}, leader, "4", "w"), "HELD"},
		{"connection-opened", keysOn([]api.Question{sceneConnection()}, leader, "a", "w"), "connection held"},
		{"connection-always", func(t *testing.T, w, h int, theme string) *driver {
			d := proposing(t, w, h, theme)
			d.press(leader, "a")
			d.calmly("A")
			d.idle()
			d.press("j", "j", "tab")
			d.advance(time.Second)
			return d
		}, "Make it a rule"},
		{"connection-deny", keysOn([]api.Question{sceneConnection()}, leader, "4", "w", "d", "n", "o", "tab", "w"), "in this session"},
		{"command-always", func(t *testing.T, w, h int, theme string) *driver {
			c := sceneWorkbench(sceneQuestion())
			c.Propose(5, api.Proposal{Pattern: "go get github.com/x/y@latest", Means: "exactly this command", Matched: 1, Examples: []string{"go get github.com/x/y@latest"}},
				api.Proposal{Pattern: "go get *", Means: "go get, whatever comes after it", Matched: 4, Denied: 1, Examples: []string{"go get github.com/x/y@latest", "go get ./..."}},
				api.Proposal{Pattern: "go *", Means: "every go command, also those that other rules ask about", Matched: 60, Denied: 1, Examples: []string{"go test ./...", "go vet ./...", "go build ./..."}})
			d := bench(t, c, w, h, theme)
			d.press(leader, "4")
			d.calmly("A")
			d.idle()
			d.press("j", "tab", "tab")
			d.advance(time.Second)
			return d
		}, "go get *"},
		{"network-denied", keysOn(nil, leader, "3", "g", "j", "w"), "allow"},
		{"network-denied-details", keysOn(nil, leader, "3", "g", "j", "w", "enter", "w"), "press a in Network"},
		{"rules", func(t *testing.T, w, h int, theme string) *driver {
			d := bench(t, sceneWorkbench(), w, h, theme)
			s := sceneSession()
			s.Rules = []api.Rule{
				{Verdict: api.Allow, Host: "*.example.org:443", For: api.ExtentAlways, By: "tui", At: sceneNow},
				{Verdict: api.Deny, Host: "paste.example.org", For: api.ExtentProject, By: "cli", At: sceneNow},
				{Verdict: api.Allow, Command: "go get *", For: api.ExtentSession, By: "tui", At: sceneNow},
			}
			d.c.Put(api.Event{Session: &s})
			d.idle()
			d.press(leader, "4")
			d.calmly("P")
			d.advance(time.Second)
			return d
		}, "Rules made"},
		{"flood", keysOn([]api.Question{sceneFlood()}, leader, "a", "w"), "many"},
		{"tour-first", touring(Options{}), "Tour 1/9"},
		{"tour-middle", touring(Options{}, leader, "4", "k", "enter"), "Tour 4/9"},
		{"watching-only", touring(Options{Watching: true}, "4", "a"), "you are watching only"},
		{"copy-mode", keysOn(nil, leader, "[", "/", "p", "a", "r", "s", "e", "enter", "V", "k"), "copy mode"},
		{"layout-watching", keysOn(nil, leader, "space", "w"), "watching"},
		{"layout-reviewing", keysOn(nil, leader, "space", leader, "space", "w"), "reviewing"},
		{"layout-deciding", keysOn([]api.Question{sceneQuestion()}, leader, "space", leader, "space", "O", "4", "w"), "deciding"},
		{"changes-zoomed", keysOn(nil, leader, "2", "z", "w"), "notes.txt"},
		{"help-search", keysOn(nil, leader, "2", "?", "/", "b", "l", "a", "m", "e"), "blame"},
		{"topic", keysOn(nil, leader, "4", "?", "tab", "w"), "Help:"},
		{"theme", keysOn(nil, leader, "c", "down", "down"), "Colours"},
		{"agent-copies", func(t *testing.T, w, h int, theme string) *driver {
			d := joinedAt(t, w, h, Options{})
			d.prints(copying("go test ./...\n\x1b[31mof the agent"))
			d.shows("to your clipboard")
			d.press(leader, "a")
			d.advance(time.Second)
			return d
		}, "May the agent copy"},
		{"lost", func(t *testing.T, w, h int, theme string) *driver {
			d := bench(t, sceneWorkbench(sceneQuestion()), w, h, theme)
			d.c.Break(errors.New("connection reset by peer"))
			return d
		}, "DISCONNECTED"},
	}
	for _, s := range scenes {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s-%dx%d", s.name, size[0], size[1]), inBubble(func(t *testing.T) {
				d := s.open(t, size[0], size[1], "dark")
				if s.shows != "" {
					d.shows(s.shows)
				}
				d.idle()
				d.golden()
			}))
		}
	}
}

// keysOn opens the scene and presses keys; "w" waits until questions take keys
// and what was asked for has arrived, and "key w" is the key.
func keysOn(qs []api.Question, keys ...string) func(*testing.T, int, int, string) *driver {
	return func(t *testing.T, w, h int, theme string) *driver {
		d := bench(t, sceneWorkbench(qs...), w, h, theme)
		for _, k := range keys {
			if k == "w" {
				d.idle()
				d.advance(time.Second)
				continue
			}
			d.press(strings.TrimPrefix(k, "key "))
		}
		return d
	}
}

// touring opens the scene as one who may be shown the tour, and presses keys.
func touring(o Options, keys ...string) func(*testing.T, int, int, string) *driver {
	return func(t *testing.T, w, h int, _ string) *driver {
		d := toured(t, t.TempDir(), w, h, o)
		d.press(keys...)
		return d
	}
}

func TestGoldenStates(t *testing.T) {
	t.Run("ended", inBubble(func(t *testing.T) {
		c := sceneWorkbench()
		s := sceneSession()
		s.State, s.EndedAt, s.Exit, s.Held = api.SessionEnded, sceneNow, &api.Exit{Code: 3}, 0
		c.Put(api.Event{Session: &s})
		c.End()
		d := bench(t, c, 120, 35, "dark")
		d.shows("ENDED: exit 3")
		d.idle()
		d.golden()
	}))
	t.Run("paused", inBubble(func(t *testing.T) {
		c := sceneWorkbench(sceneQuestion())
		s := sceneSession()
		s.State, s.Mode = api.SessionPaused, api.ModeWatch
		c.Put(api.Event{Session: &s})
		d := bench(t, c, 80, 24, "dark")
		d.shows("PAUSED")
		d.idle()
		d.golden()
	}))
	t.Run("narrow", inBubble(func(t *testing.T) {
		d := bench(t, sceneWorkbench(sceneQuestion()), 60, 20, "dark")
		d.press(leader, "2")
		d.idle()
		d.golden()
	}))
	t.Run("small", inBubble(func(t *testing.T) {
		d := drive(t, sceneWorkbench(sceneQuestion()), 30, 8, Options{Session: sceneSession().ID, Config: themed("plain")})
		d.shows("stepbox needs 40×12 cells")
		d.shows("1 held")
		d.golden()
	}))
	t.Run("empty-home", inBubble(func(t *testing.T) {
		d := drive(t, newFake(), 80, 24, Options{Config: themed("plain")})
		d.shows("no agent runs now")
		d.golden()
	}))
}

// No frame may be wider or taller than the screen, whatever the size.
func TestEverySizeFits(t *testing.T) { everywhere(t, testEverySizeFits) }

func testEverySizeFits(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion(), sceneLongQuestion()), 120, 35, "plain")
	for _, keys := range [][]string{nil, {leader, "2"}, {"z"}, {"3"}, {"4"}, {"enter"}, {"esc", "?"}, {"esc", ":"},
		{"esc", "1", leader, "space"}, {leader, "space"}, {"("}, {leader, "space"}, {")", "<"}, {leader, "i"}} {
		d.press(keys...)
		for _, w := range []int{1, 20, 39, 40, 53, 66, 79, 80, 93, 106, 119, 120, 133, 146, 172, 199, 240, 500} {
			for _, h := range []int{1, 5, 11, 12, 15, 16, 22, 29, 36, 50, 64, 200} {
				d.send(tea.WindowSizeMsg{Width: w, Height: h})
				lines := strings.Split(d.content, "\n")
				if len(lines) > h {
					t.Fatalf("%d rows at %dx%d", len(lines), w, h)
				}
				for _, l := range lines {
					if n := d.m.method.StringWidth(l); n > w {
						t.Fatalf("%d columns at %dx%d: %q", n, w, h, l)
					}
				}
			}
		}
	}
}
