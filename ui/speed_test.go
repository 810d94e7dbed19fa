package ui

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/screen"
	"stepbox/ui/display"
	"stepbox/ui/link"
)

// crowded is the scene with that many actions and changed files.
func crowded(actions, files int, questions ...api.Question) *fakeClient {
	c, s := sceneWorkbench(questions...), newScene()
	for n := 15; n <= actions; n++ {
		a := s.Actions[n%len(s.Actions)]
		a.N, a.Title = n, fmt.Sprintf("%s -run %d", a.Title, n)
		a.State, a.Review = api.ActionEnded, api.ReviewOpen
		c.Put(api.Event{Action: &a})
	}
	x := api.Changes{Version: 1, Added: 3 * files, Removed: files}
	for i := range files {
		x.Files = append(x.Files, api.Change{
			Path: fmt.Sprintf("module%02d/package%03d/file%05d.go", i/500, i/50, i), Key: fmt.Sprintf("key%d", i),
			Status: "M", Kind: "file", OldSize: 1200, NewSize: 1300, Added: 3, Removed: 1, Counted: true,
		})
		c.SetDiff(api.FileDiff{Change: x.Files[i], Hunks: s.Diff.Hunks})
	}
	c.SetChanges(0, x)
	return c
}

// timed is the program with its display, as Run has it, on a terminal that takes all.
type timed struct {
	program
	*driver
}

// timing shows what a driver has on a terminal of its own.
func timing(b *testing.B, d *driver, cols, rows int) *timed {
	t := &timed{program: program{Model: d.m}, driver: d}
	var err error
	t.display, err = display.Open(strings.NewReader(""), io.Discard, []string{"TERM=xterm-256color", "COLORTERM=truecolor"}, d.m.Draw, func(m tea.Msg) {
		if size, ok := m.(tea.WindowSizeMsg); !ok || size.Width == cols { // the display's own guess isn't the size
			d.msgs <- m
		}
	})
	must.OK(b, err)
	b.Cleanup(t.display.Close)
	t.take(tea.ColorProfileMsg{Profile: colorprofile.TrueColor})
	t.take(tea.WindowSizeMsg{Width: cols, Height: rows})
	return t
}

// take does what a message asks for, and draws when it is time.
func (t *timed) take(m tea.Msg) {
	_, cmd := t.program.Update(m)
	t.run(cmd)
}

// rest takes messages until the next frame may be drawn at once, as at most half of the
// time is drawn.
func (t *timed) rest(since time.Time) {
	for end := time.After(20*time.Millisecond + 2*time.Since(since)); ; {
		select {
		case m := <-t.msgs:
			t.take(m)
		case <-end:
			return
		}
	}
}

// BenchmarkKey measures the processor time from a key to the bytes of the picture that
// follows it, of the goroutine that does it, where there is much to show.
//
//	go test -run '^$' -bench Key -benchtime 1x ./ui
func BenchmarkKey(b *testing.B) {
	const cols, rows = 120, 35
	work := func(questions []api.Question, keys ...string) func(*testing.B) *driver {
		return func(b *testing.B) *driver {
			d := bench(b, crowded(1000, 5000, questions...), cols, rows, "dark")
			d.press(keys...)
			d.idle()
			return d
		}
	}
	held := []api.Question{sceneQuestion(), sceneLongQuestion()}
	for _, c := range []struct {
		name string
		open func(*testing.B) *driver
		keys []string
	}{
		{"Agent", work(nil), []string{"x"}},
		{"Focus", work(nil), []string{leader, "2", leader, "1"}},
		{"Actions", work(nil, leader, "4"), []string{"k", "k", "j", "pgup"}},
		{"ActionsFilter", work(nil, leader, "4", "/", "g", "o", "enter"), []string{"k", "k", "j", "pgup"}},
		{"ActionsTyped", work(nil, leader, "4", "/"), []string{"g", "o", "backspace", "backspace"}},
		{"Changes", work(nil, leader, "2"), []string{"j", "j", "k", "pgdown"}},
		{"ChangesFilter", work(nil, leader, "2", "/", "7", "enter"), []string{"j", "j", "k", "pgdown"}},
		{"ChangesTyped", work(nil, leader, "2", "/"), []string{"f", "7", "backspace", "backspace"}},
		{"Dock", work(held, leader, "a"), []string{"tab", "down", "up"}},
		{"Home", func(b *testing.B) *driver {
			d := drive(b, full(12, 2000), cols, rows, Options{Config: themed("dark")})
			d.shows("agent-11")
			d.idle()
			return d
		}, []string{"j", "j", "k", "pgdown", "G", "g"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := c.open(b)
			t := timing(b, d, cols, rows)
			t.rest(time.Now())
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var all []time.Duration
			for range 25 * b.N {
				for _, k := range c.keys {
					now, began := time.Now(), used(b)
					t.take(key(k))
					all = append(all, used(b)-began)
					t.rest(now)
				}
			}
			report(b, all)
		})
	}
}

// used is the processor time of this thread.
func used(b *testing.B) time.Duration {
	var t unix.Timespec
	must.OK(b, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t))
	return time.Duration(t.Nano())
}

func report(b *testing.B, all []time.Duration) {
	slices.Sort(all)
	for _, q := range []int{50, 90, 100} {
		b.ReportMetric(float64(all[(len(all)-1)*q/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", q))
	}
	b.ReportMetric(0, "ns/op")
}

// full is a record of so many live and past sessions.
func full(live, past int) *fakeClient {
	c, old := liveScene(live, sceneQuestion()), many(past)
	defer c.lock()()
	c.list = append(c.list[:live:live], old.list[1:]...)
	return c
}

// BenchmarkRepaint measures the processor time of a picture in which every cell of the
// agent's screen is another one, from its output to the bytes for a terminal of 250×80.
//
//	go test -run '^$' -bench Repaint ./ui
func BenchmarkRepaint(b *testing.B) {
	c := sceneWorkbench()
	d := drive(b, c, 250, 80, Options{Session: sceneSession().ID, Config: themed("dark"),
		NewTerminal: func(cols, rows int) link.Emulator { return screen.New(cols, rows) }})
	d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() && c.LastTerminal() != nil })
	d.press(leader, "z")
	d.idle()
	t := timing(b, d, 250, 80)
	t.rest(time.Now())
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all []time.Duration
	l := d.m.bench.Link()
	n := 0
	for b.Loop() {
		n++
		picture := repainted(n)
		now, began := time.Now(), used(b)
		l.Screen.With(func(e link.Emulator) { _, _ = e.Write(picture) })
		t.take(link.Drawn{Link: l})
		all = append(all, used(b)-began)
		t.rest(now)
	}
	report(b, all)
}

// repainted is a whole screen in runs of four cells of a colour.
func repainted(n int) []byte {
	var s strings.Builder
	s.WriteString("\x1b[H\x1b[m")
	for y := range 77 {
		fmt.Fprintf(&s, "\x1b[%d;1H", y+1)
		for x := range 62 {
			fmt.Fprintf(&s, "\x1b[3%dm%s", (x+y+n)%8, strings.Repeat(string(rune('A'+(x+3*y+n)%26)), 4))
		}
	}
	return []byte(s.String())
}
