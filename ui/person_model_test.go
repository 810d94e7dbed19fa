package ui

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"pgregory.net/rapid"

	"stepbox/session/api"
	"stepbox/ui/keys"
)

// world is a session that goes on beside the person.
type world struct {
	*person
	asked   map[int64]api.Question // that are open
	next    int64
	version int
}

// question is one with contents of its own.
func (w *world) question(id int64) api.Question {
	w.version++
	words := fmt.Sprintf("q%dv%d", id, w.version)
	q := ask(id, int(id), words+" --all")
	switch w.kind(id) {
	case 1:
		q = sceneConnection()
		c := *q.Connection
		c.Host, c.Rule = words+".example.org", words+".example.org:443"
		q.Title, q.Connection = "connect to "+c.Rule, &c
	case 2:
		q = sceneEdit()
		q.Changes = []api.Change{{Status: "M", Path: words + ".txt", Key: words + ".txt", Kind: "file", Added: 1, Counted: true}}
		q.Title = words + ".txt"
	}
	q.ID, q.Action, q.Hash, q.Same, q.HeldAt = id, int(id), "h"+words, words, w.clock()
	w.words[q.Hash] = words
	return q
}

func (w *world) kind(id int64) int64 { return id % 4 }

// asks puts a question, new or with new contents.
func (w *world) asks(id int64) {
	q := w.question(id)
	a := held(q.Action, q.Title)
	if w.kind(id) == 2 {
		a.Kind = api.KindEdit
	}
	w.asked[id] = q
	w.c.SetDiff(api.FileDiff{})
	w.c.Put(api.Event{Action: &a}, api.Event{Question: &q})
}

// closes has a question go, and its action end.
func (w *world) closes(id int64, how, by string) {
	q := w.asked[id]
	delete(w.asked, id)
	q.Closed, q.ClosedBy = how, by
	a := held(q.Action, q.Title)
	a.State = api.ActionRunning
	w.c.Put(api.Event{Question: &q}, api.Event{Action: &a})
}

// answers carries out what was decided.
func (w *world) answers() {
	for _, d := range w.c.Decisions() {
		if q, ok := w.asked[d.Question]; ok && q.Hash == d.Hash {
			w.closes(d.Question, string(d.Answer), d.By)
		}
	}
	if !w.ended && slices.Contains(w.c.Calls(), "kill") {
		w.ends()
	}
}

func (w *world) some(t *rapid.T) (int64, bool) {
	all := slices.Sorted(maps.Keys(w.asked))
	if len(all) == 0 {
		return 0, false
	}
	return rapid.SampledFrom(all).Draw(t, "question"), true
}

// happens has something happen in the session.
func (w *world) happens(t *rapid.T) {
	what := rapid.SampledFrom([]string{"ask", "ask", "ask", "change", "withdraw", "answer", "end of action", "attempt", "print", "lost", "back", "back", "end"}).Draw(t, "event")
	id, any := w.some(t)
	w.did = append(w.did, fmt.Sprintf("%d %s %d", w.clock().Sub(sceneNow).Milliseconds(), what, id))
	switch {
	case w.ended:
	case what == "ask" && len(w.asked) < 5:
		w.next++
		w.asks(w.next)
	case what == "change" && any:
		w.asks(id)
	case what == "withdraw" && any:
		w.closes(id, "withdrawn", "")
	case what == "answer" && any:
		w.closes(id, "allow", "cli")
	case what == "end of action":
		a := held(11, "go test ./...")
		a.State, a.Exit = api.ActionEnded, &api.Exit{Code: 1}
		w.c.Put(api.Event{Action: &a})
	case what == "attempt":
		w.c.Put(api.Event{Attempt: &api.Attempt{ID: 100 + w.next, At: w.clock(), Protocol: "tcp", Name: "example.org", Port: 443, Verdict: api.Allow}})
	case what == "print":
		if term := w.c.LastTerminal(); term != nil {
			term.Output("printed\r\n")
		}
	case what == "lost":
		w.c.Break(errors.New("the supervisor doesn't answer"))
	case what == "back":
		w.c.Break(nil)
	case what == "end" && w.version > 8: // there was something before
		w.ends()
	}
	w.settle()
	w.judge()
}

// ends ends the session.
func (w *world) ends() {
	for _, id := range slices.Sorted(maps.Keys(w.asked)) {
		w.closes(id, "withdrawn", "")
	}
	s := sceneSession()
	s.State, s.EndedAt = api.SessionEnded, w.clock()
	w.ended = true
	w.c.Break(nil)
	w.c.Put(api.Event{Session: &s})
	w.c.End()
}

// pool is every key that means something anywhere, and some that don't; not those by
// which the person leaves for good.
func pool() []tea.KeyPressMsg {
	var out []tea.KeyPressMsg
	seen := map[string]bool{}
	for _, scope := range keys.Scopes {
		for _, b := range keys.In(scope) {
			for _, k := range b.Keys() {
				if seen[k] || strings.Contains(k, "+") && !strings.HasPrefix(k, "ctrl+") || len(k) > 1 && key(k).String() != k {
					continue
				}
				seen[k] = true
				out = append(out, key(k))
			}
		}
	}
	return out
}

// lives is a session, and the workbench that shows it or the list that has it alone.
func lives(t *testing.T, rt rapid.TB, home bool) *world {
	c, o := sceneWorkbench(), Options{Config: themed("dark")}
	c.list = c.list[:1]
	if !home {
		o.Session = c.list[0].ID
	}
	d := drive(t, c, 120, 35, o)
	w := &world{person: &person{driver: d, rt: rt, began: time.Now(), read: map[string]string{}, words: marks{}, front: true}, asked: map[int64]api.Question{}, next: 19}
	w.look()
	w.waits(time.Second)
	if o.Session != "" && (d.m.bench == nil || !d.m.bench.Arrived() || d.c.LastTerminal() == nil) {
		w.fail("the session isn't shown\n%s", w.text())
	}
	return w
}

// uses is one thing that a person does.
func (w *world) uses(t *rapid.T, all []tea.KeyPressMsg) {
	x, y := rapid.IntRange(0, max(0, w.cells.Width()-1)).Draw(t, "x"), rapid.IntRange(0, max(0, w.cells.Height()-1)).Draw(t, "y")
	switch what := rapid.SampledFrom([]string{"key", "key", "key", "answer", "answer", "answer", "opens", "opens", "held down", "overtaken", "leader", "click", "drag", "release", "wheel", "size", "paste", "window", "tick"}).Draw(t, "what"); what {
	case "key":
		w.does(rapid.SampledFrom(all).Draw(t, "key"))
	case "answer":
		w.does(key(rapid.SampledFrom([]string{"a", "y", "d", "n", "i", "A", "enter", "tab", "4", "o", "esc", "esc"}).Draw(t, "answer")))
	case "opens": // a plan, fast, and what that offers follows when it could have been read
		w.opens(t)
	case "held down": // on a keyboard that doesn't say so
		k, n := key(rapid.SampledFrom([]string{"a", "y", "d", "n", "enter"}).Draw(t, "held")), w.judged+w.made
		w.does(k)
		w.answers()
		w.waits(rapid.SampledFrom([]time.Duration{250, 500, 990}).Draw(t, "first") * time.Millisecond)
		for range 5 {
			w.does(k)
			w.answers()
			w.waits(33 * time.Millisecond)
		}
		if w.waits(time.Second); w.judged+w.made > n+1 {
			w.fail("%s, held down, decided %d\n%s", k, w.judged+w.made-n, w.text())
		}
	case "overtaken": // what they are about to answer becomes something else
		for _, k := range rapid.SampledFrom([][]string{{}, {"enter"}, {"tab"}, {leader, "a"}, {leader, "4"}}).Draw(t, "to") {
			w.does(key(k))
		}
		w.waits(500 * time.Millisecond)
		if id, any := w.some(t); any && !w.ended {
			w.asks(id)
			w.settle()
			w.passes(t)
			w.does(key(rapid.SampledFrom([]string{"a", "y", "d", "n", "i"}).Draw(t, "answer")))
		}
	case "leader":
		w.does(key(leader))
		w.passes(t)
		w.does(key(rapid.SampledFrom([]string{"a", "y", "n", "1", "2", "3", "4", "[", "space", "r", "z", "?", ":", leader}).Draw(t, "after")))
	case "click":
		w.does(click(x, y))
	case "drag":
		w.does(tea.MouseMotionMsg{X: x, Y: y, Button: tea.MouseLeft})
	case "release":
		w.does(tea.MouseReleaseMsg{X: x, Y: y, Button: tea.MouseLeft})
	case "wheel":
		w.does(tea.MouseWheelMsg{X: x, Y: y, Button: rapid.SampledFrom([]tea.MouseButton{tea.MouseWheelUp, tea.MouseWheelDown}).Draw(t, "way")})
	case "size":
		size := rapid.SampledFrom([][2]int{{80, 24}, {120, 35}, {200, 50}, {60, 20}, {40, 12}, {30, 8}, {100, 14}}).Draw(t, "size")
		w.does(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
	case "paste":
		w.does(tea.PasteMsg{Content: "a pasted\nline"})
	case "window":
		if w.front {
			w.does(tea.BlurMsg{})
		} else {
			w.does(tea.FocusMsg{})
		}
	case "tick":
		w.does(clock{})
	}
	w.answers()
}

// opens presses a key that opens a plan, or asks once more, right after another, and then one
// that such a dialog offers. Whatever became of the first, the second lets nothing pass that
// the first was against.
func (w *world) opens(t *rapid.T) {
	if !w.ended && w.m.bench != nil && w.typing() {
		w.does(key(leader))
		w.does(key("4"))
	}
	if at := w.focused(); w.m.bench == nil && len(at) > 0 && strings.HasPrefix(w.row(at[0].X, at[0].Y), "┏ Live") {
		w.does(key("tab"))
	}
	w.waits(150 * time.Millisecond) // what was pressed before is carried out, or isn't
	w.answers()
	w.does(key(rapid.SampledFrom([]string{"k", "j"}).Draw(t, "move")))
	w.passes(t)
	opener := rapid.SampledFrom([]string{"u", "u", "U", "K", "d"}).Draw(t, "opener")
	agents := w.typing()
	w.does(key(opener))
	w.waits(rapid.SampledFrom([]time.Duration{0, 150, 401, 450, 600, 900}).Draw(t, "read") * time.Millisecond)
	if w.answers(); w.quit || agents {
		return
	}
	said, asked := len(w.c.Decisions()), len(w.c.Calls())
	yes := rapid.SampledFrom([]string{"y", "y", "enter"}).Draw(t, "yes")
	w.does(key(yes))
	w.waits(150 * time.Millisecond)
	for _, d := range w.c.Decisions()[said:] {
		if d.Answer != api.AnswerDeny && d.Answer != api.AnswerRollback {
			w.fail("%s, pressed for what %s was to open, answered %s\n%s", yes, opener, d.Answer, w.text())
		}
	}
	if slices.Contains(w.c.Calls()[asked:], "keep") {
		w.fail("%s, pressed for what %s was to open, kept\n%s", yes, opener, w.text())
	}
}

// passes lets time pass, mostly with the program having its turns in it.
func (w *world) passes(t *rapid.T) {
	d := rapid.SampledFrom([]time.Duration{0, 0, 50, 150, 250, 399, 401, 450, 450, 1000}).Draw(t, "ms") * time.Millisecond
	if rapid.IntRange(0, 3).Draw(t, "busy") > 0 {
		w.waits(d)
		return
	}
	time.Sleep(d)
	w.tells()
}

// Whatever a person does, and whatever happens meanwhile: nothing is decided but what
// they had in view, with a quiet keyboard; one place has the keys; the agent gets its own
// keys and no other; and esc leads back to it.
func TestAnyPerson(t *testing.T) {
	t.Parallel()
	all := pool()
	fewer()
	check(t, func(t *testing.T, rt *rapid.T) {
		w := lives(t, rt, rapid.Bool().Draw(rt, "home"))
		defer w.m.Close()
		for range rapid.IntRange(1, 100).Draw(rt, "steps") {
			if w.passes(rt); w.quit {
				return
			}
			if rapid.IntRange(0, 3).Draw(rt, "who") == 0 {
				w.happens(rt)
			} else {
				w.uses(rt, all)
			}
		}
		w.leaves()
	})
}

// Nobody who opens plans, however fast, has the opposite done.
func TestNoKeyDoesTheOpposite(t *testing.T) {
	t.Parallel()
	fewer()
	check(t, func(t *testing.T, rt *rapid.T) {
		w := lives(t, rt, rapid.Bool().Draw(rt, "home"))
		defer w.m.Close()
		for range 20 {
			if rapid.IntRange(0, 3).Draw(rt, "who") == 0 {
				w.happens(rt)
			}
			if w.opens(rt); w.quit {
				return
			}
			w.does(key("esc"))
		}
	})
}

// check has rapid check something by a clock of its own.
func check(t *testing.T, prop func(t *testing.T, rt *rapid.T)) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Hour) // for what waits for a time: that stops with the test
		rapid.Check(bubble{t}, func(rt *rapid.T) { prop(t, rt) })
	})
}

// bubble hides from rapid that its test has a deadline, which is none by that clock.
type bubble struct{ *testing.T }

// fewer has rapid run as often as there is time for in a usual run, and less often in a short
// one; -rapid.checks has it run any other number of times.
var fewer = sync.OnceFunc(func() {
	times := "25"
	if testing.Short() {
		times = "6"
	}
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set(times); err != nil {
			panic(err)
		}
	}
})

// leaves has esc lead back to the Terminal.
func (w *world) leaves() {
	if w.quit || w.m.bench == nil || w.ended {
		return
	}
	w.does(tea.WindowSizeMsg{Width: 120, Height: 35})
	for range 12 {
		if w.led {
			w.does(key(leader))
		}
		if w.typing() {
			return
		}
		w.waits(450 * time.Millisecond)
		w.does(key("esc"))
	}
	w.fail("esc doesn't lead back to the Terminal\n%s", w.text())
}

// A key that is held down answers once, whenever the machine stalls: what it repeats meanwhile
// comes all at once, before or after what waited for a time.
func TestHeldKeyAcrossAStall(t *testing.T) {
	t.Parallel()
	for place, to := range map[string][]string{"home": {"tab"}, "list": {leader, "4"}, "dock": {leader, "a", "tab"}} {
		for _, from := range []int{0, 510, 700} { // after it was pressed
			for _, length := range []int{120, 180, 300, 1000, 2000} {
				for _, late := range []bool{false, true} { // the keys
					t.Run(fmt.Sprint(place, from, length, late), inBubble(func(t *testing.T) {
						defer time.Sleep(time.Hour) // for what waits for a time
						w := lives(t, t, place == "home")
						defer w.m.Close()
						for _, id := range []int64{20, 24, 28} { // commands
							w.asks(id)
						}
						w.waits(500 * time.Millisecond)
						for _, k := range to {
							w.does(key(k))
						}
						w.waits(500 * time.Millisecond)
						w.holdsDown("a", time.Duration(from)*time.Millisecond, time.Duration(length)*time.Millisecond, late)
					}))
				}
			}
		}
	}
}

// holdsDown holds a key down while the machine stalls, which has all of it come at the end.
func (w *world) holdsDown(k string, from, length time.Duration, late bool) {
	const first, rate = 500 * time.Millisecond, 33 * time.Millisecond
	began := time.Now()
	next := first
	press := func() {
		w.does(key(k))
		w.answers()
	}
	press()
	for ; next < from; next += rate {
		w.waits(next - time.Since(began))
		press()
	}
	w.waits(from - time.Since(began))
	time.Sleep(length)
	if w.tells(); late {
		w.settle()
		w.judge()
		w.answers()
	}
	for ; next < from+length; next += rate {
		press()
	}
	for range 10 {
		w.waits(rate)
		press()
	}
	if w.waits(time.Second); w.judged != 1 {
		w.fail("%s, held down, answered %d\n%s", k, w.judged, w.text())
	}
}
