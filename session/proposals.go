package session

import (
	"context"
	"net/netip"
	"slices"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/judge"
	"stepbox/session/ledger"
	"stepbox/session/rules"
	"stepbox/store"
)

// Bounds on what is looked at of the past of a folder.
const (
	pastSessions = 20
	pastRows     = 500 // of a kind in each
	maxExamples  = 5
	maxProposals = 12
)

// Proposals are the rules that a question's answer may be made, from narrow to wide, with
// what each would have been about in this folder's sessions.
func (s *Session) Proposals(ctx context.Context, id int64) ([]api.Proposal, error) {
	var execs []*judge.Exec
	var to *policy.Destination
	var others []*question
	shape := false
	err := s.loop.Do(ctx, func(done func(error)) {
		i := slices.IndexFunc(s.questions, func(q *question) bool { return q.ID == id })
		if i < 0 {
			done(api.Problemf(api.CodeNotFound, "there is no question %d that waits", id))
			return
		}
		q := s.questions[i]
		if h := q.tries(); h != nil && !h.Flood() {
			to = &h.Key.To
		}
		execs = slices.Clone(q.execs)
		shape = s.info.Mode == api.ModeStep && q.shape()
		others = s.besides(id)
		done(nil)
	})
	if err != nil {
		return nil, err
	}
	out := []api.Proposal{}
	if to != nil {
		out = rules.Hosts(*to)
		err = s.matchedHosts(ctx, out)
	} else if out = append(out, s.propose(execs, shape)...); len(out) > 0 {
		err = s.matchedCommands(ctx, out)
	}
	for i := range out {
		s.letsGo(&out[i], to != nil, execs, others)
	}
	return out, err
}

// besides are copies of the other questions that a rule may answer: in step mode none does
// that allows.
func (s *Session) besides(id int64) (out []*question) {
	for _, q := range s.questions {
		h := q.tries()
		if q.ID != id && q.state == questionOpen && s.info.Mode != api.ModeStep && (h != nil && !h.Flood() && h.Key.Limit == "" || len(q.execs) > 0) {
			out = append(out, &question{Question: api.Question{ID: q.ID}, about: q.about, execs: slices.Clone(q.execs)})
		}
	}
	return out
}

// letsGo says of a proposal what else would run at once, were it the answer.
func (s *Session) letsGo(p *api.Proposal, host bool, execs []*judge.Exec, others []*question) {
	r := api.Rule{Verdict: api.Allow, Command: p.Pattern}
	if host {
		r = api.Rule{Verdict: api.Allow, Host: p.Pattern}
	}
	l, err := rules.Layer("the rule", []api.Rule{r})
	if err != nil {
		return // it is refused as an answer, too
	}
	with := s.judge.Policy().With(l)
	for _, x := range execs {
		for _, part := range s.judge.By(x, with).Parts {
			if part.Verdict == policy.Ask {
				p.Once = append(p.Once, api.Escape(part.Text))
			}
		}
	}
	for _, q := range others {
		allowed := func(x *judge.Exec) bool { return s.judge.By(x, with).Verdict == policy.Allow }
		h := q.tries()
		if h == nil && !slices.ContainsFunc(q.execs, func(x *judge.Exec) bool { return !allowed(x) }) ||
			h != nil && with.Connect(h.Key.To, h.Key.Program).Verdict == policy.Allow {
			p.Waiting = append(p.Waiting, q.ID)
		}
	}
}

// propose are the rules on what is asked about in some programs, or on the shape of one.
func (s *Session) propose(execs []*judge.Exec, shape bool) (out []api.Proposal) {
	if shape && len(execs) == 1 {
		argv := execs[0].Argv
		return slices.DeleteFunc(rules.Commands(argv), func(p api.Proposal) bool { return !rules.Shapes(p.Pattern, argv) })
	}
	for _, x := range execs {
		for _, p := range s.parts(x) {
			for _, words := range p.Readings() {
				found := false
				for _, c := range rules.Commands(words) {
					r := api.Rule{Verdict: api.Allow, Command: c.Pattern}
					if len(out) >= maxProposals || !s.decides(x, p, r) {
						continue
					}
					found = true
					if !slices.ContainsFunc(out, func(o api.Proposal) bool { return o.Pattern == c.Pattern }) {
						out = append(out, c)
					}
				}
				if found {
					break // else it is a wrapper of what is asked about
				}
			}
		}
	}
	return out
}

// here are the newest sessions of this folder.
func (s *Session) here(ctx context.Context) ([]api.Session, error) {
	all, err := s.Reader().Sessions(ctx)
	if len(all) == 0 && err != nil {
		return nil, err // else some can be read, and these will do
	}
	all = slices.DeleteFunc(all, func(o api.Session) bool { return o.Folder != s.cfg.Workspace })
	return all[:min(len(all), pastSessions)], nil
}

// newest reads a folder's newest resources of a kind, the newest first.
func newest[T any](ctx context.Context, s *Session, kind store.Kind, each func(id string, v T)) error {
	all, err := s.here(ctx)
	if err != nil {
		return err
	}
	for _, o := range all {
		rows, err := ledger.Newest[T](ctx, s.store, o.ID, kind, pastRows)
		if err != nil {
			return err
		}
		for _, v := range slices.Backward(rows) {
			each(o.ID, v)
		}
	}
	return nil
}

// matched counts what a proposal would have been about.
func matched(p *api.Proposal, what string, denied bool) {
	p.Matched++
	if denied {
		p.Denied++
	}
	if len(p.Examples) < maxExamples && !slices.Contains(p.Examples, what) {
		p.Examples = append(p.Examples, what)
	}
}

func (s *Session) matchedCommands(ctx context.Context, out []api.Proposal) error {
	about := make([]func(string) bool, len(out))
	for i, p := range out {
		var err error
		if about[i], err = rules.About(p.Pattern); err != nil {
			return err
		}
	}
	return newest(ctx, s, store.KindAction, func(_ string, a api.Action) {
		if a.Kind != api.KindCommand || a.Housekeeping || !a.Judged() || ctx.Err() != nil {
			return
		}
		for i := range out {
			if about[i](a.Title) {
				matched(&out[i], api.Trim(a.Title, 200), a.State == api.ActionDenied && a.By != "rule")
			}
		}
	})
}

func (s *Session) matchedHosts(ctx context.Context, out []api.Proposal) error {
	hosts := make([]policy.HostRule, len(out))
	for i, p := range out {
		var err error
		if hosts[i], err = policy.ParseHost(p.Pattern); err != nil {
			return err
		}
	}
	return newest(ctx, s, store.KindAttempt, func(_ string, a api.Attempt) {
		if a.Verdict == api.Ask {
			return // it waits
		}
		d := policy.Destination{Name: a.Name, Port: a.Port, Protocol: policy.Protocol(a.Protocol)}
		if d.Name == "" {
			d.Addr, _ = netip.ParseAddr(a.Address) // of none it is about nothing
		}
		for i := range out {
			if hosts[i].Match(d) {
				matched(&out[i], api.Escape(d.String()), a.DeniedByPerson())
			}
		}
	})
}
