package seal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// Verifier checks records.
type Verifier struct {
	Store      *store.Store
	Key        Key
	Live       func(id string) bool
	References func() store.References // of one run
}

// Verify is server.Verifier's.
func (v Verifier) Verify(ctx context.Context, r api.VerifyRequest, tell func(api.Verifying)) error {
	if r.Head != "" {
		head, err := store.ParseHash(r.Head)
		if err != nil || r.Session == "" {
			return api.Problemf(api.CodeUsage, "a head is the hash of an event of one session, in hexadecimal: stepbox verify --print-head SESSION prints it")
		}
		r.Head = head.String()
	}
	key, err := v.Key.told()
	if err != nil {
		return err
	}
	ids := []string{r.Session}
	if r.Session == "" {
		whole := api.Verified{}
		wrong, err := v.Store.Sound(ctx)
		if err != nil {
			return err
		}
		for _, p := range wrong {
			whole.Findings = append(whole.Findings, api.Finding{Text: api.Escape(p.Error()), Table: p.Table})
		}
		if r.Repair {
			err := v.Store.Remake(ctx)
			if whole.Repaired = err == nil && slices.ContainsFunc(wrong, func(p store.Problem) bool { return p.Table }); err != nil {
				whole.Findings = append(whole.Findings, api.Finding{Text: api.Escape(err.Error())})
			}
		}
		tell(api.Verifying{Done: &whole})
		if ids, err = v.Store.Everywhere(ctx); err != nil { // after the tables that it reads are there again
			return err
		}
	}
	known := make(map[store.Hash]error)
	var more []store.References
	if !r.Quick {
		more = append(more, v.References())
	}
	for _, id := range ids {
		var failure error
		if r.Repair {
			failure = Owed(ctx, v.Store, v.Key, id)
		}
		c := newChecker(v.Store, id, key)
		x := store.Examination{Quick: r.Quick, More: more, Event: c.event, Known: known, Progress: func(events uint64, read int64) {
			tell(api.Verifying{Session: id, Events: events, Bytes: read})
		}}
		done, err := v.one(ctx, c, x, r)
		if err != nil {
			return err
		}
		if r.Session == "" && !done.Whole() {
			left, err := v.Store.Everywhere(ctx)
			if err != nil {
				return err
			}
			if !slices.Contains(left, id) {
				continue // it was removed meanwhile
			}
		}
		if c.phase == owed && failure != nil {
			done.Remarks = append(done.Remarks, api.Escape(failure.Error()))
		}
		tell(api.Verifying{Session: id, Done: &done})
	}
	return nil
}

// Whole says what is wrong with a session's record, if anything is.
func (v Verifier) Whole(ctx context.Context, id string) error { return v.whole(ctx, id, false) }

// Sound is Whole for who goes by events and tables, and records more behind them: contents
// he reads himself, and what they are by their hashes.
func (v Verifier) Sound(ctx context.Context, id string) error { return v.whole(ctx, id, true) }

func (v Verifier) whole(ctx context.Context, id string, quick bool) (err error) {
	failure := v.Verify(ctx, api.VerifyRequest{Session: id, Quick: quick}, func(p api.Verifying) {
		if p.Done != nil && !p.Done.Whole() {
			how := "says why"
			if !slices.ContainsFunc(p.Done.Findings, func(f api.Finding) bool { return !f.Table }) {
				how = "--repair mends it"
			}
			err = api.Problemf(api.CodeInvalid, "the record of session %s isn't whole: stepbox verify %s %s", api.Escape(id), api.Escape(id), how)
		}
	})
	return errors.Join(failure, err)
}

// one checks one session.
func (v Verifier) one(ctx context.Context, c *checker, x store.Examination, r api.VerifyRequest) (api.Verified, error) {
	id := c.session
	out := api.Verified{Session: api.Escape(id)}
	live := v.Live(id) // then what is found may be before its end was sealed
	found, err := v.Store.Examine(ctx, id, x)
	if errors.Is(err, store.ErrNotFound) {
		if r.Session != "" {
			return out, api.NoSession(id)
		}
		out.Findings = append(out.Findings, api.Finding{Text: "tables tell of it and no event does: its events were removed or are another session's now"})
		return out, nil
	}
	if err != nil {
		return out, err
	}
	out.Events, out.Head, out.Contents, out.Chunks, out.Bytes, out.More = found.Events, found.Head.String(), found.Bodies, found.Chunks, found.Bytes, found.Hidden
	tables := false // Rebuild itself looks whether the events are as they should be
	for _, p := range found.Problems {
		tables = tables || p.Table
		out.Findings = append(out.Findings, api.Finding{Text: api.Escape(p.Error()), Table: p.Table})
	}
	wrong, remarks := c.over(live || r.Quick || v.Live(id))
	for _, w := range wrong {
		out.Findings = append(out.Findings, api.Finding{Text: api.Escape(w)})
	}
	if r.Head != "" && !c.lists(r.Head) {
		out.Findings = append(out.Findings, api.Finding{Text: fmt.Sprintf("it doesn't have the event %s: it was cut off before that, or written anew", r.Head)})
	}
	out.Seals, out.Seal, out.Remarks = c.count, c.last, remarks
	if c.by == After && found.Chunks == 0 {
		out.Remarks = append(out.Remarks, "none of the terminal's output is recorded")
	}
	if found.Torn && !v.Live(id) {
		out.Remarks = append(out.Remarks, "the terminal's output ends in the middle of a write")
	}
	if c.last != nil {
		out.Message = string(Message(id, *c.last))
	}
	if r.Repair && tables {
		err := v.Store.Rebuild(ctx, id)
		if ctx.Err() != nil {
			return out, err
		}
		if out.Repaired = err == nil; err != nil {
			out.Findings = append(out.Findings, api.Finding{Text: api.Escape(err.Error())})
		}
	}
	if doc, err := v.Store.Doc(ctx, id, store.KindSession, 0); err == nil {
		var s api.Session
		if json.Unmarshal(doc, &s) == nil {
			out.Name, out.Number = ledger.Called(ctx, v.Store, id, s.Name), s.Number
			if !api.ValidName(out.Name) {
				out.Name = out.Session // it could read as if it were the outcome
			}
		}
	}
	return out, nil
}
