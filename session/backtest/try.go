package backtest

import (
	"context"
	"fmt"
	"slices"

	"stepbox/policy"
	"stepbox/session/api"
)

// Try has the rules of a file judge what recorded sessions did, beside those that are in
// force, and tells how far it is.
func (b *Backtester) Try(ctx context.Context, r api.PolicyTry, tell func(api.PastSeen)) (api.PolicyTried, error) {
	t := trial{ids: make(map[string]int)}
	place, err := b.tried(r)
	if err != nil {
		return t.out, err
	}
	err = b.walk(ctx, r.PastOf, tell, func(s *api.Session, now Layers) func(*Deed) error {
		t.now, t.with = NewWorld(b.Home, b.profiles(), now.all()...), NewWorld(b.Home, b.profiles(), place(now).all()...)
		t.session = s
		t.out.Sessions++
		return t.deed
	})
	return t.result(), err
}

// tried gives the rules as they are with the file in its place.
func (b *Backtester) tried(r api.PolicyTry) (func(Layers) Layers, error) {
	if r.File == "" {
		return func(l Layers) Layers { return l }, nil
	}
	name := "your policy"
	switch r.As {
	case "", api.ExtentAlways:
	case api.ExtentProject:
		name = "the project's policy"
	default:
		return nil, api.Problemf(api.CodeUsage, "a file of rules stands in the place of always (your own) or project, not of %q", api.Escape(string(r.As)))
	}
	l, err := b.Load(name, r.File)
	if err != nil {
		return nil, api.Problemf(api.CodeInvalid, "%s", api.Escape(err.Error()))
	}
	return func(now Layers) Layers {
		if r.As == api.ExtentProject {
			now.Project = l
		} else {
			now.User = l
		}
		return now
	}, nil
}

// trial is what was found so far.
type trial struct {
	out       api.PolicyTried
	now, with *World
	session   *api.Session
	groups    []*group
	ids       map[string]int // of groups, by what is alike in them
}

// class is a list of what is found.
type class int

const (
	letThrough class = iota
	asks
	stopped
	saved
	cantTell
)

func (c class) of(t *api.PolicyTried) *[]api.PolicyChange {
	return []*[]api.PolicyChange{&t.LetThrough, &t.Asked, &t.Stopped, &t.Saved, &t.Unknown}[c]
}

// group is what is alike.
type group struct {
	class class
	api.PolicyChange
	last string // session
}

// maxGroups are kept; what is beyond them is counted.
const maxGroups = 5000

// deed judges one thing by both.
func (t *trial) deed(d *Deed) error {
	switch d.Kind {
	case Edited:
		t.out.Edits++
		t.out.Step.Edits++
		return nil
	case Asked:
		t.asked(d.About)
		return nil
	}
	now, err := t.now.Says(d)
	if err != nil {
		return err
	}
	with, err := t.with.Says(d)
	if err != nil || d.Upkeep && d.Kind == Began {
		return err
	}
	t.count(d, now, with)
	if d.Denied() && with.Verdict == policy.Allow {
		if now.Verdict == policy.Allow {
			t.out.AsNow++
		} else {
			t.out.Denied++
		}
	}
	if c, ok := listOf(d, now, with); ok {
		t.put(d, now, with, c)
	}
	return nil
}

// asked counts a question that was asked.
func (t *trial) asked(about api.Subject) {
	switch about {
	case api.SubjectEdit:
		t.out.Then.Edits++
	case api.SubjectConnection:
		t.out.Then.Connections++
	default:
		t.out.Then.Commands++
	}
}

// listOf says in which list a deed belongs of which the two say something else. It is in
// none where a question about it is answered by another, or where what it is part of is in one.
func listOf(d *Deed, now, with Says) (class, bool) {
	switch {
	case with.Verdict == Unknown:
		return cantTell, now.Verdict != Unknown || now.Rule != with.Rule
	case now.Verdict == with.Verdict:
		return 0, false
	case with.Verdict == policy.Ask:
		return asks, !with.Again
	case with.Verdict == policy.Deny:
		return stopped, !with.Within
	}
	waited := d.Verdict == api.Ask && d.Question != 0
	if now.Verdict == policy.Deny && !with.Within || d.Denied() || waited {
		return letThrough, true
	}
	return saved, now.Verdict == policy.Ask && !now.Again
}

// count counts what there is, and the questions about it.
func (t *trial) count(d *Deed, now, with Says) {
	switch d.Kind {
	case Connected:
		t.out.Connections++
	case Began:
		t.out.Commands++
	default:
		t.out.Programs++
	}
	for _, c := range []struct {
		to *api.QuestionCount
		s  Says
	}{{&t.out.Now, now}, {&t.out.With, with}} {
		if !c.s.Again {
			add(c.to, d.Kind, c.s.Verdict)
		}
	}
	if with.Stepped {
		add(&t.out.Step, d.Kind, policy.Ask)
	}
}

func add(c *api.QuestionCount, k Kind, v policy.Verdict) {
	switch {
	case v == Unknown:
		c.Unknown++
	case v != policy.Ask:
	case k == Connected:
		c.Connections++
	default:
		c.Commands++
	}
}

// put notes a difference, beside those that are like it.
func (t *trial) put(d *Deed, now, with Says, c class) {
	what := api.Trim(d.Title, maxTitle)
	key := fmt.Sprintf("%d\x00%s\x00%s\x00%s %s\x00%s %s\x00%v", c, d.Kind, what, now.Verdict, now.From(), with.Verdict, with.From(), d.Denied())
	i, known := t.ids[key]
	if !known {
		if len(t.groups) >= maxGroups {
			t.out.More++
			return
		}
		i = len(t.groups)
		t.ids[key] = i
		t.groups = append(t.groups, &group{class: c, PolicyChange: api.PolicyChange{Kind: string(d.Kind), What: api.Escape(what), Now: told(now), With: told(with)}})
	}
	g := t.groups[i]
	if g.Times++; g.last != t.session.ID {
		g.Sessions++
		g.last = t.session.ID
	}
	switch {
	case d.Denied():
		g.Denied++
	case d.Approved():
		g.Approved++
	case d.Question != 0 && d.Verdict == api.Ask:
		g.Waited++
	}
	if d.At.After(g.Newest.At) {
		g.Newest = pastOf(d)
		if d.By != "" {
			g.By = d.By
		}
	}
}

// maxTitle bounds what is told of one command, in bytes.
const maxTitle = 500

func pastOf(d *Deed) api.Past {
	return api.Past{Session: d.Session.ID, Name: d.Session.Name, Action: d.Action, Moment: api.MomentOf(max(d.Seq, 1)), At: d.At}
}

func told(s Says) api.PolicySays {
	return api.PolicySays{Verdict: api.Verdict(s.Verdict), Ruling: api.Ruling{Rule: api.Escape(s.Rule), Layer: api.Escape(s.Layer), File: api.Escape(s.File), Line: s.Line}}
}

// result sorts what was found: what a person denied first, then the most frequent.
func (t *trial) result() api.PolicyTried {
	for _, g := range t.groups {
		to := g.class.of(&t.out)
		*to = append(*to, g.PolicyChange)
	}
	for _, l := range [][]api.PolicyChange{t.out.LetThrough, t.out.Asked, t.out.Stopped, t.out.Saved, t.out.Unknown} {
		slices.SortStableFunc(l, func(a, b api.PolicyChange) int {
			if a.Denied != b.Denied {
				return b.Denied - a.Denied
			}
			return b.Times - a.Times
		})
	}
	return t.out
}
