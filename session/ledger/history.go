package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"stepbox/session/api"
	"stepbox/session/replay"
	"stepbox/store"
)

// History reads sessions from the record. It is safe for concurrent use.
type History struct {
	Store *store.Store

	// Live says whether a supervisor owns a session. What the record calls
	// live but nobody owns was interrupted.
	Live func(id string) bool
}

// Doc fetches one resource as it was last recorded.
func Doc[T any](ctx context.Context, st *store.Store, session string, kind store.Kind, key int64) (T, error) {
	var out T
	b, err := st.Doc(ctx, session, kind, key)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(b, &out)
}

// Session fetches what is recorded of a session itself.
func Session(ctx context.Context, st *store.Store, id string) (api.Session, error) {
	return Doc[api.Session](ctx, st, id, store.KindSession, 0)
}

// Last fetches the resource of a kind with the highest number, if there is one.
func Last[T any](ctx context.Context, st *store.Store, session string, kind store.Kind) (last T, found bool, err error) {
	rows, err := st.Newest(ctx, session, kind, 1)
	if err == nil && len(rows) > 0 {
		found, err = true, json.Unmarshal(rows[0], &last)
	}
	return last, found, err
}

// Newest fetches the newest resources of a kind, at most so many, by number.
func Newest[T any](ctx context.Context, st *store.Store, session string, kind store.Kind, most int) ([]T, error) {
	rows, err := st.Newest(ctx, session, kind, most)
	return decoded[T](rows, err, session, kind)
}

// All fetches all resources of a kind, by number.
func All[T any](ctx context.Context, st *store.Store, session string, kind store.Kind) ([]T, error) {
	rows, err := st.Docs(ctx, session, kind, -1, 0)
	return decoded[T](rows, err, session, kind)
}

func decoded[T any](rows []json.RawMessage, err error, session string, kind store.Kind) ([]T, error) {
	if err != nil {
		return nil, fmt.Errorf("cannot read the record: %w", err)
	}
	out := make([]T, len(rows))
	for i, r := range rows {
		if err := json.Unmarshal(r, &out[i]); err != nil {
			return nil, fmt.Errorf("cannot decode a %s of session %s: %w", kind, session, err)
		}
	}
	return out, nil
}

// Sessions lists all sessions, newest first. What can't be read of them is an error beside
// those that can.
func (h *History) Sessions(ctx context.Context) ([]api.Session, error) {
	rows, err := h.Store.Sessions(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot list the sessions: %w", err)
	}
	labels, err := h.Store.Labels(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]api.Session, 0, len(rows))
	label := func(id string) json.RawMessage { return labels[id] }
	for _, r := range rows {
		s, failed := Decode(r)
		switch {
		case failed != nil:
		case s.Live() && !h.Live(s.ID):
			s, failed = h.Session(ctx, s.ID)
		default:
			labelled(&s, label)
		}
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		out = append(out, s)
	}
	return out, err
}

// Decode reads a session's row.
func Decode(doc json.RawMessage) (s api.Session, err error) {
	if err := json.Unmarshal(doc, &s); err != nil {
		return s, fmt.Errorf("a row of the table of sessions can't be read, which stepbox verify --all --repair makes again from the events: %w", err)
	}
	return s, nil
}

// Session fetches one session. One that calls itself live but has no supervisor
// was interrupted.
func (h *History) Session(ctx context.Context, id string) (api.Session, error) {
	s, err := Doc[api.Session](ctx, h.Store, id, "session", 0)
	if errors.Is(err, store.ErrNotFound) {
		return s, api.NoSession(id)
	}
	if err == nil && s.Live() && !h.Live(id) {
		// Its supervisor may have recorded the end between the two looks.
		s, err = Doc[api.Session](ctx, h.Store, id, "session", 0)
		if err == nil && s.Live() {
			s.State, s.Held, s.Beside = api.SessionInterrupted, 0, nil
			s.CutOff, err = h.cutOff(ctx, id)
		}
	}
	if err == nil {
		s.ID = id // whatever it says
		var label json.RawMessage
		if label, err = h.Store.LabelOf(ctx, id); err == nil {
			h.Labelled(ctx, &s, label)
		}
	}
	return s, err
}

// cutOff is what an interrupted session's last roll back was to do, if its end
// isn't in the record.
func (h *History) cutOff(ctx context.Context, id string) (*api.RollbackTarget, error) {
	last, found, err := Last[api.Rollback](ctx, h.Store, id, store.KindRollback)
	if err != nil || !found || !last.Open {
		return nil, err
	}
	return &last.RollbackTarget, nil
}

// Actions lists a session's actions.
func (h *History) Actions(ctx context.Context, id string) ([]api.Action, error) {
	return All[api.Action](ctx, h.Store, id, "action")
}

// Execs lists the programs that an action started.
func (h *History) Execs(ctx context.Context, id string, n int) ([]api.Exec, error) {
	all, err := All[api.Exec](ctx, h.Store, id, store.KindExec)
	if err != nil {
		return nil, err
	}
	ends, err := All[api.Ends](ctx, h.Store, id, store.KindEnds)
	for _, some := range ends {
		for _, e := range some.List {
			i, found := slices.BinarySearchFunc(all, e.Exec, func(x api.Exec, id int64) int { return cmp.Compare(x.ID, id) })
			if found {
				e.On(&all[i])
			}
		}
	}
	return slices.DeleteFunc(all, func(e api.Exec) bool { return e.Action != n }), err
}

// Questions of a recorded session are none: nothing is held any more.
func (h *History) Questions(context.Context, string) ([]api.Question, error) {
	return []api.Question{}, nil
}

// Attempts lists a session's network attempts.
func (h *History) Attempts(ctx context.Context, id string) ([]api.Attempt, error) {
	return All[api.Attempt](ctx, h.Store, id, "attempt")
}

// Applies lists a session's applies, oldest first.
func (h *History) Applies(ctx context.Context, id string) ([]api.Apply, error) {
	return All[api.Apply](ctx, h.Store, id, store.KindApply)
}

// Rollbacks lists a session's roll backs, oldest first.
func (h *History) Rollbacks(ctx context.Context, id string) ([]api.Rollback, error) {
	return All[api.Rollback](ctx, h.Store, id, store.KindRollback)
}

// Recorded yields the events that are recorded by now; of some kinds of resources
// alone, if any are named.
func (h *History) Recorded(ctx context.Context, id string, from uint64, kinds ...string) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) { committed(ctx, h.Store, id, from, kinds, yield) }
}

// Events of a recorded session are those recorded: nothing follows.
func (h *History) Events(ctx context.Context, id string, from uint64, kinds ...string) iter.Seq2[api.Event, error] {
	return h.Recorded(ctx, id, from, kinds...)
}

// Screen is the last screen of a recorded session.
func (h *History) Screen(ctx context.Context, id string) (api.Frame, error) {
	for f, err := range h.TerminalAt(ctx, id, replay.End) {
		if err != nil || f.Kind == api.FrameKeyframe {
			return f, err
		}
	}
	return api.Frame{}, fmt.Errorf("cannot read the terminal of session %s: it has no screen", id) // it always has one
}

// Timeline is a session's course, see replay.Timeline.
func (h *History) Timeline(ctx context.Context, id string, most int, since uint64) (api.Timeline, error) {
	s, err := h.Session(ctx, id)
	if err != nil {
		return api.Timeline{}, err
	}
	return replay.Timeline(ctx, h.Store, s, most, since)
}

// TerminalAt yields a session's terminal from a time since it began on, see
// replay.Terminal.
func (h *History) TerminalAt(ctx context.Context, id string, offset time.Duration) iter.Seq2[api.Frame, error] {
	return replay.Terminal(ctx, h.Store, id, offset)
}

// Output is all that the agent of a recorded session has printed.
func (h *History) Output(ctx context.Context, id string) iter.Seq2[api.Frame, error] {
	return func(yield func(api.Frame, error) bool) {
		for f, err := range h.Store.ReadJournal(id) {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(api.Frame{}, err)
				return
			}
			if f.Kind == store.FrameOutput && !yield(api.Frame{Kind: api.FrameOutput, Data: f.Data}, nil) {
				return
			}
		}
	}
}
