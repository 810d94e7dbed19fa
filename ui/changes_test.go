package ui

import (
	"fmt"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/ui/kept"
)

// What was told to be newer is fetched until it is there, however the answer to
// the first request and the word of a newer version overtake each other.
func TestChangesAreNeverMissed(t *testing.T) { alone(t, testChangesAreNeverMissed) }

func testChangesAreNeverMissed(t *testing.T) {
	c := sceneWorkbench()
	c.SetChanges(0, api.Changes{Version: 1})
	d := bench(t, c, 120, 35, "plain")
	d.shows("no changes")
	v := int64(2)
	c.Put(api.Event{Kind: "changes", Changes: &v})
	d.idle() // asked, and answered with what was true before
	d.shows("no changes")
	c.SetChanges(0, api.Changes{Version: 2, Files: []api.Change{{Path: "deleted.txt", Key: "d", Status: "D", Kind: "file"}}})
	d.shows("deleted.txt")
	d.until("nothing more is asked for", d.m.bench.Arrived)
}

// A session that ends gives its last word once more.
func TestLastChangesAreFetched(t *testing.T) { alone(t, testLastChangesAreFetched) }

func testLastChangesAreFetched(t *testing.T) {
	c := sceneWorkbench()
	d := bench(t, c, 120, 35, "plain")
	c.SetChanges(0, api.Changes{Version: 3, Files: []api.Change{{Path: "last.txt", Key: "l", Status: "A", Kind: "file"}}})
	s := sceneSession()
	s.State = api.SessionEnded
	c.Put(api.Event{Session: &s})
	c.End()
	d.shows("last.txt")
	d.until("nothing more is asked for", d.m.bench.Arrived)
}

// Lines that aren't counted yet are asked for again.
func TestLinesAreCountedOn(t *testing.T) { alone(t, testLinesAreCountedOn) }

func testLinesAreCountedOn(t *testing.T) {
	c := sceneWorkbench()
	list := api.Changes{Version: 1, Counting: true, Files: []api.Change{{Path: "a.txt", Key: "a", Status: "A", Kind: "file"}}}
	c.SetChanges(0, list)
	d := drive(t, c, 120, 35, Options{Session: sceneSession().ID, Config: themed("plain")})
	d.shows("counting…")
	c.SetChanges(0, api.Changes{Version: 1, Added: 7, Files: []api.Change{{Path: "a.txt", Key: "a", Status: "A", Kind: "file", Added: 7, Counted: true}}})
	d.shows("+7")
	d.lacks("counting…")
	d.until("nothing more is asked for", d.m.bench.Arrived)
}

// The mouse goes to a file as keys do: its diff is shown.
func TestMouseGoesToAFile(t *testing.T) { alone(t, testMouseGoesToAFile) }

func testMouseGoesToAFile(t *testing.T) {
	c := sceneWorkbench()
	c.SetDiff(api.FileDiff{Change: newScene().Changes.Files[2], Note: "of the file clicked"})
	d := bench(t, c, 120, 35, "plain")
	d.send(click(d.place("notes.txt")))
	d.shows("of the file clicked")
}

// A list longer than a page is read on as a person moves down, and to its end
// when they go there.
func TestLongChangesAreReadOn(t *testing.T) { alone(t, testLongChangesAreReadOn) }

func testLongChangesAreReadOn(t *testing.T) {
	c := sceneWorkbench()
	long := api.Changes{Version: 1}
	for i := range 3210 {
		long.Files = append(long.Files, api.Change{Path: fmt.Sprintf("file%04d", i), Key: fmt.Sprint(i), Status: "A", Kind: "file"})
	}
	c.SetChanges(0, long)
	d := bench(t, c, 120, 35, "plain")
	d.shows("3210 files")
	d.press(leader, "2")
	d.shows("file0000")
	d.lacks("file3209")
	for range 30 {
		d.press("j")
	}
	d.shows("file0030")
	d.press("G")
	d.shows("file3209")
	d.lacks("reading on")
}

// What a person marked as looked at is remembered, and what came since is a scope
// of its own, in this screen and the next.
func TestSinceThePersonLooked(t *testing.T) { alone(t, testSinceThePersonLooked) }

func testSinceThePersonLooked(t *testing.T) {
	dir := kept.Folder(t.TempDir())
	memory := dir.Looked()
	c := sceneWorkbench()
	old := api.Changes{Version: 1, Checkpoint: 12, Files: []api.Change{{Path: "old.txt", Key: "o", Status: "A", Kind: "file"}}}
	c.SetChanges(0, old)
	c.SetSince(12, api.Changes{Version: 2, Checkpoint: 13})
	open := func() *driver {
		d := drive(t, c, 120, 35, Options{Session: sceneSession().ID, Config: themed("plain"), Kept: dir, NoTour: true})
		d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() })
		d.shows("old.txt")
		d.press(leader, "2")
		return d
	}
	d := open()
	d.press("s", "s") // an action, if one is selected, and the session again
	d.shows("old.txt")
	d.lacks("since you looked")
	d.press("m")
	d.shows("marked as looked at")
	d.press("s")
	d.shows("nothing has changed since you looked")
	d.until("it is remembered", func() bool { return memory.At(sceneSession().ID) == 12 })

	c.SetSince(12, api.Changes{Version: 3, Checkpoint: 13, Files: []api.Change{{Path: "new.txt", Key: "n", Status: "A", Kind: "file"}}})
	d = open()
	d.idle()
	d.press("s")
	d.shows("since you looked")
	d.shows("new.txt")
	d.lacks("old.txt")
	d.press("m") // it goes on from here
	d.until("it is remembered", func() bool { return memory.At(sceneSession().ID) == 13 })
	d.press("s", "s")
	d.shows("old.txt")
}

// Files and hunks are selected with the keys that people know, and esc gives up
// first the reading, then the selection, then the pane.
func TestSelectingWithKeys(t *testing.T) { alone(t, testSelectingWithKeys) }

func testSelectingWithKeys(t *testing.T) {
	c := sceneWorkbench()
	_, diff := sceneChanges()
	diff.Hash = "h"
	c.SetDiff(diff)
	d := bench(t, c, 120, 35, "plain")
	d.press(leader, "2")
	d.press(" ")
	d.shows("1 selected")
	d.press(" ", "enter")
	d.shows("@@ -10")
	d.press("]", " ")
	d.shows("●▌@@ -40")
	d.shows("○ @@ -10")
	d.press("esc")
	d.shows("◐  M parse.go")
	d.press("a")
	d.shows("all selected")
	d.press("esc")
	d.lacks("all selected")
	d.shows("2 Changes")
	d.press("esc")
	d.until("the Terminal has the focus", func() bool { return strings.Contains(d.text(), "┏ 1 Terminal") })
	x, y := d.find("notes.txt")
	d.send(click(x, y))
	d.until("the click selects the file", func() bool { return strings.Contains(d.text(), "┏ 2 Changes") })
	d.press(" ")
	d.shows("● D notes.txt")
}

// find is where words stand on the screen.
func (d *driver) find(words string) (x, y int) {
	d.t.Helper()
	for y, line := range strings.Split(d.text(), "\n") {
		if i := strings.Index(line, words); i >= 0 {
			return d.m.method.StringWidth(line[:i]), y
		}
	}
	d.t.Fatalf("%q isn't shown\n%s", words, d.text())
	return 0, 0
}
