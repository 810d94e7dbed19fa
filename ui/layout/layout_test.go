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
			Kind: Medium, Title: r(0, 0, 80, 1), of: rooms{intent.Terminal: r(0, 1, 80, 19), intent.Actions: r(0, 20, 80, 3)}, Held: r(0, 23, 80, 1),
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
			Kind: Wide, Title: r(0, 0, 200, 1), of: rooms{intent.Actions: r(0, 1, 200, 58)}, Held: r(0, 59, 200, 1),
		}},
		{"split", Wish{Cols: 200, Rows: 60, Focus: intent.Terminal, Split: 50}, Panes{
			Kind: Wide, Title: r(0, 0, 200, 1), of: rooms{intent.Terminal: r(0, 1, 100, 43), intent.Changes: r(100, 1, 100, 28), intent.Network: r(100, 29, 100, 15), intent.Actions: r(0, 44, 200, 15)}, Held: r(0, 59, 200, 1),
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Workbench(tt.wish); got != tt.want {
				t.Errorf("got\n%+v, want\n%+v", got, tt.want)
			}
		})
	}
}

// Panes never overlap and never leave the screen, the strip and the held line
// are always there, and the focused pane is always in view.
func TestWorkbenchProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := Wish{
			Cols: rapid.IntRange(-1, 400).Draw(t, "cols"), Rows: rapid.IntRange(-1, 150).Draw(t, "rows"),
			Focus: intent.Pane(rapid.IntRange(1, 4).Draw(t, "focus")), Zoom: rapid.Bool().Draw(t, "zoom"),
			Side: intent.Pane(rapid.IntRange(0, 4).Draw(t, "side")), Split: rapid.IntRange(-10, 150).Draw(t, "split"),
		}
		p := Workbench(w)
		if w.Cols < MinCols || w.Rows < MinRows {
			if p != (Panes{}) {
				t.Fatal("something is shown on too small a screen")
			}
			return
		}
		all := []image.Rectangle{p.Title, p.Tabs, p.Of(intent.Terminal), p.Of(intent.Changes), p.Of(intent.Network), p.Of(intent.Actions), p.Held}
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
		if p.Of(intent.Actions).Dy() < 3 || p.Held.Empty() || p.Title.Empty() {
			t.Fatal("the strip, the held line or the title is hidden")
		}
		if p.Of(w.Focus).Empty() && w.Focus != intent.Network && w.Focus != intent.Changes {
			t.Fatal("the focused pane isn't shown")
		}
		if f := p.Of(w.Focus); !f.Empty() {
			if got := p.At(f.Min.X, f.Min.Y); got != w.Focus {
				t.Fatalf("%v is at the focused pane's corner", got)
			}
		}
	})
}
