// Package ledger keeps what a session records: it commits events in order and
// only then lets the session go on, streams them to who watches, and reads
// sessions back, those that live and those that are over.
//
// Its methods may be called from any goroutine, but for those that say whose
// they are. What is recorded was escaped before; it is trusted when it is read.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stepbox/session/api"
	"stepbox/store"
)

// Ledger is a live session's record. It commits facts in the order they were
// handed over and only then lets the session go on with what depended on them.
// One goroutine commits; while it does, more facts gather and share the next
// transaction, so a slow disk delays actions but never reorders them and never
// holds up the session's own loop.
type Ledger struct {
	store   *store.Store
	session string
	queue   chan entry // full: the session's loop waits, and with it the agent
	done    chan struct{}
	room    *room // for the record of the end

	// Hide puts something in the place of secrets in a resource, as JSON, and says whether
	// there were none; nil: nothing is hidden. It is set before anything is recorded.
	Hide func(doc []byte) (out []byte, same bool)

	foretell func([]store.Event) error // told what is recorded first, before it is; nil: nobody is, or not any more
	stream
}

type entry struct {
	facts     []store.Fact
	then      func(error) // called from the ledger's goroutine; nil: nobody waits
	unhurried bool        // it may wait for company
}

// lag is how long what nobody waits for may wait to share a transaction with what
// comes next. A transaction costs about as much with ten facts as with one.
const lag = 10 * time.Millisecond

// queued bounds how many batches wait for a commit.
const queued = 4096

// Open begins a session's record. Dir is the session's folder in the store,
// where room is kept for the record of its end. Foretell is told what is recorded
// first, before it is, see store.AppendForetold; nil: nobody is.
func Open(st *store.Store, session, dir string, foretell func([]store.Event) error) (*Ledger, error) {
	room, err := keepRoom(dir)
	if err != nil {
		return nil, err
	}
	l := &Ledger{store: st, session: session, queue: make(chan entry, queued), done: make(chan struct{}), room: room, foretell: foretell, stream: newStream()}
	go l.run()
	return l, nil
}

// Record hands over events; then runs once they are committed, or with the error
// that kept them from it. Nothing that an event announces may happen before.
func (l *Ledger) Record(then func(error), events ...api.Event) { l.hand(false, then, events) }

// RecordSoon is Record for what nothing waits for: it is committed within lag, or
// as soon as something else is.
func (l *Ledger) RecordSoon(then func(error), events ...api.Event) { l.hand(true, then, events) }

func (l *Ledger) hand(unhurried bool, then func(error), events []api.Event) {
	e := entry{then: then, facts: make([]store.Fact, 0, len(events)), unhurried: unhurried}
	for _, ev := range events {
		f, err := l.fact(ev)
		if err != nil {
			then(err)
			return
		}
		e.facts = append(e.facts, f)
	}
	l.queue <- e
}

// fact is what is stored of an event: all that a session records is made here, and loses
// its secrets here.
func (l *Ledger) fact(ev api.Event) (store.Fact, error) {
	f, err := fact(ev)
	if err != nil || l.Hide == nil {
		return f, err
	}
	doc, same := l.Hide(f.Doc)
	if !same && ev.Exec != nil && ev.Exec.Basis != nil {
		x, b := *ev.Exec, *ev.Exec.Basis
		b.Cut, b.Exact = true, nil // its arguments aren't kept whole: other rules can't tell later
		x.Basis = &b
		if f, err = fact(api.Event{Kind: ev.Kind, Exec: &x}); err != nil {
			return f, err
		}
		doc, _ = l.Hide(f.Doc)
	}
	f.Doc = doc
	return f, nil
}

// Output makes the room that was kept for the last of the session's output, which is
// packed before its end is recorded. It may be called once, before End.
func (l *Ledger) Output() { l.room.shrink() }

// End records a session's end, and its last event is how it ended. When the disk
// is full it makes the room that was kept for this; if not all of it can be
// recorded, at least the last event is. It waits, so it isn't for the loop.
func (l *Ledger) End(events ...api.Event) error {
	err := l.wait(events...)
	if err == nil {
		return nil
	}
	l.room.free()
	if l.wait(events...) == nil {
		return nil
	}
	return errors.Join(err, l.wait(events[len(events)-1]))
}

// wait records and returns when that is done.
func (l *Ledger) wait(events ...api.Event) error {
	done := make(chan error, 1)
	l.Record(func(err error) { done <- err }, events...)
	return <-done
}

// Close commits what is queued and ends all streams. Nothing may be recorded
// afterwards: the session's loop, which alone records, closes it last of all.
func (l *Ledger) Close() {
	close(l.queue)
	<-l.done
	l.room.free()
	l.stream.close()
}

func (l *Ledger) run() {
	defer close(l.done)
	for first := range l.queue {
		l.commit(l.gather(first))
	}
}

// gather adds to an entry what is queued by now, and what comes soon as long as
// nobody waits for any of it.
func (l *Ledger) gather(first entry) []entry {
	const batch = 64
	entries, hurry := []entry{first}, !first.unhurried
	late := time.NewTimer(lag)
	defer late.Stop()
	for len(entries) < batch {
		var e entry
		ok := false
		if hurry {
			select {
			case e, ok = <-l.queue:
			default:
			}
		} else {
			select {
			case e, ok = <-l.queue:
			case <-late.C:
			}
		}
		if !ok {
			break
		}
		entries, hurry = append(entries, e), hurry || !e.unhurried
	}
	return entries
}

// commit writes entries in one transaction. The commit isn't cancelled with
// the session: a session that ends still records its end.
func (l *Ledger) commit(entries []entry) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var facts []store.Fact
	for _, e := range entries {
		facts = append(facts, e.facts...)
	}
	var err error
	if len(facts) > 0 {
		var events []store.Event
		if events, err = l.store.AppendForetold(ctx, l.session, l.foretell, facts...); err != nil {
			err = fmt.Errorf("cannot record: %w", err)
		} else {
			l.foretell = nil
			l.recorded(events)
		}
	}
	for _, e := range entries {
		if e.then != nil {
			e.then(err)
		}
	}
}
