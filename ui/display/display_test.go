package display

import (
	"bytes"
	"image/color"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"stepbox/session/e2e/must"
	"stepbox/session/screen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits for what should happen at once.
const patience = time.Minute

// slow is a terminal that takes a frame when it is told to.
type slow struct {
	take chan struct{}
	got  chan string
}

func (s *slow) Write(p []byte) (int, error) {
	<-s.take
	s.got <- string(p)
	return len(p), nil
}

// viewed is a display and what is drawn on it.
type viewed struct {
	*Display
	t     *testing.T
	slow  *slow
	msgs  chan tea.Msg
	words string
	frame Frame
	drawn int
}

func view(t *testing.T) *viewed {
	v := &viewed{t: t, slow: &slow{make(chan struct{}, 1000), make(chan string, 1000)}, msgs: make(chan tea.Msg, 100)}
	v.slow.take <- struct{}{}
	var err error
	v.Display, err = Open(strings.NewReader(""), v.slow, []string{"TERM=xterm-256color"}, func(dst uv.ScreenBuffer) Frame {
		v.drawn++
		for i, r := range v.words {
			dst.SetCell(i, 0, &uv.Cell{Content: string(r), Width: 1})
		}
		return v.frame
	}, func(m tea.Msg) { v.msgs <- m })
	must.OK(t, err)
	v.received()
	v.Update(tea.ColorProfileMsg{Profile: colorprofile.TrueColor})
	t.Cleanup(func() {
		close(v.slow.take)
		v.Close()
	})
	v.turn()
	return v
}

func (v *viewed) late() bool {
	late, _ := v.Late()
	return late
}

// turn waits for a message and lets the display take it.
func (v *viewed) turn() tea.Msg {
	v.t.Helper()
	select {
	case m := <-v.msgs:
		v.Update(m)
		v.Refresh()
		return m
	case <-time.After(patience):
		v.t.Fatal("no message came")
		return nil
	}
}

// change says that there is something else to be seen.
func (v *viewed) change(words string) {
	v.words = words
	v.Update(nil)
	v.Refresh()
}

// received is what the terminal takes next.
func (v *viewed) received() string {
	v.t.Helper()
	select {
	case s := <-v.slow.got:
		return s
	case <-time.After(patience):
		v.t.Fatal("nothing was written")
		return ""
	}
}

// shown lets the terminal take a frame and waits until the next can be drawn.
func (v *viewed) shown() string {
	v.t.Helper()
	v.slow.take <- struct{}{}
	s := v.received()
	for v.writing {
		v.turn()
	}
	return s
}

func TestFramesAreSkippedNotQueued(t *testing.T) {
	v := view(t)
	for _, w := range []string{"one", "two", "three"} {
		v.change(w)
	}
	if v.drawn != 1 {
		t.Fatalf("%d frames were drawn while the terminal took none", v.drawn)
	}
	v.shown()
	for v.drawn < 2 {
		v.turn() // the next is due
	}
	if s := v.shown(); !strings.Contains(s, "three") || strings.Contains(s, "two") {
		t.Errorf("after the first frame came %q", s)
	}
	v.change("three")
	for range 3 {
		v.Refresh()
	}
	if len(v.slow.got) > 0 || v.writing {
		t.Error("a frame that differs in nothing was written")
	}
	drawn := v.drawn
	v.Refresh()
	if v.drawn != drawn {
		t.Error("a frame was drawn though nothing changed")
	}
}

// A frame that took long leaves as long for other work, but a program that stood still in
// the middle of one goes on at once.
func TestPauseAfterAFrame(t *testing.T) {
	for _, c := range []struct {
		took  time.Duration
		keyed bool
		want  time.Duration
	}{
		{time.Millisecond, false, every},
		{time.Millisecond, true, keyEvery},
		{every, false, 2 * every},
		{every, true, 2 * every},
		{8 * time.Minute, true, 8*time.Minute + most},
	} {
		if got := until(c.took, c.keyed); got != c.want {
			t.Errorf("after %v, keys %v: %v, want %v", c.took, c.keyed, got, c.want)
		}
	}
}

// What the person sees is old while the terminal takes nothing, and when that is over.
func TestLate(t *testing.T) {
	v := view(t)
	for began := time.Now(); !v.late(); {
		if time.Since(began) > patience {
			t.Fatal("never late")
		}
		<-time.After(time.Millisecond)
	}
	v.shown()
	if !v.late() {
		t.Error("keys pressed while nothing was drawn count")
	}
	if v.late() {
		t.Error("late without end")
	}
}

func TestFrame(t *testing.T) {
	v := view(t)
	v.shown()
	v.frame = Frame{Title: "a title", Signal: "\a", Cursor: tea.NewCursor(2, 0)}
	next := func(words string) string {
		v.change(words)
		for !v.writing {
			v.turn()
		}
		v.frame.Signal = ""
		return v.shown()
	}
	if s := next("x"); !strings.Contains(s, "x") || !strings.Contains(s, "a title") || strings.Count(s, "\a") != 2 || !strings.Contains(s, ansi.SetModeTextCursorEnable) {
		t.Errorf("the first frame is %q", s)
	}
	if s := next("y"); !strings.HasPrefix(s, ansi.ResetModeTextCursorEnable) || strings.Contains(s, "\a") {
		t.Errorf("the cursor runs about, or it rings again: %q", s)
	}
	v.Update(tea.ModeReportMsg{Mode: ansi.ModeSynchronizedOutput, Value: ansi.ModeReset})
	if s := next("z"); !strings.HasPrefix(s, ansi.SetModeSynchronizedOutput) || !strings.HasSuffix(s, ansi.ResetModeSynchronizedOutput) || strings.Contains(s, "\x1b[?25") {
		t.Errorf("the frame isn't shown at once: %q", s)
	}
	v.frame.Cursor = nil
	if s := next("z"); s != ansi.ResetModeTextCursorEnable {
		t.Errorf("hiding the cursor writes %q", s)
	}
	drawn := v.drawn
	v.Update(tea.WindowSizeMsg{}) // of the library, which doesn't know the size
	v.change("still here")
	for v.drawn == drawn {
		v.turn()
	}
}

// The terminal's size may be known before its colours, and those may turn out to be others.
func TestNothingKeepsWrongColours(t *testing.T) {
	var out bytes.Buffer
	red := func(dst uv.ScreenBuffer) Frame {
		dst.SetCell(0, 0, &uv.Cell{Content: "x", Width: 1, Style: uv.Style{Fg: color.RGBA{R: 255, A: 255}}})
		return Frame{}
	}
	msgs := make(chan tea.Msg, 10)
	d, err := Open(strings.NewReader(""), &out, []string{"TERM=xterm"}, red, func(m tea.Msg) { msgs <- m })
	must.OK(t, err)
	defer d.Close()
	drawn := func(m tea.Msg) string {
		d.taken.Lock()
		out.Reset()
		d.taken.Unlock()
		d.Update(m)
		for d.Refresh(); d.writing || d.waits; d.Refresh() {
			d.Update(<-msgs)
		}
		d.taken.Lock()
		defer d.taken.Unlock()
		return out.String()
	}
	for {
		if _, ok := (<-msgs).(tea.WindowSizeMsg); ok {
			break // its own guess
		}
	}
	if s := drawn(tea.WindowSizeMsg{Width: 10, Height: 3}); s != "" {
		t.Errorf("without knowing colours %q is drawn", s)
	}
	if s := drawn(tea.ColorProfileMsg{Profile: colorprofile.ANSI}); !strings.Contains(s, "\x1b[91mx") {
		t.Errorf("with sixteen colours %q is drawn", s)
	}
	if s := drawn(tea.ColorProfileMsg{Profile: colorprofile.TrueColor}); !strings.Contains(s, "\x1b[38;2;255;0;0mx") {
		t.Errorf("with all colours %q is drawn", s)
	}
}

// Every mode that is set is taken back.
func TestTerminalIsLeftAsItWas(t *testing.T) {
	var out bytes.Buffer
	d, err := Open(strings.NewReader(""), &out, []string{"TERM=xterm"}, func(uv.ScreenBuffer) Frame { return Frame{Title: "a", Cursor: tea.NewCursor(0, 0)} }, func(tea.Msg) {})
	must.OK(t, err)
	d.Update(tea.ModeReportMsg{Mode: ansi.ModeUnicodeCore, Value: ansi.ModeReset})
	d.Update(tea.ColorProfileMsg{Profile: colorprofile.TrueColor})
	d.Update(tea.WindowSizeMsg{Width: 10, Height: 3})
	d.Refresh()
	d.Close()
	on := map[string]bool{"25": true, "7": true}
	for _, m := range regexp.MustCompile(`\x1b\[\?(\d+)([hl])`).FindAllStringSubmatch(out.String(), -1) {
		on[m[1]] = m[2] == "h"
	}
	for mode, set := range on {
		if ordinarily := mode == "25" || mode == "7"; set != ordinarily {
			t.Errorf("mode %s is left %v", mode, set)
		}
	}
	if len(on) < 7 {
		t.Errorf("only %v were set", on)
	}
	for _, undone := range []string{ansi.PopKittyKeyboard(1), ansi.ResetModifyOtherKeys, ansi.SetWindowTitle(""), ansi.SetCursorStyle(0)} {
		if !strings.Contains(out.String(), undone) {
			t.Errorf("%q is missing", undone)
		}
	}
}

// Where there is no other screen to come back from, nothing of the frame is left, and the
// cursor is at the top.
func TestNothingIsLeftOver(t *testing.T) {
	var out bytes.Buffer
	d, err := Open(strings.NewReader(""), &out, []string{"TERM=linux"}, func(dst uv.ScreenBuffer) Frame {
		dst.SetCell(5, 2, &uv.Cell{Content: "x", Width: 1, Style: uv.Style{Attrs: uv.AttrReverse}})
		return Frame{Cursor: tea.NewCursor(3, 1)}
	}, func(tea.Msg) {})
	must.OK(t, err)
	d.Update(tea.ColorProfileMsg{Profile: colorprofile.ANSI})
	d.Update(tea.WindowSizeMsg{Width: 10, Height: 3})
	d.Refresh()
	d.Close()
	console := screen.New(10, 3)
	_, _ = console.Write(regexp.MustCompile(`\x1b\[\?1049[hl]`).ReplaceAll(out.Bytes(), nil))
	_, _ = console.Write([]byte("$"))
	if got := strings.Join(console.Text(), "\n"); strings.TrimRight(got, " \n") != "$" {
		t.Errorf("what is left is %q", got)
	}
}

// A terminal that takes text for something else than UTF-8 obeys parts of letters: it is told,
// and told again what it was; GNU screen, which isn't, gets none of those.
func TestWithoutUTF8(t *testing.T) {
	for language, after := range map[string]bool{"": false, "C": false, "de_DE.UTF-8": false, "de_DE.ISO-8859-1": true} {
		for _, sty := range []string{"", "1.pts-0.host"} {
			var out bytes.Buffer
			d, err := Open(strings.NewReader(""), &out, []string{"TERM=xterm", "LANG=" + language, "STY=" + sty}, func(dst uv.ScreenBuffer) Frame {
				dst.SetCell(0, 0, &uv.Cell{Content: "Л", Width: 1}) // whose second byte is CSI
				dst.SetCell(1, 0, &uv.Cell{Content: "漢", Width: 2})
				dst.SetCell(3, 0, &uv.Cell{Content: " ", Width: 1, Style: uv.Style{Bg: color.RGBA{R: 255, A: 255}}})
				return Frame{}
			}, func(tea.Msg) {})
			must.OK(t, err)
			d.Update(tea.ColorProfileMsg{Profile: colorprofile.TrueColor})
			d.Update(tea.WindowSizeMsg{Width: 10, Height: 3})
			d.Refresh()
			d.Close()
			got := out.String()
			if !strings.Contains(got, "\x1b%G") || strings.Contains(got, "\x1b%@") != after {
				t.Errorf("%q: it isn't told %q", language, got)
			}
			if all := sty == "" || language == "de_DE.UTF-8"; (strings.Contains(got, "Л") && strings.Contains(got, "漢")) != all || strings.Contains(got, "???") == all {
				t.Errorf("%q, %q: it gets %q", language, sty, got)
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		env  string
		want bool
	}{
		{"TERM=xterm", true},
		{"TERM=xterm TERM_PROGRAM=iTerm.app", true},
		{"TERM=xterm TERM_PROGRAM=Apple_Terminal", false},
		{"TERM=xterm SSH_TTY=/dev/pts/1", false},
		{"TERM=xterm-kitty SSH_TTY=/dev/pts/1", true},
	} {
		if got := answers(strings.Fields(c.env)); got != c.want {
			t.Errorf("%s: %v", c.env, got)
		}
	}
}
