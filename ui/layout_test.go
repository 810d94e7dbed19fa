package ui

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/e2e/must"
	"stepbox/ui/intent"
	"stepbox/ui/kept"
	"stepbox/ui/layout"
)

func laidOut(t *testing.T, dir kept.Folder, cols, rows int) *driver {
	d := drive(t, sceneWorkbench(), cols, rows, Options{Session: sceneSession().ID, Config: themed("plain"), Kept: dir, NoTour: true})
	d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() && d.c.LastTerminal() != nil })
	d.idle()
	return d
}

// where is the column and the row at which words stand first.
func (d *driver) where(words string) (x, y int) {
	d.t.Helper()
	for y := range d.cells.Height() {
		for x := range d.cells.Width() {
			at := 0
			for at < len(words) {
				c := d.cells.CellAt(x+at, y)
				if c == nil || c.Content != words[at:at+1] {
					break
				}
				at++
			}
			if at == len(words) {
				return x, y
			}
		}
	}
	d.t.Fatalf("%q isn't shown\n%s", words, d.text())
	return 0, 0
}

// Every border moves by keys, after the leader too, and by the mouse; how it is left
// is there again in the next run, for this kind of room alone.
func TestPanesAreSized(t *testing.T) { alone(t, testPanesAreSized) }

func testPanesAreSized(t *testing.T) {
	m := kept.Folder(t.TempDir())
	d := laidOut(t, m, 120, 35)
	changes, _ := d.where("2 Changes")
	_, actions := d.where("4 Actions")
	d.press(leader, "<")
	if x, _ := d.where("2 Changes"); x >= changes {
		t.Errorf("Changes began in column %d, and after < in %d", changes, x)
	}
	d.press(leader, ">", leader, "4", "(")
	if _, y := d.where("4 Actions"); y >= actions {
		t.Errorf("Actions began in row %d, and after ( in %d", actions, y)
	}
	d.press(")", "3")
	_, network := d.where("3 Network")
	d.press(")", ")")
	if _, y := d.where("3 Network"); y <= network {
		t.Errorf("Network began in row %d, and after ) in %d", network, y)
	}
	pull := func(x, y, toX, toY int) {
		d.send(click(x, y))
		d.send(tea.MouseMotionMsg{X: toX, Y: toY, Button: tea.MouseLeft})
		d.send(tea.MouseReleaseMsg{X: toX, Y: toY, Button: tea.MouseLeft})
	}
	x, y := d.where("4 Actions")
	pull(x, y, x, y-6)
	if _, now := d.where("4 Actions"); now != y-6 {
		t.Errorf("Actions begins in row %d, pulled to %d", now, y-6)
	}
	x, y = d.where("3 Network")
	pull(x, y, x, y-2)
	if _, now := d.where("3 Network"); now != y-2 {
		t.Errorf("Network begins in row %d, pulled to %d", now, y-2)
	}
	x, _ = d.where("2 Changes")
	pull(x-2, 5, 60, 5)
	x, y = d.where("2 Changes")
	if x != 62 {
		t.Errorf("Changes begins in column %d, pulled to 60", x-2)
	}
	d.idle()

	again := laidOut(t, m, 130, 36)
	if again.m.bench.Resize(120, 35); m.Layout().Shapes()[layout.Medium] != (layout.Shape{}) {
		t.Error("it holds for another kind of room, too")
	}
	again.send(tea.WindowSizeMsg{Width: 120, Height: 35})
	if nx, ny := again.where("2 Changes"); nx != x || ny != y {
		t.Errorf("in the next run Changes is at %d,%d, it was at %d,%d", nx, ny, x, y)
	}
	if d.c.LastTerminal().Got() != "" {
		t.Error("the agent got keys that were ours")
	}
}

// A key goes through the layouts, and none gives the Terminal the focus: the key
// pressed again would be the agent's.
func TestLayouts(t *testing.T) { alone(t, testLayouts) }

func testLayouts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file") // where the folder should be
	must.OK(t, os.WriteFile(file, nil, 0o600))
	m := kept.Folder(file)
	d := laidOut(t, m, 120, 35)
	d.press(leader, "space")
	d.shows("layout: watching")
	d.idle()
	d.shows("cannot remember the layout")
	must.OK(t, os.Remove(file))
	d.press(leader, "space")
	d.shows("layout: reviewing")
	d.lacks("1 Terminal")
	d.press("O")
	d.shows("layout: deciding")
	if _, y := d.where("4 Actions"); y != 17 {
		t.Errorf("Actions begins in row %d", y)
	}
	d.press("O", "O", "O", ":")
	d.lacks("1 Terminal")
	d.types("layout usual")
	d.press("enter")
	d.shows("layout: usual")
	d.shows("1 Terminal")
	d.idle()
	if got := m.Layout().Shapes()[layout.Wide].Preset; got != intent.Usual {
		t.Errorf("%q is kept", got)
	}
	if got := d.c.LastTerminal().Got(); got != "" {
		t.Errorf("the agent got %q", got)
	}
}

// A person's settings say how it is at first.
func TestLayoutOfSettings(t *testing.T) { alone(t, testLayoutOfSettings) }

func testLayoutOfSettings(t *testing.T) {
	c := themed("plain")
	c.Layout = intent.Deciding
	d := drive(t, sceneWorkbench(), 120, 35, Options{Session: sceneSession().ID, Config: c})
	d.shows("4 Actions")
	if _, y := d.where("4 Actions"); y != 17 {
		t.Errorf("Actions begins in row %d\n%s", y, d.text())
	}
}

// T lists changed files without folders, which stays so in the next run; the cursor
// stays on its file, or goes from a folder to what is in it.
func TestTreeOrList(t *testing.T) { alone(t, testTreeOrList) }

func testTreeOrList(t *testing.T) {
	m := kept.Folder(t.TempDir())
	d := laidOut(t, m, 120, 35)
	d.press(leader, "2", "k")
	d.shows("▾ src/")
	d.press("T")
	d.lacks("▾ src/")
	for _, words := range []string{"M src/parse.go", "A src/parse_test.go", "M assets/logo.png", "› Changes › src/parse.go"} {
		d.shows(words)
	}
	d.press("j")
	d.shows("› Changes › src/parse_test.go")
	d.idle()
	d = laidOut(t, m, 120, 35)
	d.shows("A src/parse_test.go")
	d.press(leader, "2", "j", "T")
	d.shows("▾ src/")
	d.shows("› Changes › src/parse_test.go")
	d.idle()
	if m.Layout().Shapes()[layout.Wide].Flat {
		t.Error("the list is kept, and the tree was chosen last")
	}
}

// Where the old and the new text have room beside each other, they do: alone, or
// where the layout for reviewing gives it.
func TestSideBySideWhereThereIsRoom(t *testing.T) { alone(t, testSideBySideWhereThereIsRoom) }

func testSideBySideWhereThereIsRoom(t *testing.T) {
	d := laidOut(t, kept.Folder(t.TempDir()), 200, 50)
	beside := func() bool { return strings.Contains(d.text(), "│  11   func Parse") }
	if d.press(leader, "2"); beside() {
		t.Error("they are beside each other in half of the screen")
	}
	d.press(leader, "space", leader, "space")
	d.shows("layout: reviewing")
	d.until("they are beside each other", beside)
	if d.press("t"); beside() {
		t.Error("they are beside each other, and it was asked for one text")
	}
	d = laidOut(t, kept.Folder(t.TempDir()), 200, 50)
	d.press(leader, "2", "enter")
	d.until("they are, alone", beside)
}

// Whatever a person does with the borders, the mouse and the size of their terminal:
// one pane has the focus and is shown, Actions and the last line are, and the agent
// gets none of the keys.
func TestAnyArrangement(t *testing.T) { everywhere(t, testAnyArrangement) }

func testAnyArrangement(t *testing.T) {
	d := laidOut(t, kept.Folder(t.TempDir()), 120, 35)
	keys := []string{"<", ">", "(", ")", "z", "O", "2", "3", "4", "T", "t", "j", "G"}
	random := rand.New(rand.NewPCG(1, 2))
	cols, rows := 120, 35
	for step := range 600 {
		x, y := random.IntN(cols), random.IntN(rows)
		switch did := random.IntN(10); {
		case did == 0:
			cols, rows = 40+random.IntN(200), 12+random.IntN(60)
			d.send(tea.WindowSizeMsg{Width: cols, Height: rows})
		case did == 1:
			d.send(tea.MouseReleaseMsg{X: x, Y: y, Button: tea.MouseLeft})
		case did < 4: // many mice only tell of presses
			d.send(click(x, y))
		case did < 6:
			d.send(tea.MouseMotionMsg{X: x, Y: y, Button: tea.MouseLeft})
		case did < 7 || strings.Contains(d.text(), "┏ 1 Terminal"):
			d.press(leader, []string{"space", "<", ")", "z", "2", "s"}[random.IntN(6)])
		default:
			d.press(keys[random.IntN(len(keys))])
		}
		text := d.text()
		if n := strings.Count(text, "┏ "); n != 1 {
			t.Fatalf("step %d at %d×%d: %d panes have the focus\n%s", step, cols, rows, n, text)
		}
		if !strings.Contains(text, "4 Actions") || !strings.Contains(text, "help") && !strings.Contains(text, "goes there") && !strings.Contains(text, "does") {
			t.Fatalf("step %d at %d×%d: something is hidden\n%s", step, cols, rows, text)
		}
	}
	d.idle()
	if got := d.c.LastTerminal().Got(); got != "" {
		t.Errorf("the agent got %q", got)
	}
}
