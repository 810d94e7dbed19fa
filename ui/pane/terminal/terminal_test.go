package terminal

import (
	"context"
	"io"
	"iter"
	"strings"
	"sync"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"stepbox/session/api"
	"stepbox/session/screen"
	"stepbox/ui/internal/cellstest"
	"stepbox/ui/link"
	"stepbox/ui/paint"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSafe(t *testing.T) {
	web := uv.Link{URL: "https://example.com/a?b=c"}
	for _, tt := range []struct {
		name string
		in   uv.Cell
		want uv.Cell
	}{
		{"plain", uv.Cell{Content: "a", Width: 1}, uv.Cell{Content: "a", Width: 1}},
		{"wide", uv.Cell{Content: "漢", Width: 2}, uv.Cell{Content: "漢", Width: 2}},
		{"accent", uv.Cell{Content: "e\u0301", Width: 1}, uv.Cell{Content: "e\u0301", Width: 1}},
		{"control", uv.Cell{Content: "\x1b", Width: 1}, uv.Cell{Content: " ", Width: 1}},
		{"sequence", uv.Cell{Content: "\x1b[2J", Width: 1}, uv.Cell{Content: " ", Width: 1}},
		{"C1", uv.Cell{Content: "\u009b", Width: 1}, uv.Cell{Content: " ", Width: 1}},
		{"bidi", uv.Cell{Content: "a\u202e", Width: 1}, uv.Cell{Content: "a", Width: 1}},
		{"lies about its width", uv.Cell{Content: "abc", Width: 1}, uv.Cell{Content: "a", Width: 1}},
		{"family", uv.Cell{Content: "👨‍👩‍👧", Width: 2}, uv.Cell{Content: "👨‍👩‍👧", Width: 2}},
		{"red heart", uv.Cell{Content: "❤\ufe0f", Width: 2}, uv.Cell{Content: "❤\ufe0f", Width: 2}},
		{"signs of a script", uv.Cell{Content: "का", Width: 2}, uv.Cell{Content: "का", Width: 2}},
		{"part of an image", uv.Cell{Content: "\U0010eeee\u0305\u030d", Width: 1}, uv.Cell{Content: " ", Width: 1}},
		{"endless cluster", uv.Cell{Content: "a" + strings.Repeat("\u0301", 500), Width: 1}, uv.Cell{Content: "a", Width: 1}},
		{"web link", uv.Cell{Content: "a", Width: 1, Link: web}, uv.Cell{Content: "a", Width: 1, Link: web}},
		{"link that escapes", uv.Cell{Content: "a", Width: 1, Link: uv.Link{URL: "https://x\x1b\\\x1b]52;c;AAAA\a"}}, uv.Cell{Content: "a", Width: 1}},
		{"link to a person", uv.Cell{Content: "a", Width: 1, Link: uv.Link{URL: "mailto:a@example.com"}}, uv.Cell{Content: "a", Width: 1, Link: uv.Link{URL: "mailto:a@example.com"}}},
		{"link to a program", uv.Cell{Content: "a", Width: 1, Link: uv.Link{URL: "ssh://-oProxyCommand=x"}}, uv.Cell{Content: "a", Width: 1}},
		{"link to a file", uv.Cell{Content: "a", Width: 1, Link: uv.Link{URL: "file:///etc/passwd"}}, uv.Cell{Content: "a", Width: 1}},
		{"link whose parameters escape", uv.Cell{Content: "a", Width: 1, Link: uv.Link{URL: web.URL, Params: "id=1\x07"}}, uv.Cell{Content: "a", Width: 1}},
		{"empty", uv.Cell{}, uv.Cell{Content: " ", Width: 1}},
	} {
		if got := safe(tt.in); !got.Equal(&tt.want) {
			t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

func FuzzSafe(f *testing.F) {
	f.Add("\x1b]52;c;x\a", "https://a", 1)
	f.Add("👨‍👩‍👧‍👦", "", 2)
	f.Fuzz(func(t *testing.T, content, url string, width int) {
		c := safe(uv.Cell{Content: content, Width: width, Link: uv.Link{URL: url}})
		if cluster, _ := ansi.FirstGraphemeCluster(c.Content, ansi.GraphemeWidth); c.Width < 1 || c.Width > maxWidth || cluster != c.Content || len(cluster) > maxBytes {
			t.Fatalf("%q became %q, which claims %d", content, c.Content, c.Width)
		}
		for _, r := range c.Content + c.Link.URL {
			if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 {
				t.Fatalf("%q, %q became %q, %q", content, url, c.Content, c.Link.URL)
			}
		}
	})
}

// hostile is an emulator whose cells and answers are as bad as they get.
type hostile struct{ link.Emulator }

func (hostile) Size() (int, int)   { return 50, 10 }
func (hostile) Title() string      { return "title\x1b]0;x\a\u202e" }
func (hostile) Cursor() uv.Cursor  { return uv.Cursor{Position: uv.Pos(-5, 99)} }
func (hostile) ScrollbackLen() int { return -3 }
func (hostile) Draw(dst uv.Screen, area uv.Rectangle, _ int) {
	for y := area.Min.Y - 2; y < area.Max.Y+2; y++ {
		for x := area.Min.X - 2; x < area.Max.X+2; x++ {
			dst.SetCell(x, y, &uv.Cell{Content: "\x1b[2J", Width: 1 + (x+5)%3, Link: uv.Link{URL: "javascript:x"}})
		}
	}
}

func emulator(cols, rows int) link.Emulator { return screen.New(cols, rows) }

// still is a session whose terminal shows one frame, and nothing ever happens.
type still struct {
	link.Client
	first api.Frame
}

func (s still) Events(ctx context.Context, _ string, _ uint64) iter.Seq2[api.Event, error] {
	return func(func(api.Event, error) bool) { <-ctx.Done() }
}

func (s still) Terminal(context.Context, string) (link.Stream, error) {
	frames := make(chan api.Frame, 1)
	frames <- s.first
	return stream{frames, &sync.Once{}}, nil
}

type stream struct {
	frames chan api.Frame
	once   *sync.Once
}

func (s stream) Read() (api.Frame, error) {
	f, open := <-s.frames
	if !open {
		return f, io.ErrClosedPipe
	}
	return f, nil
}

func (s stream) Input([]byte) error    { return nil }
func (s stream) Resize(int, int) error { return nil }

func (s stream) Close() error {
	s.once.Do(func() { close(s.frames) })
	return nil
}

func pane(t *testing.T, newEmu link.NewEmulator, keyframe string, cols, rows int) (*Pane, *link.Link) {
	t.Helper()
	first := api.Frame{Kind: api.FrameKeyframe, Cols: cols, Rows: rows, Data: []byte(strings.ReplaceAll(keyframe, "\n", "\r\n"))}
	l := link.Open(t.Context(), still{first: first}, "x", newEmu)
	t.Cleanup(l.Close)
	for {
		if lost, ok := l.Next()().(link.Lost); ok && lost.Terminal {
			break
		}
	}
	return &Pane{Screen: &l.Screen}, l
}

func frame(t testing.TB, dst uv.Screen) paint.Frame {
	f := cellstest.Frame(t, dst)
	f.Focused, f.Number = true, "1"
	return f
}

func TestHostileEmulator(t *testing.T) {
	p, _ := pane(t, func(int, int) link.Emulator { return hostile{screen.New(50, 10)} }, "x", 50, 10)
	for _, size := range [][2]int{{60, 20}, {20, 5}, {3, 3}, {2, 2}, {0, 0}} {
		s := uv.NewScreenBuffer(size[0]+4, size[1]+4)
		area := uv.Rect(2, 2, size[0], size[1])
		if c := p.Draw(area, frame(t, s)); c != nil {
			t.Errorf("a cursor outside of the screen is drawn at %v", c.Position)
		}
		cellstest.Check(t, s, area)
	}
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("line " + string(rune('a'+i%26)))
	}
	return b.String()
}

// A screen larger than the pane, as a past session's may be, is shown where its
// cursor is.
func TestLargerScreen(t *testing.T) {
	p, _ := pane(t, emulator, lines(20), 100, 20)
	s := uv.NewScreenBuffer(32, 7)
	c := p.Draw(uv.Rect(0, 0, 32, 7), frame(t, s))
	if got := s.String(); !strings.Contains(got, "line t") || !strings.Contains(got, "100×20") || c == nil || c.Y != 5 {
		t.Errorf("cursor %+v:\n%s", c, got)
	}
	p.ReadOnly = true
	if c := p.Draw(uv.Rect(0, 0, 32, 7), frame(t, s)); c != nil {
		t.Error("a past session has a cursor")
	}
}
