package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/loop"
	"stepbox/session/network"
	"stepbox/session/rules"
)

// maxRules bounds what is made in one session.
const maxRules = 1000

// AddRule makes a rule, which what waits is judged by again. It is recorded before it
// is put into a file, or holds.
func (s *Session) AddRule(ctx context.Context, r api.Rule) (api.Ruled, error) {
	r, err := rules.Checked(r)
	if err != nil {
		return api.Ruled{}, err
	}
	r.At = time.Now().UTC()
	if err := s.mayKeep(r); err != nil {
		return api.Ruled{}, err
	}
	var out api.Ruled
	out.Session, err = s.changeRules(ctx, func(made []api.Rule) ([]api.Rule, error) {
		all, err := withRules(made, r)
		if err == nil {
			s.enter([]api.Rule{r})
		}
		return all, err
	})
	if err == nil {
		err = s.keep(ctx, r)
	}
	if err == nil {
		out.Beaten = s.beaten(ctx, r)
	}
	return out, err
}

// beaten tells a person of rules that were made and don't hold, as another decides wherever
// they would, and gives the last such other rule.
func (s *Session) beaten(ctx context.Context, made ...api.Rule) (by string) {
	_ = s.loop.Call(ctx, func() { // over, nothing holds
		p, err := s.holding()
		for _, r := range made {
			if err != nil {
				return
			}
			if won := rules.Beaten(p, r, s.cfg.Workspace, s.cfg.Home); won != "" {
				by = api.Escape(won)
				s.note(true, "the rule to %s doesn't hold: %s wins", r.Words(), by)
			}
		}
	})
	return by
}

// withRules are rules with others made. The newest is the first, and so decides.
func withRules(made []api.Rule, more ...api.Rule) ([]api.Rule, error) {
	for _, r := range more {
		same := func(o api.Rule) bool { return r.Same(o) && r.For == o.For }
		made = append([]api.Rule{r}, slices.DeleteFunc(slices.Clone(made), same)...)
	}
	if len(made) > maxRules {
		return nil, api.Problemf(api.CodeBusy, "this session has %d rules already: put some of them into a policy", maxRules)
	}
	return made, nil
}

// RemoveRule takes a rule back from where it is: this session, or the file that For
// names. Without For it is the newest of those that were made in this session.
func (s *Session) RemoveRule(ctx context.Context, r api.Rule) (api.Session, error) {
	found := false
	was := r.For
	if was == "" {
		r.For = api.ExtentSession
	}
	r, err := rules.Checked(r)
	if err != nil {
		return api.Session{}, err
	}
	if was != "" && r.Kept() {
		found = s.sources.Has(r)
	}
	out, err := s.changeRules(ctx, func(made []api.Rule) ([]api.Rule, error) {
		i := slices.IndexFunc(made, func(o api.Rule) bool {
			return r.Same(o) && r.Verdict == o.Verdict && (was == "" || o.For == was || o.For == "" && was == api.ExtentSession)
		})
		if i < 0 {
			if !found {
				return nil, api.Problemf(api.CodeNotFound, "there is no rule to %s", r.Words())
			}
			return made, nil
		}
		r.For = made[i].For
		return slices.Delete(slices.Clone(made), i, i+1), nil
	})
	if err != nil || !r.Kept() {
		return out, err
	}
	err = s.sources.Remove(r)
	if rules.IsNone(err) && !found { // somebody else took it out
		err = nil
	}
	return out, s.reread(ctx, err)
}

// mayKeep says why rules can't be put into the files that they are for.
func (s *Session) mayKeep(made ...api.Rule) error {
	for _, r := range made {
		if !r.Kept() {
			continue
		}
		if s.secrets.Text(r.Command, "") != r.Command { // files of rules are for others to read, too
			return api.Problemf(api.CodeInvalid, "the command has a secret, and no rule in a file may hold it: choose one with * in its place, or a rule for this session")
		}
		if err := s.sources.Check(r); err != nil {
			return api.Problemf(api.CodeInvalid, "%s", api.Escape(err.Error()))
		}
	}
	return nil
}

// enter has rules hold, once they are recorded, until they hold by the files that they
// are put into: what runs next isn't asked about in between.
func (s *Session) enter(made []api.Rule) {
	for _, r := range made {
		if r.Kept() {
			s.entering = append(s.entering, r)
		}
	}
}

// keep puts recorded rules into the files that they are for, and waits until they hold.
func (s *Session) keep(ctx context.Context, made ...api.Rule) error {
	kept := slices.DeleteFunc(slices.Clone(made), func(r api.Rule) bool { return !r.Kept() })
	if len(kept) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // who asked may go away: it is recorded, and so is done
	err := s.reread(ctx, s.sources.Add("answered on "+time.Now().Format(time.DateOnly), kept...))
	_ = s.loop.Call(ctx, func() { // over, nothing is to hold any more
		s.entering = slices.DeleteFunc(s.entering, func(r api.Rule) bool { return slices.Contains(kept, r) })
		s.enforce()
	})
	return err
}

// reread has what is in the files now hold, after one was to be changed.
func (s *Session) reread(ctx context.Context, err error) error {
	if err != nil {
		err = api.Problemf(api.CodeInternal, "it is recorded, but its file wasn't changed: %s", api.Escape(err.Error()))
		_ = s.loop.Call(ctx, func() { s.note(true, "%v", err) }) // over, nobody is to be told
		return err
	}
	state, err := s.sources.Again(ctx)
	if err != nil {
		return err
	}
	return s.loop.Do(ctx, func(done func(error)) { s.adopt(state, done) })
}

// rulesFrom are the rules that an answer is to be made; none for once.
func (s *Session) rulesFrom(q *question, d api.Decision) ([]api.Rule, error) {
	if !d.For.Valid() {
		return nil, api.Problemf(api.CodeUsage, "an answer can't hold for %q: use once, session, project or always", api.Escape(api.Trim(string(d.For), 40)))
	}
	if d.For == "" || d.For == api.ExtentOnce {
		return nil, nil
	}
	r := api.Rule{For: d.For, By: d.By, At: time.Now().UTC()}
	switch d.Answer {
	case api.AnswerApprove, api.AnswerApproveKeep:
		r.Verdict = api.Allow
	case api.AnswerDeny:
		r.Verdict, r.Why = api.Deny, api.Trim(d.Reason, policy.MaxWhy)
	default:
		return nil, api.Problemf(api.CodeUsage, "only approve and deny can be made a rule")
	}
	return q.about.rules(s, q, d, r)
}

// changeRules puts other rules of this session in force once they are in the record.
func (s *Session) changeRules(ctx context.Context, to func([]api.Rule) ([]api.Rule, error)) (api.Session, error) {
	return loop.Ask(ctx, s.loop, func(reply func(api.Session, error)) {
		made, err := to(s.info.Rules)
		if err != nil {
			reply(api.Session{}, err)
			return
		}
		s.info.Rules, s.info.By = made, api.Person(ctx)
		e := s.changed("ruled")
		s.info.By = ""
		s.record(func(err error) {
			if err == nil {
				s.ruled()
			}
			reply(*e.Session, err)
		}, e)
	})
}

// given are the rules of this session's own layer. In step mode, in which a file's rules
// let no connection through, those count that were made here and put into a file, for
// as long as they are in it. Those on what the agent's own program starts aren't the policy's, see shape.
func (s *Session) given() []api.Rule {
	return slices.DeleteFunc(slices.Clone(s.info.Rules), func(r api.Rule) bool {
		return r.Kept() && (s.info.Mode != api.ModeStep || r.Host == "" || !s.read.Says(r)) || r.Itself != ""
	})
}

// holding are all rules of the files and of the record, the session's own on top.
func (s *Session) holding() (*policy.Policy, error) {
	l, err := rules.Layer("this session", s.given())
	l.Origin = policy.Given
	layers := append(s.read.Layers(), append(asked(&s.cfg), l)...)
	for _, r := range s.entering {
		e, lerr := rules.Layer("your policy", []api.Rule{r})
		if r.For == api.ExtentProject {
			e.Name = "the project's policy"
		}
		if r.Host != "" {
			e.Origin = policy.Given
		}
		err, layers = errors.Join(err, lerr), append(layers, e)
	}
	return s.rules.With(layers...), err
}

// enforce has what comes be judged by the rules that are in the record.
func (s *Session) enforce() {
	p, err := s.holding()
	if err != nil { // they were read when they were made
		s.fail(err)
		return
	}
	s.judge.Use(p)
	s.network.Rules(p, s.info.Mode)
	s.limit(p)
}

// ruled puts the rules in force that are in the record, and judges by them what waits.
func (s *Session) ruled() {
	s.enforce()
	if s.box != nil {
		s.box.Recheck()
	}
	s.reconnect()
	s.reweigh()
}

// reconnect judges again what connections wait.
func (s *Session) reconnect() {
	for _, q := range slices.Clone(s.questions) {
		if h := q.tries(); h != nil && q.state == questionOpen {
			s.rejudge(q, h)
		}
	}
}

// rejudge gives a question's connections what the rules say of them now. Once they
// decide what it was about it is closed.
func (s *Session) rejudge(q *question, h *network.Held) {
	if h.Flood() || h.Limit() != "" {
		waited := h.Waiting() > 0 // all of many may have been let through, or refused, now
		if h.Rejudge(s.network.Ruled); h.Waiting() == 0 && (waited || !h.Flood()) {
			s.network.Tries.Drop(h)
			s.withdraw(q)
			return
		}
		s.retold(h)
		return
	}
	v, ok := s.network.Ruling(h.Last)
	if !ok {
		return
	}
	closed := "deny"
	if v.Allow {
		closed = "allow"
	}
	s.closeByRule(q, v.Rule, closed, func() { s.answerTries(h, v, false) })
}

// closeByRule closes a question that the rules answer by now.
func (s *Session) closeByRule(q *question, rule, closed string, then func()) {
	if err := q.to(questionClosed, rule, closed); err != nil {
		s.fail(err)
		return
	}
	s.record(func(err error) {
		s.forget(q)
		if err == nil {
			then()
		}
	}, q.event("closed"), s.changed("counted"))
}

// unkept tells of rules that were recorded, and aren't in their files: it was
// interrupted before they were put there, or a person took them out since.
func (s *Session) unkept() {
	s.info.Rules = slices.DeleteFunc(slices.Clone(s.info.Rules), func(r api.Rule) bool {
		gone := r.Kept() && !s.sources.Has(r)
		if gone {
			s.missing = append(s.missing, fmt.Sprintf("the rule to %s isn't in its file (%s), though it was made here: it doesn't hold", r.Words(), r.For))
		}
		return gone
	})
}
