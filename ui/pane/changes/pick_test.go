package changes

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/ui/intent"
)

// opened is a pane of the scene, with the cursor on a file or folder, drawn once.
func opened(t testing.TB, at string) *Pane {
	p := &Pane{}
	p.SetChanges(api.Scope{}, NewTree(sources()))
	show(t, p, 120, 35)
	put(t, p, at)
	return p
}

func put(t testing.TB, p *Pane, at string) {
	t.Helper()
	i := p.tree.find(at)
	if i < 0 {
		i = p.tree.folderAt(place{path: at})
	}
	if i < 0 {
		i = p.tree.folderAt(place{group: at})
	}
	if i < 0 {
		t.Fatalf("there is no %s", at)
	}
	p.touched = true
	p.choose(p.rowOf(i))
}

func (p *Pane) press(t testing.TB, all ...intent.Intent) (said string) {
	for _, i := range all {
		said = p.Handle(i)
		show(t, p, 120, 35)
	}
	return said
}

func paths(s api.Selection) string {
	var out []string
	for _, c := range s.Files {
		words := c.Key
		if c.Of != "" {
			words += fmt.Sprint(c.Hunks, c.Of)
		}
		out = append(out, words)
	}
	return strings.Join(out, " ")
}

var space, enter, all = intent.Toggle{}, intent.Open{}, intent.ToggleAll{}

func TestFilesAndFoldersAreSelected(t *testing.T) {
	p := opened(t, "bin")
	if p.Selected() != 0 || !p.Selection().All() {
		t.Errorf("at the start %d are selected: %+v", p.Selected(), p.Selection())
	}
	p.press(t, space)
	if got := paths(p.Selection()); got != "bin/latest bin/run" || p.Selected() != 2 {
		t.Errorf("a folder selects %q", got)
	}
	put(t, p, "bin/run")
	p.press(t, space)
	if got := paths(p.Selection()); got != "bin/latest" {
		t.Errorf("without one it is %q", got)
	}
	if n := &p.tree.nodes[p.tree.folderAt(place{path: "bin"})]; p.mark(n) != markSome {
		t.Errorf("its folder is marked %q", p.mark(n))
	}
	put(t, p, "bin")
	if p.press(t, space); p.Selected() != 2 {
		t.Error("a folder that is selected in part isn't selected as a whole")
	}
	if p.press(t, space); p.Selected() != 0 {
		t.Error("it can't be taken out")
	}
	put(t, p, "cmd/server/internal/http/route.go")
	p.press(t, space)
	if got := paths(p.Selection()); got != "cmd/server/mux.go cmd/server/internal/http/route.go" {
		t.Errorf("a rename with edits selects %q", got)
	}
	p.SetScope(api.Scope{Action: 4})
	if s := p.Selection(); p.Selected() != 0 || !reflect.DeepEqual(s, api.Selection{Actions: []int{4}}) {
		t.Errorf("another scope begins with %+v", s)
	}
}

func TestAllIsSelected(t *testing.T) {
	p := opened(t, "README.md")
	p.press(t, all)
	if s := p.Selection(); !s.All() || p.Selected() != 19 {
		t.Errorf("all is %+v, %d files", s, p.Selected())
	}
	p.press(t, space) // not all files have come: they have to be named
	if p.Selected() != 19 || p.Rows() < 19 || p.Lacks(0, false) != Files {
		t.Errorf("one was taken out of files that aren't known: %d are left", p.Selected())
	}
	whole := sources()
	whole.Next, whole.More, whole.Total = "", 0, len(whole.Files)
	p.SetChanges(api.Scope{}, NewTree(whole))
	if s := p.Selection(); p.Selected() != 11 || s.Files[0].Key != "assets/logo.png" {
		t.Errorf("without one there are %d: %s", p.Selected(), paths(s))
	}
	put(t, p, "README.md")
	p.press(t, space, all)
	if p.Selected() != 0 {
		t.Error("all again doesn't select nothing")
	}
	if p.press(t, space); !p.Clear() || p.Selected() != 0 || p.Clear() {
		t.Error("it isn't cleared")
	}
}

// A group that hasn't come is read before it is selected.
func TestAGroupIsReadBeforeItIsSelected(t *testing.T) {
	p := opened(t, "generated")
	p.press(t, space)
	if p.Selected() != 0 || p.Lacks(0, false) != Files {
		t.Errorf("%d files are selected though not all are known", p.Selected())
	}
	whole := sources()
	extra := whole.Files[len(whole.Files)-1]
	extra.Path, extra.Key = "api/z.pb.go", "z"
	whole.Files, whole.Next, whole.More = append(whole.Files, extra), "", 0
	p.SetChanges(api.Scope{}, NewTree(whole))
	if got := paths(p.Selection()); got != "api/service.pb.go z" {
		t.Errorf("selected is %q", got)
	}
}

func TestHunksAreSelected(t *testing.T) {
	const file = "internal/parse/parse.go"
	p := opened(t, file)
	if _, ok := p.Under(); !ok {
		t.Error("there is nothing under the cursor")
	}
	give := func(hash string) {
		w, _ := p.Wanted()
		w.Version = p.shown().Version
		d := parseDiff(p.tree.Files[p.tree.nodes[p.tree.find(file)].file])
		d.Hash = hash
		p.SetDiff(w, Prepare(d), "")
	}
	give("h1")
	p.press(t, enter, intent.Hunk{By: 1}, space)
	if got := paths(p.Selection()); got != file+"[1]h1" || p.Selected() != 1 {
		t.Errorf("selected is %q", got)
	}
	if under, ok := p.Under(); !ok || paths(under) != file+"[1]h1" {
		t.Errorf("under the cursor is %q", paths(under))
	}
	p.press(t, intent.Hunk{By: -1}, intent.Move{By: 3}, space)
	if got := paths(p.Selection()); got != file {
		t.Errorf("with all its hunks it is %q", got)
	}
	p.press(t, space)
	if got := paths(p.Selection()); got != file+"[1]h1" {
		t.Errorf("without one it is %q", got)
	}
	give("h2")
	if s := show(t, p, 120, 35); p.Selected() != 0 || !strings.Contains(s, "has changed since") {
		t.Errorf("hunks of what isn't there any more are selected:\n%s", s)
	}
	give("")
	if said := p.press(t, space); said == "" || p.Selected() != 0 {
		t.Error("a hunk without a name is selected")
	}
	p.Since = 3
	give("h1")
	if said := p.press(t, space); !strings.Contains(said, "session") || p.Selected() != 0 {
		t.Errorf("a hunk of what came since a checkpoint is selected (%q)", said)
	}
}

// Of what came since a checkpoint files are named one by one.
func TestSelectionSinceACheckpoint(t *testing.T) {
	p := &Pane{}
	p.SetScope(api.Scope{Since: 9})
	c := sources()
	c.Next, c.More, c.Total, c.Files = "", 0, 2, c.Files[:2]
	p.SetChanges(api.Scope{Since: 9}, NewTree(c))
	show(t, p, 120, 35)
	if got := paths(p.Selection()); got != "README.md assets/logo.png" {
		t.Errorf("nothing is selected: %q", got)
	}
	p.press(t, all)
	if got := paths(p.Selection()); got != "README.md assets/logo.png" || p.Selected() != 2 {
		t.Errorf("all is %q", got)
	}
}

func TestFoldersAreFolded(t *testing.T) {
	p := opened(t, "cmd/server/internal/http/route.go")
	n := len(p.rows)
	p.press(t, intent.Slide{By: -8})
	if p.folder.path != "cmd/server/internal/http" {
		t.Errorf("from a file it goes to %q", p.folder.path)
	}
	p.press(t, intent.Slide{By: -8})
	if len(p.rows) != n-2 {
		t.Errorf("%d rows are left of %d", len(p.rows), n)
	}
	if s := show(t, p, 120, 35); !strings.Contains(s, "▸ cmd/server/internal/http/") || !strings.Contains(s, "2 files · +17 −5 · enter shows them") {
		t.Errorf("it shows\n%s", s)
	}
	p.press(t, enter)
	if len(p.rows) != n || p.Reading {
		t.Errorf("it is unfolded to %d rows of %d", len(p.rows), n)
	}
	put(t, p, "lock")
	p.press(t, intent.Slide{By: 8}, intent.Slide{By: 8})
	if len(p.rows) != n+1 || p.selected != "go.sum" {
		t.Errorf("a group is unfolded to %d rows of %d, on %q", len(p.rows), n, p.selected)
	}
	// A file that others fold away leaves its folder under the cursor.
	put(t, p, "bin/run")
	p.turned[place{path: "bin"}] = true
	p.arrange()
	if p.folder.path != "bin" || p.selected != "" {
		t.Errorf("the cursor is on %q %q", p.folder.path, p.selected)
	}
}

func TestTheMouse(t *testing.T) {
	p := opened(t, "README.md")
	at := p.files.Min
	p.Click(at.X+4, at.Y+2)
	if p.selected != "assets/logo.png" {
		t.Errorf("a click selects %q", p.selected)
	}
	n := len(p.rows)
	p.Click(at.X+4, at.Y+1)
	if p.folder.path != "assets" || len(p.rows) != n {
		t.Errorf("a click on a folder selects %q", p.folder.path)
	}
	p.Click(at.X+4, at.Y+1)
	if len(p.rows) != n-1 {
		t.Error("another click doesn't fold it")
	}
	p.Click(at.X+4, at.Y+500)
	p.Wheel(at.X, at.Y, 3)
	if got, ok := p.at(); !ok || got.file < 0 && got.path == "assets" {
		t.Error("the wheel doesn't scroll the list")
	}
	put(t, p, "internal/parse/parse.go")
	w, _ := p.Wanted()
	p.SetDiff(w, Prepare(parseDiff(p.tree.Files[8])), "")
	p.press(t, enter)
	p.Click(p.view.area.Min.X+5, p.view.area.Min.Y+4)
	if p.view.cur != 4 {
		t.Errorf("a click in the diff goes to line %d", p.view.cur)
	}
}

// Both ways to show a diff have all its lines, and the cursor stays on its own.
func TestSidesShowTheSame(t *testing.T) {
	p := opened(t, "internal/parse/parse.go")
	w, _ := p.Wanted()
	d := Prepare(parseDiff(p.tree.Files[8]))
	p.SetDiff(w, d, "")
	p.press(t, enter, intent.Move{By: 5})
	row := p.view.rowAt(p.view.cur)
	p.press(t, intent.Sides{})
	if !p.view.beside || p.view.rowAt(p.view.cur) < row-3 || p.hunk() != 0 {
		t.Errorf("side by side: %v, on row %d instead of %d", p.view.beside, p.view.rowAt(p.view.cur), row)
	}
	seen := map[int32]int{}
	last := [2]int32{-1, -1}
	for _, pair := range d.Pairs {
		for i, r := range pair {
			if r < 0 {
				continue
			}
			if r <= last[i] || i == 0 && d.Rows[r].Op == '+' || i == 1 && d.Rows[r].Op == '-' {
				t.Errorf("row %d %q is on side %d after %d", r, d.Rows[r].Op, i, last[i])
			}
			last[i] = r
			seen[r]++
		}
	}
	if len(seen) != len(d.Rows) {
		t.Errorf("%d of %d rows are shown", len(seen), len(d.Rows))
	}
	if p.press(t, intent.Sides{}); p.view.beside {
		t.Error("it isn't unified again")
	}
	show(t, p, 50, 20)
	if said := p.Handle(intent.Sides{}); said == "" || p.view.beside {
		t.Error("there are two sides in 50 columns")
	}
}
