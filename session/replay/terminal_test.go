package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/screen"
	"stepbox/store"
	"stepbox/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open makes an empty record.
func open(t testing.TB) *store.Store {
	t.Helper()
	st := storetest.New(t)
	return st
}

// session makes a session of a terminal's size.
func session(t testing.TB, st *store.Store, id string, cols, rows int) api.Session {
	t.Helper()
	s := api.Session{ID: id, Name: "one", State: api.SessionEnded, StartedAt: time.Now().UTC(), Cols: cols, Rows: rows}
	create(t, st, s)
	return s
}

func create(t testing.TB, st *store.Store, s api.Session) {
	t.Helper()
	storetest.Begin(t, st, s.ID, s)
}

// printer prints to an emulator and records it, as a live session does.
type printer struct {
	t      testing.TB
	st     *store.Store
	id     string
	j      *store.Journal
	screen *screen.Screen
}

func newPrinter(t testing.TB, st *store.Store, id string, cols, rows int) *printer {
	p := &printer{t: t, st: st, id: id, screen: screen.New(cols, rows)}
	p.again()
	return p
}

// again goes on in a new file.
func (p *printer) again() {
	p.t.Helper()
	var err error
	if p.j != nil {
		err = p.j.Close()
	}
	if err == nil {
		p.j, err = p.st.Journal(p.id)
	}
	must.OK(p.t, err)
}

func (p *printer) keep() error {
	if !p.j.Fresh() {
		return nil
	}
	cols, rows := p.screen.Size()
	return p.j.Keyframe(cols, rows, p.screen.KeyframeWithin(500, 256<<10))
}

func (p *printer) print(b []byte) {
	p.t.Helper()
	must.OK(p.t, p.keep(), p.j.Output(b))
	_, _ = p.screen.Write(b)
}

func (p *printer) resize(cols, rows int) {
	p.t.Helper()
	must.OK(p.t, p.keep(), p.j.Resize(cols, rows))
	p.screen.Resize(cols, rows)
}

func (p *printer) close() {
	p.t.Helper()
	must.OK(p.t, p.j.Close())
}

// watcher is who watches a replay.
type watcher struct {
	at     time.Duration
	screen *screen.Screen
	damage []string
	ended  bool
}

func (w *watcher) see(f api.Frame) error {
	var err error
	switch f.Kind {
	case api.FrameTime:
		was := w.at
		if w.at, err = f.Offset(); err == nil && w.at < was {
			err = fmt.Errorf("time runs back from %v to %v", was, w.at)
		}
	case api.FrameKeyframe:
		w.screen = screen.New(f.Cols, f.Rows)
		_, _ = w.screen.Write(f.Data)
	case api.FrameOutput:
		_, _ = w.screen.Write(f.Data)
	case api.FrameResize:
		w.screen.Resize(f.Cols, f.Rows)
	case api.FrameDamage:
		w.damage = append(w.damage, string(f.Data))
	case api.FrameEnd:
		w.ended = true
	}
	return err
}

// seek watches a replay from a time on, as long as more says so.
func seek(t testing.TB, st *store.Store, id string, at time.Duration, more func(w *watcher, f api.Frame) bool) *watcher {
	t.Helper()
	w := new(watcher)
	for f, err := range Terminal(t.Context(), st, id, at) {
		if err == nil {
			err = w.see(f)
		}
		must.OK(t, err)
		if !more(w, f) {
			break
		}
	}
	return w
}

func toKeyframe(_ *watcher, f api.Frame) bool { return f.Kind != api.FrameKeyframe }
func toEnd(*watcher, api.Frame) bool          { return true }

// look is what a terminal shows and would go on with, but for a picture that is
// held while the next one is drawn: that is held for a time, and frames that come too
// fast share one.
func look(sc *screen.Screen) []byte {
	cols, rows := sc.Size()
	out := screen.New(cols, rows)
	_, _ = out.Write(sc.Keyframe())
	_, _ = out.Write([]byte("\x18\x1b[?2026l"))
	return out.Keyframe()
}

// reference plays a journal from its beginning and tells the screen after each
// millisecond in which something was printed.
func reference(t testing.TB, st *store.Store, id string, cols, rows int) (at []time.Duration, screens [][]byte) {
	t.Helper()
	sc := screen.New(cols, rows)
	for f, err := range st.ReadJournal(id) {
		must.OK(t, err)
		if n := len(at); n > 0 && at[n-1] == f.At {
			at, screens = at[:n-1], screens[:n-1]
		}
		if f.Kind == store.FrameResize {
			sc.Resize(f.Cols, f.Rows)
		} else {
			_, _ = sc.Write(f.Data)
		}
		at, screens = append(at, f.At), append(screens, look(sc))
	}
	return at, screens
}

var pieces = []string{
	"a", "hello world ", strings.Repeat("0123456789", 4), "\r\n", "\n", "\t", "é", "e\u0301", "漢字", "👨‍👩‍👧", "\xff", "\xe2\x9c", "\x9b31m", "\x1b7", "\x1b8", "\x1bM", "\x1bc", "\x1b(0", "lqqk",
	"\x1b[m", "\x1b[1;31m", "\x1b[38;5;200;48;2;1;2;3m", "\x1b[H", "\x1b[2J", "\x1b[3J", "\x1b[K", "\x1b[5;3H", "\x1b[L", "\x1b[2T", "\x1b[2;4r", "\x1b[r", "\x1b[4h", "\x1b[?6h", "\x1b[?7l",
	"\x1b[?1049h", "\x1b[?1049l", "\x1b[?2026h", "\x1b[?2026l", "\x1b[?25l", "\x1b]0;title\a", "\x1b]8;;https://example.org/a\x1b\\", "\x1b]52;c;aGk=\a", "\x1b", "\x1b[12", "\x1b]0;abc", "\x1bP",
}

// A replay shows at any time what the live terminal showed, wherever files begin,
// and at each frame after it; also of what kill -9 left. The terminal only becomes
// wider: what falls off the lines of the scrollback isn't in a keyframe.
func TestReplayShowsWhatWasLive(t *testing.T) {
	st := open(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		id := fmt.Sprintf("s%d", n)
		least := 2
		size := func() (int, int) {
			least = rapid.IntRange(least, 20).Draw(rt, "cols")
			return least, rapid.IntRange(1, 8).Draw(rt, "rows")
		}
		cols, rows := size()
		s := session(t, st, id, cols, rows)
		p := newPrinter(t, st, id, cols, rows)
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				p.again()
			case 1:
				p.resize(size())
			default:
				p.print([]byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 20).Draw(rt, "pieces"), "")))
			}
		}
		if rapid.Bool().Draw(rt, "killed") {
			killed(t, st, s, rapid.IntRange(1, 3).Draw(rt, "cut"))
			p.close()
			id += "k"
		} else {
			p.close()
			if w := seek(t, st, id, End, toEnd); !bytes.Equal(look(w.screen), look(p.screen)) {
				rt.Fatalf("the last screen is\n%q, live it was\n%q", look(w.screen), look(p.screen))
			}
		}
		r, err := st.Recording(t.Context(), id)
		must.OK(t, err)
		lead := r.Lead(s.StartedAt)
		at, want := reference(t, st, id, cols, rows)
		for i := range at {
			until := End
			if i+1 < len(at) {
				until = at[i+1] + lead - time.Millisecond
			}
			for _, offset := range []time.Duration{at[i] + lead, until} {
				if w := seek(t, st, id, offset, toKeyframe); !bytes.Equal(look(w.screen), want[i]) || w.at != offset {
					rt.Fatalf("at %v it is\n%q and was\n%q", offset, look(w.screen), want[i])
				}
			}
		}
		if len(at) == 0 {
			return
		}
		first := rapid.IntRange(0, len(at)-1).Draw(rt, "from")
		next := first
		w := seek(t, st, id, at[first]+lead, func(w *watcher, f api.Frame) bool {
			if (f.Kind == api.FrameTime || f.Kind == api.FrameEnd) && w.screen != nil {
				if !bytes.Equal(look(w.screen), want[next]) {
					rt.Fatalf("played from %v to %v it is\n%q and was\n%q", at[first], at[next], look(w.screen), want[next])
				}
				next++
			}
			return true
		})
		if !w.ended || next != len(at) || len(w.damage) > 0 {
			rt.Fatalf("it ended %v after %d of %d frames, damage %q", w.ended, next-first, len(at)-first, w.damage)
		}
	})
}

// killed makes a session of what kill -9 of another's supervisor would leave now,
// with a last frame that isn't whole.
func killed(t testing.TB, st *store.Store, s api.Session, cut int) {
	t.Helper()
	id := s.ID
	s.ID += "k"
	create(t, st, s)
	to := filepath.Join(st.SessionDir(id+"k"), "terminal")
	must.OK(t, os.CopyFS(to, os.DirFS(filepath.Join(st.SessionDir(id), "terminal"))))
	raws, err := filepath.Glob(filepath.Join(to, "*.raw"))
	if err != nil || len(raws) == 0 {
		t.Fatal(raws, err)
	}
	last := raws[len(raws)-1]
	info, err := os.Stat(last)
	if err == nil {
		err = os.Truncate(last, info.Size()-int64(cut))
	}
	must.OK(t, err)
}

// A session that is removed while it is replayed is said to be, and not to be damaged.
func TestRemovedWhileReplayed(t *testing.T) {
	for removed, want := range map[bool]string{true: "the session was removed", false: "its record is damaged"} {
		st := open(t)
		s := session(t, st, "aaaaaaaa", 80, 24)
		for range 2 { // a file each
			j, err := st.Journal(s.ID)
			if err == nil {
				err = j.Output([]byte("printed"))
			}
			if err = errors.Join(err, j.Close()); err != nil {
				t.Fatal(err)
			}
		}
		said := ""
		for f, err := range Terminal(t.Context(), st, s.ID, 0) {
			must.OK(t, err)
			if f.Kind == api.FrameTime && removed {
				if err := st.Remove(t.Context(), s.ID); err != nil && !errors.Is(err, store.ErrNotFound) {
					t.Fatal(err)
				}
			}
			must.OK(t, os.RemoveAll(st.SessionDir(s.ID)))
			if f.Kind == api.FrameDamage {
				said += string(f.Data)
			}
		}
		if !strings.Contains(said, want) {
			t.Errorf("removed %v: %q", removed, said)
		}
	}
}

// Where commands began is told with the screen as it was, and while it goes on.
func TestTerminalMarksCommands(t *testing.T) {
	st := open(t)
	s := session(t, st, "a", 40, 5)
	p := newPrinter(t, st, "a", 40, 5)
	apart := func() { // the record of a terminal has milliseconds
		for end := time.Now().Add(3 * time.Millisecond); time.Now().Before(end); {
		}
	}
	began := func(n int, kind api.ActionKind) {
		apart()
		record(t, st, s.ID, "action.held", store.KindAction, int64(n), api.Action{N: n, Kind: kind})
		apart()
	}
	p.print([]byte(strings.Repeat("before\r\n", 10)))
	began(1, api.KindCommand)
	p.print([]byte("one\r\n"))
	began(2, api.KindEdit)
	p.print([]byte("more\r\n"))
	began(3, api.KindCommand)
	half := time.Since(s.StartedAt)
	apart()
	p.print([]byte("three\r\n"))
	began(4, api.KindCommand)
	p.print([]byte("four\r\n"))
	p.close()
	at := func(from time.Duration) (lines []string) {
		w := &watcher{}
		for f, err := range Terminal(t.Context(), st, s.ID, from) {
			if err == nil {
				err = w.see(f)
			}
			must.OK(t, err)
			for _, m := range f.Marks() {
				if f.Kind == api.FrameMarks {
					lines = append(lines, fmt.Sprintf("#%d at %d", m.Action, w.screen.Line()-m.Back))
				}
			}
		}
		return lines
	}
	want := []string{"#1 at 10", "#3 at 12", "#4 at 13"}
	for _, from := range []time.Duration{0, half, End} {
		if got := at(from); !slices.Equal(got, want) {
			t.Errorf("from %v on it is %q, want %q", from, got, want)
		}
	}
	apart()
	p = newPrinter(t, st, "a", 40, 5) // which begins with a keyframe: what was before isn't known
	p.print([]byte("later\r\n"))
	p.close()
	if got := at(End); len(got) > 0 {
		t.Errorf("of a screen that was recorded as a whole it is told where %q began", got)
	}
}

// Of more commands than a scrollback has lines for the last are marked where a screen begins;
// while it goes on all are.
func TestTerminalMarksTheLast(t *testing.T) {
	st := open(t)
	s := session(t, st, "a", 40, 5)
	p := newPrinter(t, st, "a", 40, 5)
	p.print([]byte("before\r\n"))
	var facts []store.Fact
	for n := range 2*mostMarks + 5 {
		doc := json.RawMessage(fmt.Sprintf(`{"n":%d,"kind":"command"}`, n+1))
		facts = append(facts, store.Fact{Kind: store.KindAction, Key: int64(n + 1), Event: "action.held", Doc: doc})
	}
	if _, err := st.Append(t.Context(), s.ID, facts...); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(3 * time.Millisecond); time.Now().Before(end); {
	}
	p.print([]byte("after\r\n"))
	p.close()
	for from, want := range map[time.Duration]int{0: 2*mostMarks + 5, End: mostMarks} {
		n, last := 0, 0
		for f, err := range Terminal(t.Context(), st, s.ID, from) {
			must.OK(t, err)
			if f.Kind == api.FrameMarks {
				for _, m := range f.Marks() {
					n, last = n+1, m.Action
				}
			}
		}
		if n != want || last != len(facts) {
			t.Errorf("from %v on %d are marked, want %d; the last is #%d", from, n, want, last)
		}
	}
}
