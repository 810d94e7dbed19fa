package changes

import (
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/intent"
	"stepbox/ui/internal/cellstest"
	"stepbox/ui/paint"
)

func frame(t testing.TB, dst uv.Screen) paint.Frame {
	f := cellstest.Frame(t, dst)
	f.Now, f.Focused, f.Number = cellstest.Now, true, "2"
	return f
}

// give gives a pane what differs in an action's scope, or with 0 the session's.
func give(p *Pane, action int, c api.Changes) { p.SetChanges(api.Scope{Action: action}, NewTree(c)) }

func marked(r Row) string {
	out := ""
	for _, p := range r.Pieces {
		if p.Marked {
			out += "[" + p.Text + "]"
		} else {
			out += p.Text
		}
	}
	return out
}

func TestPrepare(t *testing.T) {
	var s struct{ Diff api.FileDiff }
	cellstest.Scene(&s)
	d := s.Diff
	got := Prepare(d)
	var ops strings.Builder
	for _, r := range got.Rows {
		ops.WriteByte(r.Op)
	}
	if ops.String() != "@  +++ -+  @  -+++ " {
		t.Errorf("rows are %q", ops.String())
	}
	if s := marked(got.Rows[7]); s != "    p := parser{tokens: tokens, depth: [100]}" {
		t.Errorf("the old line is %q", s)
	}
	if s := marked(got.Rows[8]); s != "    p := parser{tokens: tokens, depth: [maxDepth]}" {
		t.Errorf("the new line is %q", s)
	}
	last := got.Rows[len(got.Rows)-1]
	if last.Old != 43 || last.New != 51 {
		t.Errorf("the last line is %d and %d", last.Old, last.New)
	}
}

func TestMarks(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"x := 1", "x := 2", "x := [1]"},
		{"same", "same", "same"},
		{"abcdefgh", "abcdefgh and more", "abcdefgh"},
		{"foo(a, b, c)", "foo(a, c)", "foo(a, [b, ]c)"},
		{"entirely different", "1234567890", "entirely different"},
		{"größe = 10", "größe = 20", "größe = [10]"},
		{"", "x", ""},
	} {
		b := &preparing{words: maxWords}
		r := Row{Pieces: mark([]Piece{{Text: tt.a}}, b.differs(tt.a, tt.b))}
		if got := marked(r); got != tt.want {
			t.Errorf("%q beside %q is marked %q, want %q", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestBounds(t *testing.T) {
	h := api.Hunk{OldLine: 1, NewLine: 1}
	for range maxRows + 500 {
		h.Lines = append(h.Lines, api.Line{Op: " ", Text: "x"})
	}
	h.Lines[0].Text = strings.Repeat("漢", 9000)
	d := Prepare(api.FileDiff{Hunks: []api.Hunk{h, h}})
	if len(d.Rows) > maxRows || !d.Cut {
		t.Errorf("%d rows, cut: %v", len(d.Rows), d.Cut)
	}
	if n := len(d.Rows[1].Pieces[0].Text); n > maxLine+3 {
		t.Errorf("a line of %d bytes is kept", n)
	}
}

func show(t testing.TB, p *Pane, w, h int) string {
	s := uv.NewScreenBuffer(w, h)
	p.Draw(uv.Rect(0, 0, w, h), frame(t, s))
	return s.String()
}

func TestWhatCannotBeShownIsSaid(t *testing.T) {
	p := &Pane{Loading: true}
	if s := show(t, p, 60, 20); !strings.Contains(s, "reading changes") {
		t.Errorf("while loading:\n%s", s)
	}
	give(p, 0, api.Changes{Version: 1})
	if s := show(t, p, 60, 20); !strings.Contains(s, "no changes") {
		t.Errorf("without changes:\n%s", s)
	}
	give(p, 0, api.Changes{Version: 1, Returned: []string{"z", "y"}})
	if s := show(t, p, 60, 20); !strings.Contains(s, "undone here, not in the project: z and 1 more") {
		t.Errorf("with nothing but what was applied:\n%s", s)
	}
	give(p, 3, api.Changes{Files: []api.Change{{Path: "other scope", Key: "k"}}})
	if s := show(t, p, 60, 20); strings.Contains(s, "other scope") {
		t.Error("took an answer for another scope")
	}
	big := api.Change{Path: "big.iso", Key: "k", Status: "M", Binary: true, OldSize: 1 << 30, NewSize: 2 << 30, Words: "mode 644 → 755"}
	give(p, 0, api.Changes{Version: 2, Files: []api.Change{big}, More: 7, Apart: []string{"/etc/passwd", "/x"}, Returned: []string{"z"}})
	w, ok := p.Wanted()
	if !ok || w.Key != "k" || w.Version != 2 {
		t.Errorf("wants %+v", w)
	}
	p.SetDiff(w, Prepare(api.FileDiff{Change: big, Note: "too large to compare"}), "")
	s := show(t, p, 90, 20)
	for _, want := range []string{"too large to compare", "1G → 2G bytes", "mode 644 → 755", "and 7 more", "outside the project: /etc/passwd and 1 more", "undone here, not in the project: z", "binary 2G"} {
		if !strings.Contains(s, want) {
			t.Errorf("doesn't say %q:\n%s", want, s)
		}
	}
	p.SetDiff(w, nil, "that file isn't changed any more")
	if s := show(t, p, 60, 20); !strings.Contains(s, "isn't changed any more") {
		t.Errorf("a problem isn't told:\n%s", s)
	}
}

func TestSelectionStaysOnItsFile(t *testing.T) {
	var s struct{ Changes api.Changes }
	cellstest.Scene(&s)
	c := s.Changes
	p := &Pane{}
	give(p, 0, c)
	p.Handle(intent.Move{By: 2})
	c.Files = append([]api.Change{{Path: "aaa", Key: "new"}}, c.Files...)
	c.Version++
	give(p, 0, c)
	if w, _ := p.Wanted(); w.Key != "k3" {
		t.Errorf("the selection went to %q", w.Key)
	}
	c.Files = c.Files[:2]
	give(p, 0, c)
	if w, _ := p.Wanted(); w.Key != "k1" {
		t.Errorf("with its file gone the selection is on %q", w.Key)
	}
	p.SetScope(api.Scope{Action: 4})
	if _, ok := p.Wanted(); ok || len(p.rows) != 0 {
		t.Error("another scope shows the old files")
	}
}

// Whatever paths and lines contain, cells stay printable and inside the pane.
func FuzzDraw(f *testing.F) {
	f.Add("src/a\x1b[2J.go", "\t\u202ereturn\x00 1", "+", 40, 12)
	f.Add("漢字.py", "👨‍👩‍👧‍👦 '''", "-", 20, 5)
	f.Fuzz(func(t *testing.T, path, line, op string, w, h int) {
		w, h = max(0, w%120), max(0, h%40)
		c := api.Change{Path: path, From: line, Key: "k", Status: op, Words: line, Kind: op, Counted: true, Added: w}
		p := &Pane{}
		give(p, 0, api.Changes{Files: []api.Change{c}, Apart: []string{path}, More: 1})
		want, _ := p.Wanted()
		p.SetDiff(want, Prepare(api.FileDiff{Change: c, Note: line, Hunks: []api.Hunk{{Section: line, Lines: []api.Line{
			{Op: op, Text: line}, {Op: "-", Text: line}, {Op: "+", Text: path}, {Text: path},
		}}}}), "")
		p.Reading = w%2 == 0
		p.Handle(intent.Slide{By: w % 9})
		p.Handle(intent.Sides{})
		s := uv.NewScreenBuffer(w+4, h+4)
		p.Draw(uv.Rect(2, 2, w, h), frame(t, s))
		cellstest.Check(t, s, uv.Rect(2, 2, w, h))
	})
}
