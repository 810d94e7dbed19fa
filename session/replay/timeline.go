package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"stepbox/session/api"
	"stepbox/store"
)

// Marks bounds of how many things a timeline tells beside those that a person was
// asked or decided, and textMost how many bytes it says of each.
const (
	marks    = 20_000
	textMost = 200
)

// Timeline is the course of a session.
func Timeline(ctx context.Context, st *store.Store, s api.Session) (api.Timeline, error) {
	out := api.Timeline{Session: s}
	var err error
	if out.Last, err = st.LastEvent(ctx, s.ID); err != nil {
		return out, err
	}
	r, err := st.Recording(ctx, s.ID)
	if err != nil {
		return out, err
	}
	lead := lead(r, s.StartedAt)
	out.Length, out.Damage = max(0, r.Length()+lead), damage(r.Lost(), lead)
	if es, err := st.Events(ctx, s.ID, out.Last, 1); err != nil {
		return out, err
	} else if len(es) > 0 {
		out.Length = max(out.Length, es[0].At.Sub(s.StartedAt))
	}
	if s.Live() {
		out.Length = max(out.Length, time.Since(s.StartedAt))
	}
	m := marker{began: s.StartedAt, every: 1}
	if s.Resumed > 0 {
		if err := m.resumes(ctx, st, s.ID); err != nil {
			return out, err
		}
	}
	for _, kind := range []store.Kind{store.KindAction, store.KindQuestion, store.KindAttempt, store.KindRollback, store.KindApply} {
		for c, err := range st.Courses(ctx, s.ID, kind) {
			if err == nil {
				err = m.course(c)
			}
			if err != nil {
				return out, fmt.Errorf("cannot tell the course of session %s: %w", s.Name, err)
			}
		}
	}
	out.Marks, out.More = m.all(), m.left
	return out, nil
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

// marker collects marks. Of those that nobody was asked about it keeps every nth once
// there are too many.
type marker struct {
	began         time.Time
	vital, others []api.Mark
	every, seen   int // of others: all of them, and which are kept
	left          int // of others, that aren't kept
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
		Subject      api.Subject     `json:"subject"`
		Closed       string          `json:"closed"`
		Name         string          `json:"name"`
		Address      string          `json:"address"`
		Port         int             `json:"port"`
		Files        int             `json:"files"`
		api.RollbackTarget
	}
	if err := json.Unmarshal(c.Doc, &r); err != nil {
		return fmt.Errorf("cannot decode %s %d: %w", c.Kind, c.Key, err)
	}
	mark := func(at store.Told, kind api.MarkKind, vital bool, text string) {
		m.add(api.Mark{Offset: at.At.Sub(m.began), Seq: at.Seq, Kind: kind, Key: c.Key, Action: r.Action, Text: text}, vital)
	}
	switch c.Kind {
	case store.KindAction:
		r.Action = int(c.Key)
		switch {
		case r.Kind == api.KindEdit:
			mark(c.First, api.MarkEdit, false, r.Title)
		case !r.Housekeeping:
			mark(c.First, api.MarkAction, false, r.Title)
		}
		if r.State == api.ActionDenied {
			mark(c.Last, api.MarkDenied, r.By != "rule", r.Title)
		}
	case store.KindQuestion:
		mark(c.First, api.MarkQuestion, true, r.Title)
		if r.Subject == api.SubjectNested && r.Closed == string(api.AnswerDeny) {
			mark(c.Last, api.MarkDenied, true, r.Title)
		}
	case store.KindAttempt:
		host := r.Name
		if host == "" {
			host = r.Address
		}
		if r.Port != 0 {
			host = fmt.Sprintf("%s:%d", host, r.Port)
		}
		mark(c.First, api.MarkAttempt, false, host)
		if r.Verdict == api.Deny {
			mark(c.First, api.MarkDenied, false, host)
		}
	case store.KindRollback:
		text, _ := r.Words()
		mark(c.First, api.MarkRollback, true, text)
	case store.KindApply:
		mark(c.First, api.MarkApply, true, fmt.Sprintf("%d files", r.Files))
	}
	return nil
}

// resumes adds when the session went on.
func (m *marker) resumes(ctx context.Context, st *store.Store, id string) error {
	events, err := st.Named(ctx, id, store.KindSession, "session.started")
	for _, e := range events {
		var s api.Session
		if err := json.Unmarshal(e.Doc, &s); err != nil {
			return fmt.Errorf("cannot decode event %d: %w", e.Seq, err)
		}
		if s.Resumed > 0 {
			m.add(api.Mark{Offset: e.At.Sub(m.began), Seq: e.Seq, Kind: api.MarkResume, Key: int64(s.Resumed), Text: s.Command}, true)
		}
	}
	return err
}

func (m *marker) add(mark api.Mark, vital bool) {
	mark.Offset, mark.Text = max(0, mark.Offset), api.Trim(mark.Text, textMost)
	if vital {
		m.vital = append(m.vital, mark)
		return
	}
	m.seen++
	if m.seen%m.every != 0 {
		m.left++
		return
	}
	m.others = append(m.others, mark)
	if len(m.others) == marks {
		for i := 1; i < marks; i += 2 {
			m.others[i/2] = m.others[i]
		}
		m.others = m.others[:marks/2]
		m.left += marks / 2
		m.every *= 2
	}
}

// all are the marks in the order of their events.
func (m *marker) all() []api.Mark {
	out := append(m.vital, m.others...)
	slices.SortStableFunc(out, func(a, b api.Mark) int { return int(a.Seq) - int(b.Seq) })
	return out
}
