package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"stepbox/session/api"
	"stepbox/store"
)

// Most bounds how many actions, attempts, questions and the like a timeline tells, of each
// evenly spread: a session may do so much, or have a person asked so often, on purpose;
// TextMost is how many bytes it says of anything.
const (
	Most     = 20_000
	TextMost = 200
)

// Length is how long a session's course is, up to its last event or the last byte that was
// printed, or of a live one up to now.
func Length(ctx context.Context, st *store.Store, s api.Session, last uint64) (time.Duration, error) {
	_, _, length, err := measure(ctx, st, s, last)
	return length, err
}

// measure opens the terminal's record, and says how long after the session it began.
func measure(ctx context.Context, st *store.Store, s api.Session, last uint64) (r *store.Recording, lead, length time.Duration, err error) {
	if r, err = st.Recording(ctx, s.ID); err != nil {
		return nil, 0, 0, err
	}
	es, err := st.Events(ctx, s.ID, last, 1)
	lead = r.Lead(s.StartedAt)
	length = max(0, r.Length()+lead)
	if len(es) > 0 {
		length = max(length, es[0].At.Sub(s.StartedAt))
	}
	if s.Live() {
		length = max(length, time.Since(s.StartedAt))
	}
	return r, lead, length, err
}

// Timeline is the course of a session, with at most so many of what is marked of a kind:
// Most for 0, and never more. After the event since it has only what that event's course is to be
// continued by, see api.Timeline.Continued; but all if marks would differ of what nothing told since.
func Timeline(ctx context.Context, st *store.Store, s api.Session, most int, since uint64) (api.Timeline, error) {
	if most = min(most, Most); most <= 0 {
		most = Most
	}
	if !s.Live() { // what ran may have been cut off
		since = 0
	}
	out := api.Timeline{Session: s, Since: since}
	var err error
	if out.Last, err = st.LastEvent(ctx, s.ID); err != nil {
		return out, err
	}
	r, lead, length, err := measure(ctx, st, s, out.Last)
	if err != nil {
		return out, err
	}
	out.Length, out.Damage = length, damage(r.Lost(), lead)
	m := marker{began: s.StartedAt, until: s.StartedAt.Add(out.Length), asked: make(map[int64]string)}
	if err := m.runs(ctx, st, s); err != nil {
		return out, err
	}
	if n := len(m.cuts); since > 0 && n > 0 && m.cuts[n-1].seq > since {
		return Timeline(ctx, st, s, most, 0)
	}
	every := 1
	for _, kind := range []store.Kind{store.KindAction, store.KindAttempt, store.KindQuestion, store.KindDecision, store.KindRollback, store.KindApply} {
		if kind != store.KindDecision { // which has its question's number
			n, err := newest(ctx, st, s.ID, kind, out.Last)
			was := n
			if err == nil && since > 0 {
				was, err = newest(ctx, st, s.ID, kind, since)
			}
			switch every = 1 + n/most; {
			case err != nil:
				return out, err
			case every != 1+was/most:
				return Timeline(ctx, st, s, most, 0)
			}
			out.More += n - n/every
		}
		var others []store.Kind
		if kind == store.KindQuestion { // its title is the decision's
			others = append(others, store.KindDecision)
		}
		for c, err := range st.Courses(ctx, s.ID, kind, every, since, others...) {
			n := len(m.marks)
			if err == nil {
				err = m.course(c)
			}
			if since > 0 && len(m.marks) == n {
				m.add(api.Mark{Seq: c.Seq})
			}
			if err != nil {
				return out, fmt.Errorf("cannot tell the course of session %s: %w", s.Name, err)
			}
		}
	}
	slices.SortStableFunc(m.marks, func(a, b api.Mark) int { return cmp.Compare(a.Seq, b.Seq) })
	out.Marks = m.marks
	if out.More == 0 || most == Most { // else it is asked for once more
		for from, to := range r.Printed() {
			out.Printed = append(out.Printed, api.Stretch{From: max(0, min(from+lead, length)), To: max(0, min(to+lead, length))})
		}
	}
	return out, nil
}

// newest is the highest number of a kind by an event, which is how many there were.
func newest(ctx context.Context, st *store.Store, id string, kind store.Kind, seq uint64) (int, error) {
	docs, err := st.AsOf(ctx, id, kind, seq, 1)
	var r struct{ N, ID int }
	if err == nil && len(docs) > 0 {
		err = json.Unmarshal(docs[0], &r)
	}
	return max(r.N, r.ID), err
}

// damage says in words what of a terminal is lost.
func damage(lost []store.Lost, lead time.Duration) string {
	var words []string
	for i, l := range lost {
		if i == 3 {
			words = append(words, fmt.Sprintf("and %d more parts", len(lost)-i))
			break
		}
		words = append(words, fmt.Sprintf("from +%s to +%s (%s)", (l.From+lead).Round(time.Second), (l.To+lead).Round(time.Second), api.Escape(l.Why)))
	}
	if len(words) == 0 {
		return ""
	}
	return "what was printed can't be shown " + strings.Join(words, ", ")
}

// marker collects marks.
type marker struct {
	began time.Time
	until time.Time // the course's end
	marks []api.Mark
	asked map[int64]string // what was asked, by the questions' numbers
	cuts  []cut            // in order
}

// cut is where a session stopped that went on later, or that was interrupted.
type cut struct {
	seq uint64    // the event with which it went on
	at  time.Time // when something last happened in it before
}

// course adds what a resource's course is worth.
func (m *marker) course(c store.Course) error {
	var r struct {
		Kind         api.ActionKind  `json:"kind"`
		State        api.ActionState `json:"state"`
		Title        string          `json:"title"`
		Housekeeping bool            `json:"housekeeping"`
		Verdict      api.Verdict     `json:"verdict"`
		By           string          `json:"by"`
		Action       int             `json:"action"`
		Answer       api.Answer      `json:"answer"`
		Name         string          `json:"name"`
		Address      string          `json:"address"`
		Port         int             `json:"port"`
		Files        int             `json:"files"`
		StartedAt    time.Time       `json:"started_at"`
		ReleasedAt   time.Time       `json:"released_at"`
		EndedAt      time.Time       `json:"ended_at"`
		api.RollbackTarget
	}
	if err := json.Unmarshal(c.Doc, &r); err != nil {
		return fmt.Errorf("cannot decode %s %d: %w", c.Kind, c.Key, err)
	}
	if r.State == api.ActionRunning {
		r.EndedAt = m.until
	}
	if r.State == api.ActionAbandoned && r.ReleasedAt.IsZero() { // it never ran
		r.EndedAt = time.Time{}
	}
	runs := r.State == api.ActionRunning && (len(m.cuts) == 0 || m.cuts[len(m.cuts)-1].seq < c.Seq)
	waited, took := m.ran(c, r.ReleasedAt, r.EndedAt)
	mark := func(kind api.MarkKind, text string) {
		m.add(api.Mark{Offset: c.At.Sub(m.began), Seq: c.Seq, Kind: kind, Key: c.Key, Action: r.Action, Text: text, Waited: waited, Took: took, Runs: runs})
	}
	switch c.Kind {
	case store.KindAction:
		r.Action = int(c.Key)
		switch {
		case r.Kind == api.KindEdit:
			mark(api.MarkEdit, r.Title)
		case !r.Housekeeping:
			mark(api.MarkAction, r.Title)
		}
		if r.State == api.ActionDenied && r.By == "rule" { // at once
			mark(api.MarkDenied, r.Title)
		}
	case store.KindQuestion:
		m.asked[c.Key] = r.Title
		mark(api.MarkQuestion, r.Title)
	case store.KindDecision:
		if r.Answer == api.AnswerDeny {
			title := m.asked[c.Key]
			c.Key = int64(r.Action)
			mark(api.MarkDenied, title)
		}
	case store.KindAttempt:
		host := cmp.Or(r.Name, r.Address)
		if r.Port != 0 {
			host = fmt.Sprintf("%s:%d", host, r.Port)
		}
		mark(api.MarkAttempt, host)
		if r.Verdict == api.Deny {
			mark(api.MarkDenied, host)
		}
	case store.KindRollback:
		text, _ := r.Words()
		mark(api.MarkRollback, text)
	case store.KindApply:
		mark(api.MarkApply, api.Counted(r.Files, "file"))
	}
	return nil
}

// ran is how long an action waited until it was released, and how long it ran then. One
// that an interruption cut off is recorded to have ended only when its session went on.
func (m *marker) ran(c store.Course, released, ended time.Time) (waited, took time.Duration) {
	if released.Before(c.At) {
		released = c.At
	}
	for _, cut := range m.cuts {
		if cut.seq > c.Seq {
			if cut.at.Before(ended) {
				ended = cut.at
			}
			break
		}
	}
	return released.Sub(c.At), max(0, ended.Sub(released))
}

// runs adds when the session went on, and finds out when it had stopped.
func (m *marker) runs(ctx context.Context, st *store.Store, s api.Session) error {
	var events []store.Event
	var err error
	if s.Resumed > 0 {
		events, err = st.Named(ctx, s.ID, store.KindSession, "session.started")
	}
	if s.State == api.SessionInterrupted {
		events = append(events, store.Event{Session: s.ID, Seq: math.MaxUint64})
	}
	for _, e := range events {
		var s api.Session
		if e.Doc != nil {
			if err := json.Unmarshal(e.Doc, &s); err != nil {
				return fmt.Errorf("cannot decode event %d: %w", e.Seq, err)
			}
			if s.Resumed == 0 {
				continue
			}
			m.add(api.Mark{Offset: e.At.Sub(m.began), Seq: e.Seq, Kind: api.MarkResume, Key: int64(s.Resumed), Text: s.Runs()})
		}
		at, err := st.Ran(ctx, e.Session, e.Seq)
		if err != nil {
			return err
		}
		m.cuts = append(m.cuts, cut{e.Seq, at})
	}
	return err
}

func (m *marker) add(mark api.Mark) {
	mark.Offset, mark.Text = max(0, mark.Offset), api.Trim(mark.Text, TextMost)
	m.marks = append(m.marks, mark)
}
