package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stepbox/session/api"
	"stepbox/store"
)

// recorder commits facts in the order they were handed over and only then lets
// the session go on with what depended on them. One goroutine commits; while it
// does, more facts gather and share the next transaction, so a slow disk delays
// actions but never reorders them and never holds up the session's own loop.
type recorder struct {
	store   *store.Store
	session string
	queue   chan entry // full: the session's loop waits, and with it the agent
	done    chan struct{}
	emit    func([]api.Event) // called in order from the recorder's goroutine
}

type entry struct {
	facts  []store.Fact
	events []api.Event
	then   func(error) // called from the recorder's goroutine
}

// queued bounds how many batches wait for a commit.
const queued = 4096

func newRecorder(st *store.Store, session string, emit func([]api.Event)) *recorder {
	r := &recorder{store: st, session: session, queue: make(chan entry, queued), done: make(chan struct{}), emit: emit}
	go r.run()
	return r
}

// record hands over facts; then runs once they are committed, or with the error
// that kept them from it. Nothing that a fact announces may happen before.
func (r *recorder) record(then func(error), events ...api.Event) {
	e := entry{then: then, events: events, facts: make([]store.Fact, 0, len(events))}
	for _, ev := range events {
		f, err := fact(ev)
		if err != nil {
			then(err)
			return
		}
		e.facts = append(e.facts, f)
	}
	r.queue <- e
}

// wait records and returns when that is done. It isn't for the loop.
func (r *recorder) wait(events ...api.Event) error {
	done := make(chan error, 1)
	r.record(func(err error) { done <- err }, events...)
	return <-done
}

// close commits what is queued and stops. Nothing may be recorded afterwards:
// the loop, which alone records, closes it last of all.
func (r *recorder) close() {
	close(r.queue)
	<-r.done
}

func (r *recorder) run() {
	defer close(r.done)
	const batch = 64
	for first := range r.queue {
		entries := []entry{first}
	gather:
		for len(entries) < batch {
			select {
			case e, ok := <-r.queue:
				if !ok {
					break gather
				}
				entries = append(entries, e)
			default:
				break gather
			}
		}
		r.commit(entries)
	}
}

// commit writes entries in one transaction. The commit isn't cancelled with
// the session: a session that ends still records its end.
func (r *recorder) commit(entries []entry) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var facts []store.Fact
	for _, e := range entries {
		facts = append(facts, e.facts...)
	}
	var recorded []store.Event
	var err error
	if len(facts) > 0 {
		recorded, err = r.store.Append(ctx, r.session, facts...)
	}
	if err != nil {
		err = fmt.Errorf("cannot record: %w", err)
	}
	i := 0
	for _, e := range entries {
		if err == nil && len(e.events) > 0 {
			for k := range e.events {
				e.events[k].Seq, e.events[k].At = recorded[i].Seq, recorded[i].At
				i++
			}
			r.emit(e.events)
		}
		if e.then != nil {
			e.then(err)
		}
	}
}

// fact is the stored form of an event: the resource itself, under its kind and
// number. The stream's sequence number and time are the store's to give.
func fact(e api.Event) (store.Fact, error) {
	var f store.Fact
	var doc any
	switch {
	case e.Session != nil:
		f.Kind, doc = "session", e.Session
	case e.Action != nil:
		f.Kind, f.Key, doc = "action", int64(e.Action.N), e.Action
	case e.Question != nil:
		f.Kind, f.Key, doc = "question", e.Question.ID, e.Question
	case e.Decision != nil:
		f.Kind, f.Key, doc = "decision", e.Decision.Question, e.Decision
	case e.Exec != nil:
		f.Kind, f.Key, doc = "exec", e.Exec.ID, e.Exec
	case e.Attempt != nil:
		f.Kind, f.Key, doc = "attempt", e.Attempt.ID, e.Attempt
	case e.Checkpoint != nil:
		f.Kind, f.Key, doc = "checkpoint", e.Checkpoint.ID, e.Checkpoint
	case e.Rollback != nil:
		f.Kind, f.Key, doc = "rollback", e.Rollback.ID, e.Rollback
	case e.Note != nil:
		f.Kind, f.Key, doc = "note", e.Note.ID, e.Note
	default:
		return f, fmt.Errorf("cannot record an event %q that holds no resource", e.Kind)
	}
	f.Event = e.Kind
	b, err := json.Marshal(doc)
	if err != nil {
		return f, fmt.Errorf("cannot encode %s: %w", e.Kind, err)
	}
	f.Doc = b
	return f, nil
}

// event is the wire form of a stored event.
func event(se store.Event) (api.Event, error) {
	e := api.Event{Seq: se.Seq, At: se.At, Kind: se.Event}
	var doc any
	switch se.Kind {
	case "session":
		e.Session = new(api.Session)
		doc = e.Session
	case "action":
		e.Action = new(api.Action)
		doc = e.Action
	case "question":
		e.Question = new(api.Question)
		doc = e.Question
	case "decision":
		e.Decision = new(api.Decision)
		doc = e.Decision
	case "exec":
		e.Exec = new(api.Exec)
		doc = e.Exec
	case "attempt":
		e.Attempt = new(api.Attempt)
		doc = e.Attempt
	case "checkpoint":
		e.Checkpoint = new(api.Checkpoint)
		doc = e.Checkpoint
	case "rollback":
		e.Rollback = new(api.Rollback)
		doc = e.Rollback
	case "note":
		e.Note = new(api.Note)
		doc = e.Note
	default:
		// Terminal chunks index the journal; they aren't news.
		return e, nil
	}
	if err := json.Unmarshal(se.Doc, doc); err != nil {
		return e, fmt.Errorf("cannot decode event %d: %w", se.Seq, err)
	}
	return e, nil
}
