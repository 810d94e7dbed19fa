package session

import (
	"context"

	"stepbox/session/api"
	"stepbox/session/loop"
	"stepbox/session/rules"
	"stepbox/store"
)

// offerAfter is how often the same was answered the same, each time for once, before a
// question offers to make that a rule.
const offerAfter = 3

// habit is an answer to what was asked.
type habit struct {
	subject api.Subject
	what    string
	answer  api.Answer
}

// habits count a person's answers for once in a folder. They are owned by the session's
// loop.
type habits struct {
	loaded, loading bool
	times           map[habit]int
}

// habitOf is an answer to a question as it is counted; none of those that aren't. Whether
// more may be used than a limit says is never a rule's. One that answers several questions
// is counted with the first.
func habitOf(q *api.Question, d *api.Decision) (h habit, ok bool) {
	if q.Subject == api.SubjectLimit || q.Subject == api.SubjectRequest || q.Subject == api.SubjectCall || q.Connection != nil && q.Connection.Limit != "" {
		return h, false
	}
	if d.Answer != api.AnswerApprove && d.Answer != api.AnswerDeny || d.With != 0 || d.For != "" && d.For != api.ExtentOnce {
		return h, false
	}
	h = habit{q.Subject, q.Title, d.Answer}
	if q.Connection != nil {
		h.what = q.Connection.Rule // "" of many
	}
	return h, h.what != "" && q.Subject != api.SubjectEdit
}

// answered counts an answer.
func (h *habits) answered(q *api.Question, d *api.Decision) {
	if of, ok := habitOf(q, d); ok {
		if h.times == nil {
			h.times = make(map[habit]int)
		}
		h.times[of]++
	}
}

// offer is what a question offers by itself; nil: nothing.
func (h *habits) offer(q *api.Question) *api.Offer {
	for _, a := range []api.Answer{api.AnswerApprove, api.AnswerDeny} {
		of, ok := habitOf(q, &api.Decision{Answer: a})
		if n := h.times[of]; ok && n >= offerAfter {
			return &api.Offer{Answer: a, Times: n}
		}
	}
	return nil
}

// offered has a question offer to be a rule, if it was answered the same before. The
// first of all has the record looked at, for the sessions of this folder.
func (s *Session) offered(q *question) {
	switch h := &s.habits; {
	case h.loaded:
		q.Offer = h.offer(&q.Question)
		s.offeredRule(q)
	case !h.loading:
		h.loading = true
		own := s.asked // this one, and those that come, are counted as they are answered
		s.loop.Aside(func() func() {
			times, err := s.pastHabits(own)
			return func() {
				if err != nil {
					s.log.Warn("earlier answers can't be read", "error", err)
				}
				for of, n := range h.times {
					times[of] += n
				}
				h.loaded, h.times = true, times
				for _, q := range s.questions {
					if q.Offer = h.offer(&q.Question); q.Offer != nil && q.state == questionOpen && s.loop.Now() == loop.Running {
						s.offeredRule(q)
						s.record(nil, q.event("changed"))
					}
				}
			}
		})
	}
}

// pastHabits counts the answers that are recorded, of this session those to questions
// before one.
func (s *Session) pastHabits(before int64) (map[habit]int, error) {
	times := make(map[habit]int)
	decided := make(map[string]map[int64]api.Decision)
	ctx := context.Background() // it is bounded
	err := newest(ctx, s, store.KindDecision, func(id string, d api.Decision) {
		if decided[id] == nil {
			decided[id] = make(map[int64]api.Decision)
		}
		decided[id][d.Question] = d
	})
	if err != nil {
		return times, err
	}
	return times, newest(ctx, s, store.KindQuestion, func(id string, q api.Question) {
		d, ok := decided[id][q.ID]
		if of, counts := habitOf(&q, &d); ok && counts && (id != s.cfg.ID || q.ID < before) {
			times[of]++
		}
	})
}

// offeredRule fills in what an offer would make, where that is one rule.
func (s *Session) offeredRule(q *question) {
	if q.Offer == nil {
		return
	}
	all := []api.Proposal{{Means: "exactly what is asked about"}}
	if h := q.tries(); h != nil {
		all = rules.Hosts(h.Key.To)
	} else if found := s.propose(q.execs, false); len(found) > 0 && len(q.execs) == 1 && len(s.parts(q.execs[0])) == 1 {
		all = found
	}
	q.Offer.Pattern, q.Offer.Means = all[0].Pattern, all[0].Means
}
