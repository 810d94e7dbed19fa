package ui

import (
	"fmt"
	"testing"

	"stepbox/session/api"
	"stepbox/ui/internal/fake"
)

// What was told to be newer is fetched until it is there, however the answer to
// the first request and the word of a newer version overtake each other.
func TestChangesAreNeverMissed(t *testing.T) {
	t.Parallel()
	c := fake.Workbench()
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
func TestLastChangesAreFetched(t *testing.T) {
	t.Parallel()
	c := fake.Workbench()
	d := bench(t, c, 120, 35, "plain")
	c.SetChanges(0, api.Changes{Version: 3, Files: []api.Change{{Path: "last.txt", Key: "l", Status: "A", Kind: "file"}}})
	s := fake.Session()
	s.State = api.SessionEnded
	c.Put(api.Event{Session: &s})
	c.End()
	d.shows("last.txt")
	d.until("nothing more is asked for", d.m.bench.Arrived)
}

// A list longer than a page is read on as a person moves down, and to its end
// when they go there.
func TestLongChangesAreReadOn(t *testing.T) {
	t.Parallel()
	c := fake.Workbench()
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
