package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"image/color"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"

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
	for i, env := range [][]string{{"TERM=linux"}, {"TERM=screen"}, {"TERM=vt100", "LANG=C"}, {"TERM=xterm-kitty", "LANG=C"}, {}} {
		tm := p.as(80, 24, env, "attach", "shell")
		tm.shows("1 Terminal")
		tm.shows("bash-5.") // its borders may be ASCII
		tm.press(fmt.Sprintf("clear; echo se''en %d", i) + enter)
		tm.shows(fmt.Sprint("seen ", i))
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

// A paste of megabytes arrives whole and in order, and keys pressed after it come after it.
func TestPasteOfMegabytes(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(120, 35)
	var text strings.Builder
	for i := 0; text.Len() < 5<<20; i++ {
		fmt.Fprintf(&text, "%d ", i)
	}
	tm.line(fmt.Sprintf("stty raw -echo; echo re''ady; head -c %d | sha256sum; head -c 3; stty sane", text.Len()), "ready")
	tm.press("\x1b[200~" + text.String() + "\x1b[201~" + "yes")
	tm.agentShows(fmt.Sprintf("%x", sha256.Sum256([]byte(text.String())))[:30])
	tm.agentShows("yes")
}

// A terminal that takes nothing, as over a line that hangs, holds up no key: what is typed at
// it reaches the agent, and when it goes on it shows what is, not what was.
func TestTerminalThatTakesNothing(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(120, 35)
	other := p.open(120, 35, "attach", "shell")
	other.prompt()
	tm.look(func(*screen.Screen) { // nothing is read meanwhile
		for _, round := range []string{"one", "two", "three"} {
			tm.press("for i in $(seq 3000); do echo $i $RANDOM$RANDOM$RANDOM; done; echo do''ne " + round + enter)
			other.agentShows("done " + round)
		}
	})
	tm.agentShows("done three")
	tm.line("clear; echo still he''re", "still here")
}

// Over a slow line a key is answered soon, too, while the agent floods its terminal: of older
// pictures little is on its way, however much the line would take.
func TestTerminalThatTakesLittle(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(120, 35)
	tm.press("base64 /dev/urandom" + enter)
	tm.until("it is flooded", func() bool { return strings.Count(tm.agent(), "\n") > 10 && !strings.Contains(tm.agent(), "bash-") })
	tm.slow.Store(true)
	arrived := func() (n int) {
		tm.look(func(*screen.Screen) { n = tm.raw.Len() })
		return n
	}
	for range 4 {
		for _, key := range []string{"2", "1"} {
			before := arrived()
			tm.until("a flood of a second", func() bool { return arrived()-before > trickle })
			before = arrived()
			tm.press(leader + key)
			tm.until("pane "+key+" has the focus", func() bool { return strings.Contains(tm.text(), "┏ "+key+" ") })
			if n := arrived() - before; n > trickle*3/2 {
				t.Errorf("%d bytes came before the answer to a key", n)
			}
		}
	}
	tm.slow.Store(false)
	tm.press(ctrlC)
	tm.prompt()
}

// What the agent's screen has beside characters is on the person's terminal too: curly
// and coloured underlines, and links, of which those to files and programs aren't.
func TestLooksPassThrough(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(120, 35)
	tm.line(`clear; printf '\e[4:3;58:2::255:0:0mcur''ly\e[0m \e]8;;https://example.com/x\e\\li''nk\e]8;;\e\\ \e]8;;file:///etc/passwd\e\\fi''le\e]8;;\e\\ \e[5 q\e]2;the agent\a\ePq"1;1;64;48#0~\e\\\n'; echo sho''wn`, "shown")
	tm.agentShows("[image: sixel 64×48, ")
	look := func(words string) (c uv.Cell) {
		tm.look(func(s *screen.Screen) {
			cols, rows := s.Size()
			b := uv.NewScreenBuffer(cols, rows)
			s.Draw(b, b.Bounds(), 0)
			for y, row := range s.Text() {
				if i := strings.Index(row, words); i >= 0 {
					c = *b.CellAt(utf8.RuneCountInString(row[:i]), y)
				}
			}
		})
		return c
	}
	if c := look("curly"); c.Style.Underline != uv.UnderlineCurly || !red(c.Style.UnderlineColor) {
		t.Errorf("the underline is %v, %v", c.Style.Underline, c.Style.UnderlineColor)
	}
	if c := look("link"); c.Link.URL != "https://example.com/x" {
		t.Errorf("the link leads to %q", c.Link.URL)
	}
	if c := look("file"); c.Content != "f" || c.Link.URL != "" {
		t.Errorf("the link to a file leads to %q", c.Link.URL)
	}
	tm.until("the cursor is a bar", func() (bar bool) {
		tm.look(func(s *screen.Screen) { bar = s.Cursor().Shape == uv.CursorBar })
		return bar
	})
	tm.shows("the agent")
}

// Programs that ask are told when they have the keys; the bell rings, and a copy is asked
// about and then in the terminal's clipboard. Nobody answers for it.
func TestSignalsPassThrough(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(120, 35)
	bells, copied := make(chan struct{}, 100), make(chan string, 100)
	tm.look(func(s *screen.Screen) {
		s.OnSignal(func() { bells <- struct{}{} }, func(string, string) {}, func(text string) { copied <- text })
	})
	tm.line(`clear; printf '\a'; printf '\e]52;c;?\a\e]52;c;%s\a' $(echo -n secret te''xt | base64); echo sho''wn`, "shown")
	tm.shows("wants to copy 11 characters")
	arrives(t, "the bell", bells)
	tm.press(leader + "a")
	tm.shows("May the agent copy", "secret text")
	tm.answer("y", "the question is gone", func() bool { return !strings.Contains(tm.text(), "May the agent copy") })
	if got := arrives(t, "the copy", copied); got != "secret text" {
		t.Errorf("%q was copied", got)
	}
	tm.tick() // what is typed just after an answer is nobody's
	tm.line(`clear; stty -echo raw; printf '\e[?1004hrea''dy'; head -c 3 | od -c; printf '\e[?1004l'; stty sane`, "033   [   I")
}

func arrives[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("%s didn't come", what)
	}
	return v
}

func red(c color.Color) bool {
	if c == nil {
		return false
	}
	r, g, b, _ := c.RGBA()
	return r == 0xffff && g == 0 && b == 0
}

// A key that the person's terminal tells apart from another reaches a program that asks for
// that, in the way that it asked for; and no program that doesn't.
func TestShiftEnter(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(120, 35)
	for i, c := range []struct{ on, press, off, gets string }{
		{`\e[>1u`, "\x1b[13;2u", `\e[<u`, `033   [   1   3   ;   2   u`},
		{`\e[>1u`, "\x1b[13;5u", `\e[<u`, `033   [   1   3   ;   5   u`},
		{`\e[>1u`, "\x1b[27;2;13~", `\e[<u`, `033   [   1   3   ;   2   u`}, // as xterm tells it
		{`\e[>4;2m`, "\x1b[13;2u", `\e[>4m`, `033   [   2   7   ;   2   ;   1   3   ~`},
		{`\e[>1u`, "\x1b[97;3u", `\e[<u`, `033   [   9   7   ;   3   u`},
		{``, "\x1b[13;2u", ``, `\r`},
		{``, "\x1b[97;3u", ``, `033   a`},
	} {
		n := len(strings.Fields(c.gets))
		tm.line(fmt.Sprintf(`clear; stty -echo raw; printf '%srea''dy %d'; head -c %d | od -An -c; printf '%s'; stty sane; echo`, c.on, i, n, c.off), fmt.Sprint("ready ", i))
		tm.press(c.press)
		tm.agentShows(c.gets)
		tm.prompt()
	}
}
