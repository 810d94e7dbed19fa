package ui

import (
	"context"
	"errors"
	"strings"
	"testing"

	"stepbox/ui/config"
)

// What is selected is copied by one key in every pane, and by a menu where that may be
// several things; the same goes for what is open.
func TestCopySelected(t *testing.T) { alone(t, testCopySelected) }

func testCopySelected(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	copies := func(want string, keys ...string) {
		t.Helper()
		d.copied = ""
		d.press(keys...)
		d.until("it is copied: "+want, func() bool { return d.copied != "" })
		if d.copied != want {
			t.Errorf("%q copied %q, want %q", keys, d.copied, want)
		}
		d.shows("sent to your terminal")
	}
	path := newScene().Changes.Files[0].Path
	d.press(leader, "2", "C")
	d.shows("copy path")
	copies(path, "enter")
	copies("patch of {\"files\":[{\"key\":\""+newScene().Changes.Files[0].Key+"\"}]}\n", "C", "d", "i", "enter")
	d.press("3", "g")
	copies("api.anthropic.com", "C", "enter")
	copies("api.anthropic.com:443", "C", "p", "o", "r", "t", "enter")
	d.press("4", "g", "j")
	copies(newScene().Actions[0].Title, "C", "enter")
	copies("patch of {\"action\":5}\n", "C", "d", "i", "enter")
	copies("patch of {\"action\":5}\n", ":", "c", "o", "p", "y", "d", "i", "f", "enter")
	d.press("G")
	d.press(":", "c", "o", "p", "y", "d", "i", "f")
	d.shows("nothing is selected that has a diff")
	d.press("esc")
	copies(sceneQuestion().Command.Line, "C")
	d.press("enter")
	d.shows("held")
	copies(sceneQuestion().Command.Line, "C")
}

// What is pasted somewhere could act on control characters: nothing that has any is copied,
// and nothing that is too long, or that the person doesn't want copied.
func TestCopyRefuses(t *testing.T) { alone(t, testCopyRefuses) }

func testCopyRefuses(t *testing.T) {
	for _, tt := range []struct{ name, setting, patch, says string }{
		{"escape", "auto", "+\x1b[201~rm -rf /\n", "not copied: there are control characters in it"},
		{"C1", "osc52", "+\u009b201~rm\n", "not copied: there are control characters in it"},
		{"long", "auto", strings.Repeat("x", 1<<20+1), "not copied: the diff is too long to copy"},
		{"set to none", "none", "+x\n", "not copied: your settings say clipboard: none"},
	} {
		c := sceneWorkbench()
		c.patch = tt.patch
		d := drive(t, c, 120, 35, Options{Session: sceneSession().ID, Config: &config.Config{Theme: "plain", Clipboard: tt.setting},
			Copy: func(context.Context, string, string) (string, error) {
				t.Errorf("%s: it was copied", tt.name)
				return "", nil
			}})
		d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() })
		d.press(leader, "2", "C", "d", "i", "enter")
		d.shows(tt.says)
		if d.copied != "" {
			t.Errorf("%s: copied is %q", tt.name, d.copied)
		}
	}
}

// A program of the person's gets it too, and it is told what became of it.
func TestCopyByProgram(t *testing.T) { alone(t, testCopyByProgram) }

func testCopyByProgram(t *testing.T) {
	for _, tt := range []struct {
		setting, by string
		err         error
		says        string
		terminal    bool
	}{
		{"auto", "wl-copy", nil, "✓ copied the path", true},
		{"auto", "", nil, "sent to your terminal, which may not let programs copy: the path", true},
		{"auto", "tmux", nil, "✓ copied to tmux: the path", true},
		{"auto", "xclip", errors.New("xclip failed: exit 1"), "programs copy: the path; xclip failed: exit 1", true},
		{"mine", "mine", nil, "✓ copied the path", false},
		{"mine", "mine", errors.New("mine failed: exit 1"), "not copied: mine failed: exit 1", false},
	} {
		var got string
		d := drive(t, sceneWorkbench(), 120, 35, Options{Session: sceneSession().ID, Config: &config.Config{Theme: "plain", Clipboard: tt.setting},
			Copy: func(_ context.Context, setting, text string) (string, error) {
				got = setting + " " + text
				return tt.by, tt.err
			}})
		d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() })
		d.press(leader, "2", "C", "enter")
		d.shows(tt.says)
		if path := newScene().Changes.Files[0].Path; got != tt.setting+" "+path || (d.copied == path) != tt.terminal {
			t.Errorf("%s: the program got %q, the terminal %q", tt.setting, got, d.copied)
		}
	}
}

// What only a terminal was told of isn't sure to be copied, and in tmux by its defaults isn't.
func TestCopyInTmuxIsNotSure(t *testing.T) { alone(t, testCopyInTmuxIsNotSure) }

func testCopyInTmuxIsNotSure(t *testing.T) {
	for _, env := range []map[string]string{{"TMUX": "/tmp/x"}, {"TERM": "tmux-256color"}, {"TERM": "screen"}} {
		d := drive(t, sceneWorkbench(), 80, 24, Options{Session: sceneSession().ID, Config: themed("plain"), Getenv: func(name string) string { return env[name] }})
		d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() })
		d.press(leader, "2", "C", "enter")
		d.shows("sent to tmux, which needs set -s set-clipboard on: the path")
		d.lacks("✓ copied")
	}
}

// GNU screen, which has the same TERM, isn't tmux.
func TestCopyInScreen(t *testing.T) {
	t.Parallel()
	env := map[string]string{"TERM": "screen.xterm-256color", "STY": "1.pts-0.host"}
	if inTmux(func(name string) string { return env[name] }) {
		t.Error("it is taken for tmux")
	}
}

// In tmux it is told in both of the ways that tmux may take it.
func TestCopyInTmux(t *testing.T) {
	t.Parallel()
	got := osc52("ab", func(name string) string { return map[string]string{"TMUX": "/tmp/x"}[name] })
	if got != "\x1b]52;c;YWI=\a\x1bPtmux;\x1b\x1b]52;c;YWI=\a\x1b\\" {
		t.Errorf("it is told by %q", got)
	}
}
