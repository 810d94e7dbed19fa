package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"stepbox/session/api"
	"stepbox/store"
)

// Past is a session as its record has it, with what an interruption left open.
// Whoever recalled it owns it.
type Past struct {
	Session     api.Session
	Actions     []api.Action
	Checkpoints []api.Checkpoint
	Rollbacks   []api.Rollback // none is open any more
	Names       map[string]netip.Addr

	// The newest number of each kind.
	Execs, Ends, Notes, Claims, Questions, Attempts, Rolled int64

	Closing []api.Event // close what was left open, but for actions
	Words   []string    // for the person
	Ran     time.Time   // when something last happened in it
}

// Recall reads a session that has ended or was interrupted. It records nothing.
func Recall(ctx context.Context, st *store.Store, id string) (*Past, error) {
	info, err := Doc[api.Session](ctx, st, id, store.KindSession, 0)
	actions, aerr := All[api.Action](ctx, st, id, store.KindAction)
	checkpoints, cerr := All[api.Checkpoint](ctx, st, id, store.KindCheckpoint)
	rollbacks, rerr := All[api.Rollback](ctx, st, id, store.KindRollback)
	questions, qerr := All[api.Question](ctx, st, id, store.KindQuestion)
	attempts, terr := All[api.Attempt](ctx, st, id, store.KindAttempt)
	exec, _, xerr := Last[api.Exec](ctx, st, id, store.KindExec)
	ends, _, eerr := Last[api.Ends](ctx, st, id, store.KindEnds)
	note, _, nerr := Last[api.Note](ctx, st, id, store.KindNote)
	claim, _, merr := Last[api.Claim](ctx, st, id, store.KindClaim)
	ran, lerr := st.Ran(ctx, id, math.MaxUint64)
	if err := errors.Join(err, lerr, aerr, cerr, rerr, qerr, terr, xerr, eerr, nerr, merr); err != nil {
		return nil, err
	}
	info.Name = Called(ctx, st, id, info.Name)
	p := &Past{
		Session: info, Ran: ran, Actions: actions, Checkpoints: checkpoints, Rollbacks: rollbacks,
		Names: make(map[string]netip.Addr), Execs: exec.ID, Ends: ends.ID, Notes: note.ID, Claims: claim.N,
	}
	for _, q := range questions {
		if p.Questions = max(p.Questions, q.ID); q.Open() {
			q.Closed, q.Answering = "withdrawn", ""
			p.Closing = append(p.Closing, api.Event{Kind: "question.closed", Question: &q})
		}
	}
	for _, a := range attempts {
		p.Attempts = max(p.Attempts, a.ID)
		if addr, err := netip.ParseAddr(a.Address); err == nil && a.Name != "" {
			p.Names[a.Name] = addr
		}
		if a.Open {
			a.Open, a.Failure = false, api.CutOff
			p.Closing = append(p.Closing, api.Event{Kind: "attempt.closed", Attempt: &a})
		}
	}
	for i := range p.Rollbacks {
		r := &p.Rollbacks[i]
		if p.Rolled = max(p.Rolled, r.ID); !r.Open {
			continue
		}
		r.Open, r.Failure = false, api.CutOff
		p.Closing = append(p.Closing, api.Event{Kind: "rollback.failed", Rollback: r})
		words, again := r.Words()
		words += " was cut off: some of its files may be as they were before it, and others not"
		if again != "" {
			words += fmt.Sprintf("; stepbox rollback %s %s does it again", id, again)
		}
		p.Words = append(p.Words, words)
	}
	return p, nil
}
