package ui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/ui/kept"
)

// toured drives a screen whose person's memory is in a folder.
func toured(t *testing.T, dir string, cols, rows int, o Options) *driver {
	t.Helper()
	c := sceneWorkbench(sceneQuestion())
	o.Session, o.Config, o.Kept = sceneSession().ID, themed("plain"), kept.Folder(dir)
	d := drive(t, c, cols, rows, o)
	d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() && c.LastTerminal() != nil })
	d.idle()
	d.advance(time.Second)
	return d
}

// The tour comes by itself once, goes on by doing what it says, and decides nothing.
func TestTour(t *testing.T) { alone(t, testTour) }

func testTour(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 35}} {
		dir := t.TempDir()
		d := toured(t, dir, size[0], size[1], Options{})
		whole := func(step string) {
			t.Helper()
			d.shows(step)
			rows := strings.Split(strings.TrimRight(d.text(), "\n"), "\n")
			if last := strings.Join(rows[len(rows)-2:], ""); strings.Contains(last, "…") || !strings.Contains(last, step) || !strings.Contains(last, "ctrl+] T end the tour") {
				t.Errorf("the step isn't whole: %q", last)
			}
		}
		whole("Tour 1/9")
		d.shows("◆ #13 held")
		d.press(leader)
		whole("Tour 2/9")
		d.press("4")
		whole("Tour 3/9")
		d.press("k", "enter")
		whole("Tour 4/9")
		d.press("esc")
		whole("Tour 5/9")
		d.press("2")
		whole("Tour 6/9")
		d.press("4")
		whole("Tour 7/9")
		d.press(leader, "t")
		whole("Tour 8/9")
		d.press("?")
		whole("Tour 9/9")
		d.press("esc", "esc")
		d.shows("the tour is over: ctrl+] t shows it again")
		d.lacks("Tour 9/9")
		d.decided()
		if got := d.c.LastTerminal().Got(); got != "" {
			t.Errorf("the agent got %q", got)
		}

		if all, err := os.ReadDir(filepath.Join(dir, "looked")); len(all) > 0 {
			t.Errorf("it is kept as a session that was looked at: %v (%v)", all, err)
		}

		d = toured(t, dir, size[0], size[1], Options{})
		d.lacks("Tour 1/9")
		d.press(leader, "t")
		d.shows("Tour 1/9")
		d.press(leader, "T")
		d.lacks("Tour 2/9")
		d.shows("the tour is over")
	}
}

// Where it would be in the way, or of no use, it doesn't come.
func TestNoTour(t *testing.T) { alone(t, testNoTour) }

func testNoTour(t *testing.T) {
	for name, c := range map[string]struct {
		rows int
		o    Options
	}{
		"small": {20, Options{}}, "watching": {24, Options{Watching: true}}, "the session shows around": {24, Options{NoTour: true}},
	} {
		d := toured(t, t.TempDir(), 80, c.rows, c.o)
		if strings.Contains(d.text(), "Tour") {
			t.Errorf("%s: it came\n%s", name, d.text())
		}
	}
	d := toured(t, t.TempDir(), 80, 24, Options{})
	d.shows("Tour 1/9")
	s := sceneSession()
	s.State, s.EndedAt, s.Exit = api.SessionEnded, sceneNow, &api.Exit{}
	d.c.Put(api.Event{Session: &s})
	d.until("it ends with the session", func() bool { return !strings.Contains(d.text(), "Tour") })
}
