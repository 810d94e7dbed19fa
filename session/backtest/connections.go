package backtest

import (
	"net/netip"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/rules"
)

// judged are the protocols that rules are about.
var judged = []string{string(policy.TCP), string(policy.UDP), string(policy.ICMP)}

// unanswered is what an attempt's rule says when its program gave up.
const unanswered = "nobody had answered"

// attempt is a connection as far as it went.
func (r *reader) attempt(e api.Event) {
	a := e.Attempt
	if !slices.Contains(judged, a.Protocol) {
		return
	}
	to := policy.Destination{Name: a.Name, Port: a.Port, Protocol: policy.Protocol(a.Protocol)}
	to.Addr, _ = netip.ParseAddr(a.Address)
	d := r.open[a.ID]
	q := r.asked(a.Program, place(to))
	if d == nil {
		d = r.deed(e.Seq, Connected, a.Action)
		d.At, d.Pid, d.Program = a.At, a.Pid, a.Program
		d.To = to
		if q != nil && q.Open() {
			d.Question = q.ID
		}
		if len(r.open) < maxOpen {
			r.open[a.ID] = d
		}
	}
	if d.Action == 0 {
		d.Action = a.Action
	}
	d.Verdict, d.Rule, d.Title = a.Verdict, a.Rule, "connect to "+place(d.To)
	if a.Open {
		return
	}
	delete(r.open, a.ID)
	if q != nil && (d.Question == q.ID || !q.HeldAt.Before(d.At) || q.held(d.At) || q.answer != "" && strings.HasSuffix(a.Rule, " by "+q.by)) {
		r.answered(d, q)
	}
	if a.Rule == unanswered {
		d.Verdict = api.Ask
	}
	r.tell(d)
}

// asked is the newest question about connections of a program to a place.
func (r *reader) asked(program, to string) *asked {
	if q := r.held[program+" "+to]; q != nil {
		return q
	}
	return r.held[" "+to]
}

// answered tells of a deed what a person said to its question, or by a rule that they
// made while it waited.
func (r *reader) answered(d *Deed, q *asked) {
	d.Question, d.Answer, d.By, d.With = q.ID, q.answer, q.by, q.with
	d.Flood = q.flood()
	if d.Kind != Connected {
		d.Session = q.session // its answer may have been made a rule
	}
	if q.nobody {
		d.Verdict = api.Ask
	}
	if d.Answer != "" || d.Verdict == api.Ask {
		return
	}
	for _, made := range r.session.Rules {
		if made.At.Before(q.HeldAt) || made.Verdict != d.Verdict || !d.decidedBy(made) {
			continue
		}
		d.Answer, d.By = api.AnswerApprove, made.By
		if made.Verdict == api.Deny {
			d.Answer = api.AnswerDeny
		}
		return
	}
}

// decidedBy says whether a rule is about a deed.
func (d *Deed) decidedBy(r api.Rule) bool {
	l, err := rules.Layer(theRule, []api.Rule{r})
	if err != nil {
		return false
	}
	none := &policy.Policy{}
	p := none.With(l)
	if d.Kind == Connected {
		return p.Connect(d.To, d.Program).Layer == theRule
	}
	return slices.ContainsFunc(d.Starts, func(s Start) bool {
		j := s.start(p, d.Session.Folder, "")
		return j.Layer == theRule || slices.ContainsFunc(j.Parts, func(p policy.Part) bool { return p.Layer == theRule })
	})
}

// theRule is the layer of a rule that is looked at alone.
const theRule = "the rule"

// place is a destination as a question names it; one without an address is none.
func place(d policy.Destination) string {
	if d.Name == "" && !d.Addr.IsValid() {
		return "nowhere"
	}
	return api.Escape(d.String())
}
