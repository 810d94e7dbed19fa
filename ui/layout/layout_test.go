package layout

import (
	"image"
	"testing"

	"pgregory.net/rapid"

	"stepbox/ui/intent"
)

func r(x, y, w, h int) image.Rectangle { return image.Rect(x, y, x+w, y+h) }

type rooms = [intent.Actions + 1]image.Rectangle

func TestWorkbench(t *testing.T) {
	for _, tt := range []struct {
		name string
		wish Wish
		want Panes
	}{
		{"too small", Wish{Cols: 20, Rows: 5}, Panes{}},
		{"too narrow", Wish{Cols: 39, Rows: 40}, Panes{}},
		{"too low", Wish{Cols: 200, Rows: 11}, Panes{}},
		{"narrow shows the focused pane and the strip", Wish{Cols: 60, Rows: 20, Focus: intent.Changes}, Panes{
			Kind: Narrow, Title: r(0, 0, 60, 1), Tabs: r(0, 1, 60, 1), of: rooms{intent.Changes: r(0, 2, 60, 12), intent.Actions: r(0, 14, 60, 5)}, Held: r(0, 19, 60, 1),
		}},
		{"narrow, actions", Wish{Cols: 60, Rows: 20, Focus: intent.Actions}, Panes{
			Kind: Narrow, Title: r(0, 0, 60, 1), Tabs: r(0, 1, 60, 1), of: rooms{intent.Actions: r(0, 2, 60, 17)}, Held: r(0, 19, 60, 1),
		}},
		{"80×24", Wish{Cols: 80, Rows: 24, Focus: intent.Terminal}, Panes{
			Kind: Medium, Title: r(0, 0, 80, 1), of: rooms{intent.Terminal: r(0, 1, 48, 16), intent.Changes: r(48, 1, 32, 16), intent.Actions: r(0, 17, 80, 6)}, Held: r(0, 23, 80, 1),
		}},
		{"80×24, the other side pane", Wish{Cols: 80, Rows: 24, Focus: intent.Terminal, Side: intent.Network}, Panes{
			Kind: Medium, Title: r(0, 0, 80, 1), of: rooms{intent.Terminal: r(0, 1, 48, 16), intent.Network: r(48, 1, 32, 16), intent.Actions: r(0, 17, 80, 6)}, Held: r(0, 23, 80, 1),
		}},
		{"80×24, zoomed", Wish{Cols: 80, Rows: 24, Focus: intent.Terminal, Zoom: true}, Panes{
			zoom: true, Kind: Medium, Title: r(0, 0, 80, 1), of: rooms{intent.Terminal: r(0, 1, 80, 19), intent.Actions: r(0, 20, 80, 3)}, Held: r(0, 23, 80, 1),
		}},
		{"80×24 with a course, which costs the actions a row", Wish{Cols: 80, Rows: 24, Focus: intent.Terminal, Transport: true}, Panes{
			Kind: Medium, Title: r(0, 0, 80, 1), of: rooms{intent.Terminal: r(0, 1, 48, 16), intent.Changes: r(48, 1, 32, 16), intent.Actions: r(0, 17, 80, 5)},
			Transport: r(0, 22, 80, 1), Held: r(0, 23, 80, 1),
		}},
		{"120×35", Wish{Cols: 120, Rows: 35, Focus: intent.Terminal}, Panes{
			Kind: Wide, Title: r(0, 0, 120, 1), of: rooms{intent.Terminal: r(0, 1, 72, 25), intent.Changes: r(72, 1, 48, 16), intent.Network: r(72, 17, 48, 9), intent.Actions: r(0, 26, 120, 8)}, Held: r(0, 34, 120, 1),
		}},
		{"126 columns give the agent eighty", Wish{Cols: 126, Rows: 35, Focus: intent.Terminal}, Panes{
			Kind: Wide, Title: r(0, 0, 126, 1), of: rooms{intent.Terminal: r(0, 1, 82, 25), intent.Changes: r(82, 1, 44, 16), intent.Network: r(82, 17, 44, 9), intent.Actions: r(0, 26, 126, 8)}, Held: r(0, 34, 126, 1),
		}},
		{"200×60", Wish{Cols: 200, Rows: 60, Focus: intent.Actions}, Panes{
			Kind: Wide, Title: r(0, 0, 200, 1), of: rooms{intent.Terminal: r(0, 1, 120, 43), intent.Changes: r(120, 1, 80, 28), intent.Network: r(120, 29, 80, 15), intent.Actions: r(0, 44, 200, 15)}, Held: r(0, 59, 200, 1),
		}},
		{"200×60, actions zoomed", Wish{Cols: 200, Rows: 60, Focus: intent.Actions, Zoom: true}, Panes{
			zoom: true, Kind: Wide, Title: r(0, 0, 200, 1), of: rooms{intent.Actions: r(0, 1, 200, 58)}, Held: r(0, 59, 200, 1),
		}},
		{"split", Wish{Cols: 200, Rows: 60, Focus: intent.Terminal, Shape: Shape{Left: 500}}, Panes{
			Kind: Wide, Title: r(0, 0, 200, 1), of: rooms{intent.Terminal: r(0, 1, 100, 43), intent.Changes: r(100, 1, 100, 28), intent.Network: r(100, 29, 100, 15), intent.Actions: r(0, 44, 200, 15)}, Held: r(0, 59, 200, 1),
		}},
		{"all borders", Wish{Cols: 200, Rows: 60, Focus: intent.Terminal, Shape: Shape{Left: 400, Strip: 300, Net: 500}}, Panes{
			Kind: Wide, Title: r(0, 0, 200, 1), of: rooms{intent.Terminal: r(0, 1, 80, 40), intent.Changes: r(80, 1, 120, 20), intent.Network: r(80, 21, 120, 20), intent.Actions: r(0, 41, 200, 18)}, Held: r(0, 59, 200, 1),
		}},
		{"watching", Wish{Cols: 120, Rows: 35, Focus: intent.Terminal, Shape: Shape{Preset: intent.Watching}}, Panes{
			Kind: Wide, Title: r(0, 0, 120, 1), of: rooms{intent.Terminal: r(0, 1, 90, 30), intent.Changes: r(90, 1, 30, 20), intent.Network: r(90, 21, 30, 10), intent.Actions: r(0, 31, 120, 3)}, Held: r(0, 34, 120, 1),
		}},
		{"watching where it is narrower", Wish{Cols: 80, Rows: 24, Focus: intent.Actions, Shape: Shape{Preset: intent.Watching}}, Panes{
			Kind: Medium, Title: r(0, 0, 80, 1), of: rooms{intent.Terminal: r(0, 1, 80, 19), intent.Actions: r(0, 20, 80, 3)}, Held: r(0, 23, 80, 1),
		}},
		{"watching, from the side pane", Wish{Cols: 80, Rows: 24, Focus: intent.Network, Shape: Shape{Preset: intent.Watching}}, Panes{
			Kind: Medium, Title: r(0, 0, 80, 1), of: rooms{intent.Terminal: r(0, 1, 56, 19), intent.Network: r(56, 1, 24, 19), intent.Actions: r(0, 20, 80, 3)}, Held: r(0, 23, 80, 1),
		}},
		{"reviewing", Wish{Cols: 200, Rows: 60, Focus: intent.Changes, Shape: Shape{Preset: intent.Reviewing}}, Panes{
			Kind: Wide, Title: r(0, 0, 200, 1), of: rooms{intent.Changes: r(0, 1, 200, 44), intent.Network: r(0, 45, 200, 11), intent.Actions: r(0, 56, 200, 3)}, Held: r(0, 59, 200, 1),
		}},
		{"reviewing, from the Terminal", Wish{Cols: 120, Rows: 35, Focus: intent.Terminal, Shape: Shape{Preset: intent.Reviewing}}, Panes{
			Kind: Wide, Title: r(0, 0, 120, 1), of: rooms{intent.Terminal: r(0, 1, 72, 30), intent.Changes: r(72, 1, 48, 24), intent.Network: r(72, 25, 48, 6), intent.Actions: r(0, 31, 120, 3)}, Held: r(0, 34, 120, 1),
		}},
		{"deciding", Wish{Cols: 120, Rows: 35, Focus: intent.Actions, Shape: Shape{Preset: intent.Deciding}}, Panes{
			Kind: Wide, Title: r(0, 0, 120, 1), of: rooms{intent.Terminal: r(0, 1, 72, 16), intent.Changes: r(72, 1, 48, 11), intent.Network: r(72, 12, 48, 5), intent.Actions: r(0, 17, 120, 17)}, Held: r(0, 34, 120, 1),
		}},
		{"80×24 with a question: the panes are less high", Wish{Cols: 80, Rows: 24, Focus: intent.Terminal, Dock: 13}, Panes{
			Kind: Medium, Title: r(0, 0, 80, 1), of: rooms{intent.Terminal: r(0, 1, 48, 6), intent.Changes: r(48, 1, 32, 6), intent.Actions: r(0, 20, 80, 3)},
			Dock: r(0, 7, 80, 13), Held: r(0, 23, 80, 1),
		}},
		{"80×24 with a long question, which leaves some of the panes", Wish{Cols: 80, Rows: 24, Focus: intent.Terminal, Dock: 99}, Panes{
			Kind: Medium, Title: r(0, 0, 80, 1), of: rooms{intent.Terminal: r(0, 1, 48, 5), intent.Changes: r(48, 1, 32, 5), intent.Actions: r(0, 20, 80, 3)},
			Dock: r(0, 6, 80, 14), Held: r(0, 23, 80, 1),
		}},
		{"40×12 with a question, which is alone above the strip", Wish{Cols: 40, Rows: 12, Focus: intent.Terminal, Dock: 13}, Panes{
			Kind: Narrow, Title: r(0, 0, 40, 1), Tabs: r(0, 1, 40, 1), of: rooms{intent.Actions: r(0, 8, 40, 3)}, Dock: r(0, 2, 40, 6), Held: r(0, 11, 40, 1),
		}},
		{"narrow, actions, with a question: it is beside the Terminal", Wish{Cols: 60, Rows: 20, Focus: intent.Actions, Dock: 9}, Panes{
			Kind: Narrow, Title: r(0, 0, 60, 1), Tabs: r(0, 1, 60, 1), of: rooms{intent.Terminal: r(0, 2, 60, 5), intent.Actions: r(0, 16, 60, 3)},
			Dock: r(0, 7, 60, 9), Held: r(0, 19, 60, 1),
		}},
		{"120×35 with a question", Wish{Cols: 120, Rows: 35, Focus: intent.Terminal, Dock: 13}, Panes{
			Kind: Wide, Title: r(0, 0, 120, 1), of: rooms{intent.Terminal: r(0, 1, 72, 15), intent.Changes: r(72, 1, 48, 10), intent.Network: r(72, 11, 48, 5), intent.Actions: r(0, 29, 120, 5)},
			Dock: r(0, 16, 120, 13), Held: r(0, 34, 120, 1),
		}},
		{"200×50 with a question: it is in the side column, the Terminal stays whole", Wish{Cols: 200, Rows: 50, Focus: intent.Terminal, Dock: 13}, Panes{
			Kind: Wide, Title: r(0, 0, 200, 1), of: rooms{intent.Terminal: r(0, 1, 120, 36), intent.Changes: r(120, 1, 80, 23), intent.Actions: r(0, 37, 200, 12)},
			Dock: r(120, 24, 80, 13), Held: r(0, 49, 200, 1),
		}},
		{"200×50, zoomed, with a question", Wish{Cols: 200, Rows: 50, Focus: intent.Actions, Zoom: true, Dock: 13}, Panes{
			zoom: true, Kind: Wide, Title: r(0, 0, 200, 1), of: rooms{intent.Terminal: r(0, 1, 200, 32), intent.Actions: r(0, 46, 200, 3)},
			Dock: r(0, 33, 200, 13), Held: r(0, 49, 200, 1),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Workbench(tt.wish); got != tt.want {
				t.Errorf("got\n%+v, want\n%+v", got, tt.want)
			}
		})
	}
}

// anyWish is some wish for a screen of some size, also ones that make no sense.
func anyWish(t *rapid.T) Wish {
	share := rapid.IntRange(-100, 1200)
	return Wish{
		Cols: rapid.IntRange(-1, 500).Draw(t, "cols"), Rows: rapid.IntRange(-1, 200).Draw(t, "rows"),
		Focus: intent.Pane(rapid.IntRange(1, 4).Draw(t, "focus")), Zoom: rapid.Bool().Draw(t, "zoom"),
		Side: intent.Pane(rapid.IntRange(0, 4).Draw(t, "side")), Transport: rapid.Bool().Draw(t, "transport"), Linear: rapid.Bool().Draw(t, "linear"),
		Shape: Shape{
			Preset: rapid.SampledFrom([]intent.Preset{"", "none", intent.Usual, intent.Watching, intent.Reviewing, intent.Deciding}).Draw(t, "preset"),
			Left:   share.Draw(t, "left"), Strip: share.Draw(t, "strip"), Net: share.Draw(t, "net"),
		},
	}
}

// Panes never overlap and never leave the screen, the strip and the held line
// are always there, and the focused pane is always in view.
func TestWorkbenchProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWish(t)
		w.Dock = rapid.SampledFrom([]int{0, 0, 1, 9, 13, 30, 500}).Draw(t, "dock")
		p := Workbench(w)
		if w.Cols < MinCols || w.Rows < MinRows {
			if p != (Panes{}) {
				t.Fatal("something is shown on too small a screen")
			}
			return
		}
		all := []image.Rectangle{p.Title, p.Tabs, p.Of(intent.Terminal), p.Of(intent.Changes), p.Of(intent.Network), p.Of(intent.Actions), p.Transport, p.Dock, p.Held}
		area := 0
		for i, a := range all {
			area += a.Dx() * a.Dy()
			if !a.In(image.Rect(0, 0, w.Cols, w.Rows)) {
				t.Fatalf("%v leaves the screen", a)
			}
			for _, b := range all[i+1:] {
				if a.Overlaps(b) {
					t.Fatalf("%v overlaps %v", a, b)
				}
			}
		}
		if area != w.Cols*w.Rows {
			t.Fatalf("%d of %d cells belong to something", area, w.Cols*w.Rows)
		}
		if p.Of(intent.Actions).Dy() < 3 && !w.Linear || p.Held.Empty() || p.Title.Empty() || p.Transport.Empty() == w.Transport {
			t.Fatal("the strip, the held line, the title or the course is hidden")
		}
		if w.Linear && w.Focus != intent.Actions && !p.Of(intent.Actions).Empty() {
			t.Fatal("a second pane is shown where one is to be")
		}
		if (w.Dock > 0) != (p.Dock.Dy() >= 4) {
			t.Fatalf("a question that wants %d rows has %v", w.Dock, p.Dock)
		}
		f := p.Of(w.Focus)
		if w.Dock > 0 {
			return
		}
		if f.Dx() < 24 || f.Dy() < 3 {
			t.Fatalf("the focused pane has %v", f)
		}
		if got := p.At(f.Min.X, f.Min.Y); got != w.Focus {
			t.Fatalf("%v is at the focused pane's corner", got)
		}
	})
}

// A border goes where the mouse pulls it as far as panes have what they need, and
// a step of a key moves it in its direction and back.
func TestBordersFollow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWish(t)
		w.Zoom, w.Transport, w.Linear, w.Shape.Preset = false, false, false, "" // what hides columns has no border between them
		p := Workbench(w)
		for _, b := range []intent.Border{intent.Columns, intent.Strip, intent.Between} {
			at, ok := p.at(b)
			if !ok {
				continue
			}
			on := at.Add(image.Pt(2, 0))
			if b == intent.Columns {
				on = at.Sub(image.Pt(0, 2))
			}
			if got := p.Border(on.X, on.Y); got != b {
				t.Fatalf("%v is at %v, where there is %v", b, on, got)
			}
			to := at.Add(image.Pt(rapid.IntRange(-30, 30).Draw(t, "x"), rapid.IntRange(-10, 10).Draw(t, "y")))
			share := p.Share(b, to.X, to.Y)
			next := w
			next.Shape = w.Shape.Clean().With(b, share)
			now, ok := Workbench(next).at(b)
			if !ok {
				t.Fatalf("%v is gone once it was moved", b)
			}
			was, want, got := at.Y, to.Y, now.Y
			if b == intent.Columns {
				was, want, got = at.X, to.X, now.X
			}
			if (got-was)*(want-was) < 0 || abs(got-was) > abs(want-was) {
				t.Fatalf("%v went from %d to %d, pulled to %d", b, was, got, want)
			}
			if free := clamp(b, share) == share; free && abs(got-want) > 0 && !tight(Workbench(next), b) {
				t.Fatalf("%v is at %d, pulled to %d", b, got, want)
			}
		}
	})
}

func abs(n int) int { return max(n, -n) }

// tight says whether a pane beside a border has the least that it needs.
func tight(p Panes, b intent.Border) bool {
	for _, pane := range intent.Panes {
		r := p.Of(pane)
		if !r.Empty() && (r.Dy() <= paneRows || b == intent.Columns && r.Dx() <= 30) {
			return true
		}
	}
	return false
}

func TestCleanShape(t *testing.T) {
	got := Shape{Preset: "sideways", Left: -3, Strip: 5000, Net: 1}.Clean()
	if want := (Shape{Left: 300, Strip: 700, Net: 100}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if s := (Shape{Preset: intent.Watching, Left: 444, Flat: true}); s.Clean() != s {
		t.Errorf("%+v became %+v", s, s.Clean())
	}
}
