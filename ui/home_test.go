package ui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/ui/intent"
)

// many is a record of that many past sessions and a live one.
func many(n int) *fakeClient {
	s := newScene()
	list := slices.Clone(s.Sessions[:1])
	list[0].Held = 0 // as its events say
	for i := range n {
		x := s.Sessions[2+i%4]
		x.ID, x.Name = fmt.Sprintf("p%07d", i), fmt.Sprintf("%s-%d", x.Name, i)
		x.EndedAt, x.StartedAt = x.EndedAt.Add(-time.Duration(i)*time.Hour), x.StartedAt.Add(-time.Duration(i)*time.Hour)
		x.Denials, x.Rollbacks, x.Changed, x.Attempts, x.Unapplied = i%3, i%2, i%17, i%5, i%4
		x.Workspace, x.Folder = "/home/ada/src/parser", "/home/ada/src/parser"
		list = append(list, x)
	}
	c := newFake(list...)
	for _, a := range s.Actions {
		c.Put(api.Event{Action: &a})
	}
	c.SetScreen(70, 22, s.Screen)
	return c
}

// trashed says what a session's Trashed is in the record.
func trashed(c *fakeClient, id string) bool {
	s, err := c.find(id)
	return err == nil && !s.Trashed.IsZero()
}

// However many sessions there are, those around the ones in view are read.
func TestHomeReadsWhatIsInView(t *testing.T) { alone(t, testHomeReadsWhatIsInView) }

func testHomeReadsWhatIsInView(t *testing.T) {
	c := many(10_000)
	d := drive(t, c, 80, 24, Options{Config: themed("plain")})
	d.shows("10000 sessions")
	d.shows("bump-deps-0 ")
	d.press("G")
	d.shows("lint-9999 ")
	d.press("g", "pgdown", "pgdown")
	d.shows("-20 ")
	for _, q := range c.Queries() {
		if q.Limit == 0 || q.Limit > 500 {
			t.Errorf("%d sessions were asked for at once", q.Limit)
		}
	}
}

// What is typed is searched once typing pauses; the place that is chosen is the
// moment that is opened.
func TestHomeSearches(t *testing.T) { alone(t, testHomeSearches) }

func testHomeSearches(t *testing.T) {
	c := many(20)
	c.SetRecord(func(r *record) {
		r.found = []api.Hit{
			{Kind: api.HitAction, Key: 3, Action: 3, Offset: time.Minute, Seq: 7, Text: "sh lint-19 one"},
			{Kind: api.HitTerminal, Offset: 90 * time.Second, Text: "lint-19 two\x1b[2J"},
		}
	})
	d := drive(t, c, 120, 35, Options{Config: themed("plain")})
	d.shows("bump-deps-0 ")
	asked := len(c.Queries())
	d.press("/")
	d.types("lint-19")
	d.shows("action #3 00:01:00  sh lint-19 one")
	d.shows("1 of 2")
	d.lacks("bump-deps")
	texts := map[string]bool{}
	for _, q := range c.Queries()[asked:] {
		texts[q.Text] = true
	}
	if texts["l"] && texts["li"] && texts["lin"] && texts["lint"] {
		t.Errorf("each key was searched: %v", texts)
	}
	d.press("tab", "]")
	d.shows(`terminal 00:01:30  lint-19 two\x1b[2J`)
	d.shows("2 of 2")
	if _, words, at, ok := d.m.home.Selected(); !ok || at != "+1m30s" || words != "lint-19" {
		t.Errorf("opens at %q, searched for %q", at, words)
	}
	d.press("[")
	d.shows("1 of 2")
	if _, _, at, _ := d.m.home.Selected(); at != api.MomentOf(7) {
		t.Errorf("opens at %q", at)
	}
	c.SetRecord(func(r *record) { r.found = []api.Hit{{Kind: api.HitLabel, Text: "named lint-15"}} })
	d.press("/", "backspace", "5", "tab")
	d.shows("named lint-15")
	if _, _, at, ok := d.m.home.Selected(); !ok || at != "" {
		t.Errorf("a name opens at %q", at)
	}
	d.press("esc", "/")
	d.types("nowhere")
	d.shows("none like that: esc lists all")
	d.until("it is searched no more", func() bool { return !d.m.home.Reading() })
	d.idle() // the list is read again now and then, which isn't once for each answer
	asked = len(c.Queries())
	d.idle()
	if n := len(c.Queries()); n > asked+10 {
		t.Errorf("what isn't there is searched again, %d times", n-asked)
	}
	c.SetRecord(func(r *record) { r.behind = 5 })
	d.press("esc", "/")
	d.types("lint-15")
	d.shows("still to be read")
	d.shows("1 of 1")
	d.lacks("still to be read")
	d.press("esc")
	d.shows("bump-deps-0 ")
	d.press("/")
	d.types("state:odd")
	d.shows(`"odd" is no state: use live`)
	d.press("esc", "/")
	d.types("state:failed agent:codex")
	d.shows("Failed")
	d.shows("migrate-2 ")
	d.lacks("fix-tests")
	d.press("esc", "h")
	d.shows("this folder has no name")
	d.press("s", "s")
	d.shows("most changes")
	d.shows("16 ")
}

// Live sessions are searched as past ones are: their places are shown, and opened.
func TestHomeSearchesLiveOnes(t *testing.T) { alone(t, testHomeSearchesLiveOnes) }

func testHomeSearchesLiveOnes(t *testing.T) {
	c := many(20)
	c.SetRecord(func(r *record) {
		r.found = []api.Hit{
			{Kind: api.HitAction, Key: 3, Action: 3, Offset: time.Minute, Seq: 7, Text: "sed fix-tests"},
			{Kind: api.HitTerminal, Offset: 90 * time.Second, Text: "fix-tests two"},
			{Kind: api.HitLabel, Text: "fix-tests"},
		}
	})
	d := drive(t, c, 120, 35, Options{Config: themed("plain")})
	d.shows("bump-deps-0 ")
	d.press("/")
	d.types("fix-tests")
	d.shows("action #3 00:01:00  sed fix-tests")
	d.shows("1 of 3")
	d.lacks("bump-deps")
	d.press("tab")
	d.shows("enter open")
	d.press("n")
	d.shows("terminal 00:01:30  fix-tests two")
	if x, _, at, _ := d.m.home.Selected(); !x.Live() || at != "+1m30s" {
		t.Errorf("%s opens at %q", x.Name, at)
	}
	d.press("n")
	d.shows("enter attach") // to what is only called so
}

// Enter keeps what was searched, and n and N go on from place to place, and from session to
// session, as in every list.
func TestHomeGoesFromHitToHit(t *testing.T) { alone(t, testHomeGoesFromHitToHit) }

func testHomeGoesFromHitToHit(t *testing.T) {
	c := many(20)
	c.SetRecord(func(r *record) {
		r.found = []api.Hit{
			{Kind: api.HitAction, Key: 3, Action: 3, Offset: time.Minute, Seq: 7, Text: "lint one"},
			{Kind: api.HitTerminal, Offset: 90 * time.Second, Text: "lint two"},
		}
	})
	d := drive(t, c, 120, 35, Options{Config: themed("plain")})
	d.shows("bump-deps-0 ")
	d.press("/", "l", "i", "n", "t")
	d.shows("1 of 2")
	d.press("enter")
	d.shows("n next")
	at := func(id string, place api.Moment) {
		t.Helper()
		d.until("it is at "+id, func() bool {
			x, _, at, ok := d.m.home.Selected()
			return ok && x.ID == id && at == place
		})
	}
	at("p0000003", api.MomentOf(7))
	d.press("n")
	at("p0000003", "+1m30s")
	d.press("n")
	at("p0000007", api.MomentOf(7))
	d.press("N")
	at("p0000003", "+1m30s")
	d.press("N", "N")
	at("p0000003", api.MomentOf(7))
	d.press("esc", "n")
	d.lacks("n next")
}

func TestHomeHere(t *testing.T) { alone(t, testHomeHere) }

func testHomeHere(t *testing.T) {
	c := many(3)
	c.list[2].Folder = "/else"
	d := drive(t, c, 80, 24, Options{Config: themed("plain"), Here: "/home/ada/src/parser"})
	d.shows("shell-1")
	d.press("h")
	d.shows("this folder · newest")
	d.until("the other is gone", func() bool { return !strings.Contains(d.text(), "shell-1") })
	d.press("h")
	d.shows("shell-1")
}

// A person names, tags, notes and pins a session.
func TestHomeLabels(t *testing.T) { alone(t, testHomeLabels) }

func testHomeLabels(t *testing.T) {
	c := many(3)
	d := drive(t, c, 120, 35, Options{Config: themed("plain")})
	d.shows("bump-deps-0")
	d.press("j", "e", "ctrl+u")
	d.types("better")
	d.press("space", "x", "enter")
	d.shows("! a name has " + api.NameForm)
	d.shows(" better x ") // what was typed is still there, to be mended
	d.press("backspace", "backspace", "enter")
	d.shows("✓ better")
	d.lacks("Rename")
	d.press("t", "a", "space", "b", "enter")
	d.shows("#a #b")
	d.press("N", "h", "i", "esc", "p")
	d.shows("pinned: no rule removes it")
	d.shows("▪ better")
	long := strings.Repeat("漢", api.NoteMost-1)
	if _, err := c.Label(t.Context(), "p0000000", api.Label{Note: &long}); err != nil {
		t.Fatal(err)
	}
	d.now.Add(int64(longest))
	d.send(clock{})
	d.shows("漢漢")
	d.press("N", "h", "enter")
	d.until("a long note is kept whole", func() bool {
		s, _ := c.find("p0000000")
		return s.Note == long+"h"
	})
	d.until("the line for it is closed", func() bool { return !strings.Contains(d.text(), "Note on") })
	d.shows("▪ better")
	d.press("N", "ctrl+u", "h", "o", "enter", "p") // while it is being kept no key is for the list
	d.until("the note is kept", func() bool { return !strings.Contains(d.text(), "Note on") })
	d.press("p")
	d.until("it is no longer pinned", func() bool { return !strings.Contains(d.text(), "pinned") })
	d.until("all is kept", func() bool {
		s, _ := c.find("p0000000")
		return s.Name == "better" && len(s.Tags) == 2 && s.Note == "ho" && !s.Pinned
	})
}

// What is put into the trash can be brought back until the program ends; then it is removed,
// unless someone else brought it back or removed it.
func TestHomeTrash(t *testing.T) { alone(t, testHomeTrash) }

func testHomeTrash(t *testing.T) {
	c := many(7)
	for i := range c.list {
		if c.list[i].ID == "p0000004" {
			c.list[i].Unapplied, c.list[i].Unfetched = 0, "2 commits on main"
		}
	}
	d := drive(t, c, 80, 24, Options{Config: themed("plain")})
	d.shows("bump-deps-0")
	d.press("D")
	d.shows("it lives: ctrl+k ends it")
	gone := func(id string) {
		t.Helper()
		d.press("D")
		if s, _ := c.find(id); s.Pinned || s.Unapplied > 0 {
			d.shows("Put " + s.Name + " into the trash?")
			d.calmly("y")
		}
		d.until("it is in the trash", func() bool { return trashed(c, id) && !d.m.home.Reading() })
		if x, _, _, _ := d.m.home.Selected(); x.ID == id {
			t.Errorf("another key would be for %s, which is in the trash", id)
		}
		d.shows("u brings it back")
	}
	d.press("j")
	gone("p0000000")
	d.until("it isn't listed", func() bool { return strings.Contains(d.text(), "6 sessions") })
	d.lacks("u bring back")
	d.press("/")
	d.types("state:trashed")
	d.press("tab")
	d.shows("u bring back")
	d.press("esc")
	d.shows("6 sessions")
	d.press("u")
	d.shows("7 sessions")
	d.shows("it is back")
	if trashed(c, "p0000000") {
		t.Error("it wasn't brought back")
	}
	on, off := true, false
	if _, err := c.Label(t.Context(), "p0000001", api.Label{Pinned: &on}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"p0000000", "p0000001", "p0000002"} {
		gone(id)
	}
	d.press("D")
	d.shows("3 files that it changed aren't in the project")
	d.press("n")
	d.until("it is asked no more", func() bool { return !strings.Contains(d.text(), "into the trash?") })
	if trashed(c, "p0000003") {
		t.Error("unapplied work went into the trash without a yes")
	}
	gone("p0000003")
	d.press("D")
	d.shows("It has what was never fetched: 2 commits on main")
	d.calmly("y")
	d.until("it is in the trash", func() bool { return trashed(c, "p0000004") && !d.m.home.Reading() })
	gone("p0000005")
	gone("p0000006")
	unlock := c.lock()
	for i := range c.list {
		switch s := &c.list[i]; s.ID {
		case "p0000005":
			s.Resumed, s.Trashed = 1, time.Time{} // as a resume does
		case "p0000006":
			s.Applies++
		}
	}
	unlock()
	if _, err := c.Label(t.Context(), "p0000004", api.Label{Pinned: &on}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Label(t.Context(), "p0000001", api.Label{Trashed: &off}); err != nil {
		t.Fatal(err)
	}
	must.OK(t, c.Remove(t.Context(), "p0000002"))
	err := d.m.home.Empty(t.Context())
	for _, want := range []string{"p0000004: it was pinned since", "p0000005: it was resumed since", "p0000006: something was done with it"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s isn't told: %v", want, err)
		}
	}
	for i, want := range []bool{false, true, false, false, true, true, true} {
		if _, err := c.find(fmt.Sprintf("p%07d", i)); (err == nil) != want {
			t.Errorf("session %d is there: %v, want %v", i, err == nil, want)
		}
	}
}

// A live session is killed from the list as from within: after asking, by a key that isn't
// of what was typed before, and it stays the one that was asked about.
func TestHomeKills(t *testing.T) { alone(t, testHomeKills) }

func testHomeKills(t *testing.T) {
	c := liveScene(2)
	d := drive(t, c, 120, 35, Options{Config: themed("plain")})
	d.shows("agent-1")
	d.press("j", "ctrl+k")
	d.shows("Kill the sandbox of agent-1?")
	d.press("y") // too soon
	d.lacks("can't kill it")
	must.OK(t, c.Remove(t.Context(), "live0001"))
	d.calmly("y")
	d.shows("can't kill it: there is no session live0001")
	d.press("g", "ctrl+k")
	d.shows("Kill the sandbox of fix-tests?")
	d.calmly("enter")
	d.lacks("Kill the sandbox")
	kills := func() int { return strings.Count(strings.Join(c.Calls(), "\n"), "kill") }
	if n := kills(); n != 1 {
		t.Errorf("killed %d times", n)
	}
	d.press("ctrl+k")
	d.calmly("y")
	d.until("it is killed, and the list read again", func() bool { return kills() == 2 && !strings.Contains(d.text(), "agent-1") })
	d.press("j", "ctrl+k")
	d.shows("it has ended")
}

// The palette takes all letters at home, and knows what is meant by other words.
func TestHomePalette(t *testing.T) { alone(t, testHomePalette) }

func testHomePalette(t *testing.T) {
	d := drive(t, liveScene(1), 120, 35, Options{Config: themed("plain")})
	d.shows("fix-tests")
	for _, words := range []string{"end", "stop", "quit session", "kill"} {
		d.press(":")
		d.shows("Commands")
		d.types(words)
		d.shows("▸ kill sandbox")
		d.press("enter")
		d.shows("Kill the sandbox of fix-tests?")
		d.press("esc")
		d.lacks("Kill the sandbox")
	}
	d.press(":", "q", "u", "i", "t")
	d.shows("▸ quit ")
	d.press("esc", ":", "1", "2", "enter")
	d.shows("open a session first")
	d.press("esc", ":")
	d.types("rename")
	d.press("enter")
	d.shows("Rename fix-tests")
}

// However long a notice is, the way to help stays at the right end of the last line.
func TestHomeHelpStays(t *testing.T) { alone(t, testHomeHelpStays) }

func testHomeHelpStays(t *testing.T) {
	d := drive(t, liveScene(1), 80, 24, Options{Config: themed("plain")})
	d.shows("? help   q quit")
	for _, words := range []string{strings.Repeat("long ", 30), "one · two · three"} {
		d.m.home.Notice = words
		d.draw()
		if !strings.HasSuffix(strings.TrimRight(d.text(), " \n"), "? help") && !strings.HasSuffix(strings.TrimRight(d.text(), " \n"), "q quit") {
			t.Errorf("no help beside %q\n%s", words, d.text())
		}
	}
}

// A session's name isn't cut beside a column that has room to spare, and one that lives
// isn't told as if it were over.
func TestHomeNamesHaveTheRoom(t *testing.T) { alone(t, testHomeNamesHaveTheRoom) }

func testHomeNamesHaveTheRoom(t *testing.T) {
	d := drive(t, liveScene(1), 120, 35, Options{Config: themed("plain")})
	d.shows("runs 14m09s")
	d.press("v")
	d.shows("fix-tests · claude ")
	d.shows("branch")
}

// Whoever comes back from a session finds it selected.
func TestHomeSelectsWhatWasLeft(t *testing.T) { alone(t, testHomeSelectsWhatWasLeft) }

func testHomeSelectsWhatWasLeft(t *testing.T) {
	d := drive(t, liveScene(3), 120, 35, Options{Config: themed("plain"), Session: "live0001"})
	d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() })
	d.press(leader, "h")
	d.shows("sessions")
	at := func(want string) {
		t.Helper()
		d.until(want+" is selected", func() bool { x, _, _, _ := d.m.home.Selected(); return x.ID == want })
	}
	at("live0001")
	d.press("g")
	at(sceneSession().ID)
	d.run(d.m.find(opened{id: "live0002"})) // as a new one is
	d.until("it is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() })
	d.press(leader, "h")
	if x, _, _, _ := d.m.home.Selected(); x.ID != "live0002" { // at once, as the list has it
		t.Errorf("%s is selected", x.ID)
	}
	at("live0002")
}

// The selected session may be removed by someone else at any time.
func TestHomeSelectedVanishes(t *testing.T) { alone(t, testHomeSelectedVanishes) }

func testHomeSelectedVanishes(t *testing.T) {
	for _, key := range []string{"enter", "p", "D", "x"} {
		c := many(3)
		d := drive(t, c, 120, 35, Options{Config: themed("plain"), Export: func(_ context.Context, id, _ string) error {
			_, err := c.find(id)
			return err
		}})
		d.shows("shell-1")
		d.press("j", "j")
		must.OK(t, c.Remove(t.Context(), "p0000001"))
		d.press(key)
		if key == "x" {
			d.calmly("enter")
		}
		d.shows("there is no session p0000001")
		d.press("esc", "j")
		d.now.Add(int64(longest))
		d.send(clock{})
		d.until("it is gone", func() bool { return !strings.Contains(d.text(), "shell-1 ") })
	}
}

// Names, notes and paths are whatever someone wrote.
func TestHomeIsSafe(t *testing.T) { alone(t, testHomeIsSafe) }

func testHomeIsSafe(t *testing.T) {
	c := many(2)
	evil := "x\x1b]52;c;Zm9v\a\u202ey" + strings.Repeat("漢", 300)
	for i := range c.list {
		s := &c.list[i]
		s.Name, s.Agent, s.Workspace, s.Command, s.LastAction, s.Note, s.Reason, s.Tags = evil, evil, evil, evil, evil, evil, evil, []string{evil}
		s.Parent = &api.Parent{ID: evil, Name: evil, At: api.Moment(evil)}
	}
	for _, size := range sizes {
		d := drive(t, c, size[0], size[1], Options{Config: themed("plain")})
		d.shows("x")
		d.press("j", "e", "esc", "t", "esc", "D", "u")
		d.idle()
		if raw := d.seen.String(); strings.Contains(raw, "\x1b]") || strings.ContainsRune(raw, '\u202e') {
			t.Error("what is hostile reaches the terminal")
		}
	}
}

func TestGoldenHome(t *testing.T) {
	t.Parallel()
	scenes := []struct {
		name  string
		n     int
		keys  []string
		shows string
	}{
		{"empty", 0, nil, "no past sessions yet"},
		{"ten-thousand", 10_000, []string{"j", "pgdown", "pgdown"}, "10000 sessions"},
		{"search", 10_000, []string{"/", "l", "i", "n", "t"}, "2500 sessions"},
		{"filter", 10_000, append(append([]string{"/"}, strings.Split("state:failed agent:codex", "")...), "tab", "s"), "2500 sessions"},
		{"preview", 20, []string{"v", "j", "j"}, "20 sessions"},
		{"rename", 20, []string{"j", "e"}, "Rename bump-deps-0"},
		{"trashed", 20, []string{"j", "D"}, "19 sessions"},
		{"resume", 20, []string{"j", "r"}, "Resume bump-deps-0?"},
	}
	for _, s := range scenes {
		for _, size := range sizes {
			t.Run(fmt.Sprintf("%s-%dx%d", s.name, size[0], size[1]), inBubble(func(t *testing.T) {
				c := many(s.n)
				c.SetRecord(func(r *record) {
					r.found = []api.Hit{{Kind: api.HitTerminal, Offset: time.Minute, Text: "golangci-lint run ./..."}}
				})
				for i := range c.list {
					c.list[i].Note, c.list[i].Tags = "the one that broke", []string{"ci"}
				}
				d := drive(t, c, size[0], size[1], Options{Config: themed("dark"), Version: "v0.1.0",
					Resume: func(context.Context, string) (string, error) { return "", nil },
					Start:  func(context.Context, intent.Begin) (string, error) { return "", nil }})
				d.shows("fix-tests")
				d.until("the list is read", func() bool { return !d.m.home.Reading() })
				d.press(s.keys...)
				beside := size[0] >= 120
				if beside || s.name != "preview" {
					d.shows(s.shows)
				}
				if beside != (s.name == "preview") {
					d.shows("Last actions")
				}
				if !beside && s.name == "empty" {
					d.shows("Screen of")
				}
				read := func() bool { return !d.m.home.Reading() }
				d.until("the list is read", read)
				d.idle()
				d.until("the list is read once more, if it is", read)
				d.golden()
			}))
		}
	}
}

// BenchmarkHome moves about in ten thousand sessions and draws.
func BenchmarkHome(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := drive(new(testing.T), many(n), 200, 50, Options{Config: themed("dark")})
			defer d.m.Close()
			d.shows("bump-deps-0")
			for b.Loop() {
				d.press("j")
				d.seen.Reset()
			}
		})
	}
}

// A fork is of the selected session, where the search found it, and asks first.
func TestHomeForks(t *testing.T) { alone(t, testHomeForks) }

func testHomeForks(t *testing.T) {
	c := many(3)
	c.SetRecord(func(r *record) { r.found = []api.Hit{{Kind: api.HitAction, Action: 3, Seq: 7, Text: "shell-1"}} })
	asked := make(chan string, 8)
	d := drive(t, c, 120, 35, Options{Config: themed("plain"), Fork: func(_ context.Context, id string, at api.Moment) (string, error) {
		asked <- id + "@" + string(at)
		return sceneSession().ID, nil
	}})
	d.shows("bump-deps-0")
	d.press("j", "f")
	d.shows("Fork bump-deps-0 at its end?")
	d.press("esc", "/")
	d.types("shell-1")
	d.shows("1 of 1")
	d.press("tab", "f")
	d.shows("at 00:00:00?")
	d.calmly("y")
	d.until("the fork is shown", func() bool { return d.m.bench != nil })
	if got := <-asked; got != "p0000001@=7" || len(asked) > 0 {
		t.Errorf("forked %s, and %d more", got, len(asked))
	}
}
