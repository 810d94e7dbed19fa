package ui

import (
	"encoding/base64"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/ui/config"
	"stepbox/ui/display"
	"stepbox/ui/internal/cellstest"
	"stepbox/ui/kept"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // golden screens have times of day in them
	// What the runtime makes for signals, once, would be of the first test's bubble.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH)
	signal.Stop(signals)
	goleak.VerifyTestMain(m)
}

// patience bounds waits for what should happen, by the test's own clock: only a test that
// fails waits for all of it.
const patience = 2 * time.Minute

// alone runs a test beside others, in a bubble of its own: there time passes only while nobody
// has anything to do, so that what is idle is known, however slow the machine is.
func alone(t *testing.T, test func(t *testing.T)) { inBubble(test)(t) }

// everywhere is alone for what is tried at every size, in every cell or with every key: there
// no more goroutines meet than elsewhere, and short runs are those with the race detector.
func everywhere(t *testing.T, test func(t *testing.T)) {
	if testing.Short() {
		t.Skip("the whole run has it")
	}
	alone(t, test)
}

// inBubble is the same for one test of several.
func inBubble(test func(t *testing.T)) func(t *testing.T) {
	return func(t *testing.T) {
		must.Sampled(t)
		t.Parallel()
		synctest.Test(t, test)
	}
}

// bubbled says whether this is one: their time begins in the year 2000. Few tests aren't, as
// they wait for the kernel to tell of a file; those say what they wait for.
func bubbled() bool { return time.Now().Year() < 2020 }

// driver presses keys and looks at what a person sees. Messages are delivered
// as the program would: one at a time, a frame drawn after each. The
// screen's clock is its own, which advance moves.
type driver struct {
	t       testing.TB
	m       *Model
	c       *fakeClient
	now     atomic.Int64
	msgs    chan tea.Msg
	quit    bool
	raw     string
	copied  string // to the clipboard, last
	cells   uv.ScreenBuffer
	frame   display.Frame
	content string          // the frame as text
	seen    strings.Builder // every frame, for what must never have been shown
}

func drive(t testing.TB, c *fakeClient, cols, rows int, o Options) *driver {
	t.Helper()
	d := &driver{t: t, c: c, msgs: make(chan tea.Msg, 4096)}
	d.now.Store(sceneNow.UnixNano())
	o.Client = c
	if o.NewTerminal == nil {
		o.NewTerminal = newFakeEmulator
	}
	o.Now = func() time.Time { return time.Unix(0, d.now.Load()).UTC() }
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.Kept == "" {
		dir, err := os.MkdirTemp("", "kept")
		must.OK(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) }) // it may be written to meanwhile, which fails a t.TempDir
		o.Kept, o.NoTour = kept.Folder(dir), true
	}
	if o.Config == nil {
		o.Config = themed("auto")
	}
	if o.Reload == nil {
		o.Reload = func() *config.Config { return o.Config }
	}
	d.m = New(o)
	must.OK(t, d.m.err)
	t.Cleanup(func() {
		d.m.Close()
		if bubbled() {
			time.Sleep(time.Hour) // for what waits for a time: that stops with the test
		}
	})
	d.run(d.m.Init())
	d.send(tea.WindowSizeMsg{Width: cols, Height: rows})
	return d
}

// themed are settings in which the theme alone is chosen.
func themed(name string) *config.Config {
	c := config.Load(func(string) string { return "" })
	c.Theme = name
	return c
}

// bench drives the workbench of the scene's session until it has all arrived.
func bench(t testing.TB, c *fakeClient, cols, rows int, theme string) *driver {
	t.Helper()
	d := drive(t, c, cols, rows, Options{Session: sceneSession().ID, Config: themed(theme)})
	d.until("the session is shown", func() bool {
		return d.m.bench != nil && d.m.bench.Arrived() && c.LastTerminal() != nil
	})
	d.idle()
	d.advance(time.Second)
	return d
}

func (d *driver) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		msg := cmd()
		if msg == nil {
			return
		}
		// Batches and sequences are slices of commands.
		if v := reflect.ValueOf(msg); v.Kind() == reflect.Slice {
			for i := range v.Len() {
				if c, ok := v.Index(i).Interface().(tea.Cmd); ok {
					d.run(c)
				}
			}
			return
		}
		d.msgs <- msg
	}()
}

func (d *driver) send(msg tea.Msg) {
	if _, ok := msg.(tea.QuitMsg); ok {
		d.quit = true
		return
	}
	cmd := d.m.Update(msg)
	if m, ok := msg.(tea.WindowSizeMsg); ok {
		d.cells = uv.NewScreenBuffer(m.Width, m.Height)
	}
	d.draw()
	d.run(cmd)
}

// draw draws a frame, as the display would.
func (d *driver) draw() {
	if d.cells.RenderBuffer == nil {
		return
	}
	d.cells.Clear()
	d.frame = d.m.Draw(d.cells)
	d.content = d.cells.Render()
	d.raw += d.frame.Signal
	if _, words, ok := strings.Cut(d.frame.Signal, "\x1b]52;c;"); ok {
		words, _, _ = strings.Cut(words, "\a")
		text, err := base64.StdEncoding.DecodeString(words)
		if err != nil {
			d.t.Errorf("copied is no base64: %q", words)
		}
		d.copied = string(text)
	}
	d.seen.WriteString(d.content)
}

// golden compares the frame, in four themes, with the test's golden file.
func (d *driver) golden() {
	d.t.Helper()
	cellstest.Golden(d.t, func(theme string) uv.ScreenBuffer {
		d.m.chosen = theme
		must.OK(d.t, d.m.retheme())
		d.cells = uv.NewScreenBuffer(d.cells.Width(), d.cells.Height())
		d.draw()
		return d.cells
	})
}

// take handles a message if one comes in time.
func (d *driver) take(wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case m := <-d.msgs:
		d.send(m)
		return true
	case <-t.C:
		return false
	}
}

// lull is longer than what comes from a session is gathered for.
const lull = 60 * time.Millisecond

// idle handles messages until everybody waits, for more than a lull.
func (d *driver) idle() {
	for d.take(lull) {
	}
}

// rest is idle once what waits for a moment had it.
func (d *driver) rest() {
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		d.take(time.Until(end))
	}
	d.idle()
}

// until handles messages as they come, until a condition holds.
func (d *driver) until(what string, cond func() bool) {
	d.t.Helper()
	for end := time.Now().Add(patience); !cond(); {
		if d.take(time.Second); time.Now().After(end) {
			d.t.Fatalf("never: %s\n%s", what, d.text())
		}
	}
}

func (d *driver) shows(words string) {
	d.t.Helper()
	d.until("shows "+words, func() bool { return strings.Contains(d.text(), words) })
}

func (d *driver) lacks(words string) {
	d.t.Helper()
	if strings.Contains(d.text(), words) {
		d.t.Fatalf("shows %q\n%s", words, d.text())
	}
}

func (d *driver) text() string { return ansi.Strip(d.content) }

func (d *driver) advance(by time.Duration) {
	// In steps, since a long gap means that the program was stopped.
	for by > 0 {
		step := min(by, time.Second)
		d.now.Add(int64(step))
		d.send(struct{}{})
		by -= step
	}
}

func (d *driver) press(keys ...string) {
	for _, k := range keys {
		d.send(key(k))
	}
}

// types presses a key for each letter.
func (d *driver) types(words string) { d.press(strings.Split(words, "")...) }

// calmly presses keys with pauses in which questions come to be answerable.
func (d *driver) calmly(keys ...string) {
	for _, k := range keys {
		d.advance(500 * time.Millisecond)
		d.press(k)
	}
}

// decided waits for the answers to arrive, and gives those that would still
// come a chance to.
func (d *driver) decided(want ...api.Answer) {
	d.t.Helper()
	d.rest()
	var got []api.Answer
	for _, x := range d.c.Decisions() {
		got = append(got, x.Answer)
	}
	if !slices.Equal(got, want) {
		d.t.Fatalf("decided %v, want %v\n%s", got, want, d.text())
	}
}

// named are the keys that write nothing.
var named = map[string]tea.KeyPressMsg{
	"enter":     {Code: tea.KeyEnter},
	"esc":       {Code: tea.KeyEscape},
	"tab":       {Code: tea.KeyTab},
	"shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift},
	"pgdown":    {Code: tea.KeyPgDown},
	"pgup":      {Code: tea.KeyPgUp},
	"up":        {Code: tea.KeyUp},
	"down":      {Code: tea.KeyDown},
	"left":      {Code: tea.KeyLeft},
	"right":     {Code: tea.KeyRight},
	"home":      {Code: tea.KeyHome},
	"end":       {Code: tea.KeyEnd},
	"backspace": {Code: tea.KeyBackspace},
	"space":     {Code: tea.KeySpace, Text: " "},
}

func key(name string) tea.KeyPressMsg {
	if k, ok := named[name]; ok {
		return k
	}
	if rest, ok := strings.CutPrefix(name, "ctrl+"); ok {
		return tea.KeyPressMsg{Code: []rune(rest)[0], Mod: tea.ModCtrl}
	}
	r := []rune(name)[0]
	k := tea.KeyPressMsg{Code: r, Text: name}
	if r >= 'A' && r <= 'Z' {
		k.Code, k.ShiftedCode, k.Mod = r+32, r, tea.ModShift
	}
	return k
}

func click(x, y int) tea.MouseClickMsg { return tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft} }

// inOrder says whether words come one after the other.
func inOrder(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		i := strings.Index(text, w)
		if i < 0 {
			t.Fatalf("%q doesn't come next in\n%s", w, text)
		}
		text = text[i+len(w):]
	}
}
