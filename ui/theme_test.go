package ui

import (
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/ui/config"
	"stepbox/ui/kept"
)

// Themes are chosen by key: what is selected is seen at once, esc restores, enter remembers;
// nothing of it reaches the agent.
func TestThemeIsChosen(t *testing.T) { alone(t, testThemeIsChosen) }

func testThemeIsChosen(t *testing.T) {
	for place, open := range map[string][]string{"": {"c"}, sceneSession().ID: {leader, "c"}} {
		dir := kept.Folder(t.TempDir())
		o := Options{Session: place, Kept: dir, NoTour: true}
		d := drive(t, sceneWorkbench(), 120, 35, o)
		d.idle()
		d.until("it is shown", func() bool {
			return place == "" || d.m.bench != nil && d.m.bench.Arrived() && d.c.LastTerminal() != nil
		})
		shown := func(want string) {
			t.Helper()
			if got := d.m.palette.Theme.Name; got != want {
				t.Errorf("the theme is %s, want %s", got, want)
			}
		}
		shown("dark")
		d.press(open...)
		d.shows("Colours")
		d.press("down")
		shown("contrast")
		d.press("1", "enter") // no theme has that in its name
		shown("dark")
		d.press("esc")
		shown("dark")
		d.press(open...)
		d.press("l", "i", "g", "h", "enter")
		shown("light")
		d.until("it is kept", func() bool { return dir.Screen().Read("theme") == "light" })
		if place != "" && d.c.LastTerminal().Got() != "" {
			t.Errorf("the agent got %q", d.c.LastTerminal().Got())
		}
		next := func(o Options, want string) {
			t.Helper()
			o.Kept = dir
			if got := drive(t, sceneWorkbench(), 120, 35, o).m.palette.Theme.Name; got != want {
				t.Errorf("in the next run the theme is %s, want %s", got, want)
			}
		}
		next(Options{}, "light")
		set := config.Load(func(name string) string { return map[string]string{"STEPBOX_THEME": "contrast"}[name] })
		next(Options{Config: set}, "contrast")
		set = config.Load(func(name string) string { return map[string]string{"NO_COLOR": "1"}[name] })
		next(Options{Config: set}, "plain")
		must.OK(t, dir.Screen().Write("theme", "\x1b[2J"))
		next(Options{}, "dark")
	}
}

// What chooses the colours alone has the border of what has the keys, over the list, too.
func TestColoursHaveTheKeysAlone(t *testing.T) { alone(t, testColoursHaveTheKeysAlone) }

func testColoursHaveTheKeysAlone(t *testing.T) {
	d := drive(t, sceneWorkbench(), 120, 35, Options{Config: themed("dark")})
	d.shows("┏ Live")
	d.press("c")
	d.shows("┏━ Colours")
	d.lacks("┏ Live")
}

// Nor has any pane of the workbench it, nor is a question read that lies below.
func TestColoursAreNotReadThrough(t *testing.T) { alone(t, testColoursAreNotReadThrough) }

func testColoursAreNotReadThrough(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press(leader, "c")
	d.shows("┏━ Colours")
	d.lacks("┏ 1 Terminal")
	d.press("esc", leader, "a")
	d.shows("#13 command held")
	d.press(leader, "c")
	d.shows("┏━ Colours")
	d.lacks("┏━ ◆ #13")
}

// The key that ends the choosing is one to the guard of what lies below.
func TestColoursBeginTheQuietTime(t *testing.T) { alone(t, testColoursBeginTheQuietTime) }

func testColoursBeginTheQuietTime(t *testing.T) {
	d := bench(t, sceneWorkbench(plainQuestion()), 120, 35, "plain")
	d.press(leader, "a")
	d.calmly(leader, "c")
	d.shows("Colours")
	d.calmly("esc")
	d.advance(300 * time.Millisecond)
	d.press("o")
	d.shows("too soon")
	d.decided()
	d.calmly("o")
	d.decided(api.AnswerStepOver)
}
