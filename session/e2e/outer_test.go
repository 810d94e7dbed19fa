package e2e

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"stepbox/session/screen"
)

// as opens the program with other variables.
func (p *person) as(cols, rows int, env []string, args ...string) *terminal {
	p.t.Helper()
	return p.start(cols, rows, func(ctx context.Context) *exec.Cmd {
		cmd := p.command(ctx, args...)
		cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "TERM=") || strings.HasPrefix(v, "LANG=") })
		cmd.Env = append(cmd.Env, env...)
		return cmd
	})
}

// Whatever a terminal calls itself, and without a locale, the screens are there and keys
// work; one that can't move its cursor gets lines.
func TestTerminalsByName(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.do("run", "--name", "shell", "--mode", "watch", "--detach", "--", "bash", "--norc", "--noprofile")
	for _, env := range [][]string{{"TERM=linux"}, {"TERM=screen"}, {"TERM=vt100", "LANG=C"}, {"TERM=xterm-kitty", "LANG=C"}, {}} {
		tm := p.as(80, 24, env, "attach", "shell")
		tm.shows("1 Terminal")
		tm.prompt()
		tm.line("clear; echo se''en", "seen")
		tm.press(leader + "d")
		if code, _ := tm.ended(); code != 0 {
			t.Errorf("%q: exit %d", env, code)
		}
	}
	dumb := p.as(80, 24, []string{"TERM=dumb"}, "attach", "shell")
	if code, words := dumb.ended(); code != 2 || !strings.Contains(words, "needs a terminal that can move its cursor") || strings.Count(words, "\n") > 2 {
		t.Errorf("exit %d, %q", code, words)
	}
	lines := p.as(80, 24, []string{"TERM=dumb"}, "run", "--mode", "watch", "--", "echo", "a line")
	if code, words := lines.ended(); code != 0 || !strings.Contains(words, "a line") || strings.ContainsAny(words, "╭┏") {
		t.Errorf("exit %d, %q", code, words)
	}
}

// A terminal of any size can be used as far as it has room, and what was too small is whole
// again when there is room.
func TestTerminalsOfAnySize(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(80, 24)
	for _, size := range [][2]int{{1, 1}, {20, 5}, {500, 200}, {2, 200}, {500, 2}, {80, 24}} {
		var before, now uint64
		tm.look(func(s *screen.Screen) { before, _ = s.Seen() })
		tm.resize(size[0], size[1])
		tm.until("it is drawn anew", func() bool {
			tm.look(func(s *screen.Screen) { now, _ = s.Seen() })
			return now > before && strings.TrimSpace(tm.text()) != ""
		})
	}
	for i := range 200 { // as fast as a window is dragged
		tm.resize(20+i%100, 5+i%40)
	}
	tm.resize(120, 35)
	tm.until("all is drawn anew", func() bool {
		return len(tm.rows()) == 35 && strings.Contains(tm.last(), "help") && len(tm.box("1 Terminal")) > 0
	})
	tm.until("the agent's pane has its size", func() bool { return !tm.other() })
	tm.line("clear; echo st''ill here", "still here")
}
