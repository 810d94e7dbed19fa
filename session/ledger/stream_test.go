package ledger

import (
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/store"
	"stepbox/store/storetest"
)

// The newest version is a state that every viewer hears of, however late it
// joins and however slow it is.
func TestNewestVersionReachesEveryViewer(t *testing.T) {
	b := newStream()
	early := b.subscribe()
	for v := range int64(1000) { // nobody reads meanwhile
		b.Moved(v + 1)
	}
	b.Moved(7) // overtaken on its way
	select {
	case <-early.wake:
	default:
		t.Error("a viewer wasn't woken")
	}
	if v := b.version(); v != 1000 {
		t.Errorf("the newest version is %d, want 1000", v)
	}
}

// A viewer that keeps up gets what was committed from memory; one that fell behind,
// or comes where others recorded too, is sent to the record.
func TestRecentEvents(t *testing.T) {
	b := newStream()
	commit := func(from, to uint64, doc int) {
		var events []store.Event
		for seq := from; seq <= to; seq++ {
			events = append(events, store.Event{Seq: seq, Doc: make([]byte, doc)})
		}
		b.recorded(events)
	}
	check := func(when string, from uint64, kept bool, want ...uint64) {
		t.Helper()
		events, ok := b.since(from)
		var got []uint64
		for _, e := range events {
			got = append(got, e.Seq)
		}
		if ok != kept || !slices.Equal(got, want) {
			t.Errorf("%s: from %d on there is %v (%v), want %v (%v)", when, from, got, ok, want, kept)
		}
	}
	check("nothing was committed", 1, false)
	commit(5, 6, 1)
	check("some came before it", 4, false)
	check("it has seen nothing of these", 5, true, 5, 6)
	check("it has seen one", 6, true, 6)
	check("it has seen all", 7, true)
	commit(7, 7, 1)
	check("one more came", 6, true, 6, 7)
	commit(9, 9, 1)
	check("one is missing", 8, false)
	check("one is missing, which it has seen", 9, true, 9)
	commit(10, 9+recentEvents, 1)
	check("too many came", 9, false)
	check("as many as are kept", 10+recentEvents-1, true, 10+recentEvents-1)
	commit(10+recentEvents, 10+recentEvents, recentBytes+1)
	check("one is too large", 10+recentEvents, false)
}

// What a viewer is told is the same whether it keeps up or reads the record later,
// each event once and in order.
func TestViewersAgree(t *testing.T) {
	dir := t.TempDir() + "/data"
	st := storetest.Open(t, dir)
	s := api.Session{ID: "agree", Name: "agree", State: api.SessionRunning, StartedAt: time.Now()}
	storetest.Begin(t, st, s.ID, s)
	l, err := Open(st, s.ID, st.SessionDir(s.ID), nil)
	must.OK(t, err)
	follow := func(first func(), kinds ...string) <-chan []api.Event {
		done := make(chan []api.Event)
		go func() {
			var got []api.Event
			for e, err := range l.Events(t.Context(), 0, kinds...) {
				if err != nil {
					t.Error(err)
				}
				if got = append(got, e); len(got) == 1 {
					first()
				}
			}
			done <- got
		}()
		return done
	}
	joined := make(chan struct{})
	live := follow(func() { close(joined) })
	<-joined
	notes := follow(func() { l.Moved(1) }, "note")
	for n := range 3 * recentEvents {
		l.RecordSoon(nil, api.Event{Kind: "action", Action: &api.Action{N: n + 1}}, api.Event{Kind: "session.counted", Session: &s})
		if n%100 == 0 {
			if err := l.wait(api.Event{Kind: "note", Note: &api.Note{ID: int64(n), Text: "waited for"}}); err != nil {
				t.Error(err)
			}
		}
	}
	l.Close()
	for what, viewer := range map[string]<-chan []api.Event{"": live, "note": notes} {
		var kinds []string
		if what != "" {
			kinds = append(kinds, what)
		}
		var recorded []api.Event
		for e, err := range (&History{Store: st}).Recorded(t.Context(), s.ID, 0, kinds...) {
			must.OK(t, err)
			if what == "note" && e.Note == nil {
				t.Errorf("among notes is %+v", e)
			}
			recorded = append(recorded, e)
		}
		told := slices.DeleteFunc(<-viewer, func(e api.Event) bool { return what == "" && e.Changes != nil })
		if len(recorded) == 0 || !reflect.DeepEqual(told, recorded) {
			t.Errorf("a viewer of %q was told %d events that aren't the %d of the record", what, len(told), len(recorded))
		}
	}
}

// Who names kinds of resources hears of what passes by of these, too, and of nothing else.
func TestPassingOfAKind(t *testing.T) {
	st := storetest.New(t)
	l := &Ledger{store: st, session: "s", stream: newStream()}
	l.Moved(3)
	for kind, want := range map[string]bool{"usage": true, "question": false} {
		got := make(chan bool, 1)
		go func() {
			saw := false
			for e := range l.Events(t.Context(), 1, kind) {
				saw = saw || e.Usage != nil || e.Changes != nil
			}
			got <- saw
		}()
		for l.watchers() == 0 {
			runtime.Gosched()
		}
		l.pass(api.Event{Kind: "usage", Usage: &api.Usage{Pids: 1}})
		for len(l.passed()) > 0 {
			runtime.Gosched()
		}
		l.close()
		if is := <-got; is != want {
			t.Errorf("who asks for %s hears what is used: %v", kind, is)
		}
		l.stream = newStream()
	}
}

// passed is what passes by and wasn't taken yet.
func (b *stream) passed() (out []*subscriber) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s := range b.subs {
		if len(s.passing) > 0 {
			out = append(out, s)
		}
	}
	return out
}
