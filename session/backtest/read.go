package backtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/ledger"
	"stepbox/store"
)

// Read yields what a session did, in the order in which it was recorded, until yield
// says that it has enough.
func Read(ctx context.Context, h *ledger.History, ps *policy.Profiles, id string, yield func(*Deed) bool) error {
	s, err := h.Session(ctx, id)
	if err != nil {
		return err
	}
	r := &reader{
		session: &s, profile: cmp.Or(ps.Named(s.Agent), ps.Named("")), profiles: ps, yield: yield,
		actions: make(map[int]*past), roots: make(map[int]*policy.Profile), questions: make(map[int64]*asked),
		held: make(map[string]*asked), open: make(map[int64]*Deed),
	}
	for e, err := range h.Recorded(ctx, id, 0, kinds...) {
		if err != nil {
			return fmt.Errorf("cannot go through session %s: %w", id, err)
		}
		if r.event(e); r.over {
			return nil
		}
	}
	r.end()
	return nil
}

// kinds are those of the events that tell of deeds.
var kinds = []string{string(store.KindSession), string(store.KindAction), string(store.KindQuestion), string(store.KindDecision), string(store.KindExec), string(store.KindAttempt)}

// Bounds on what is kept of one session. What is beyond them counts as never asked.
const (
	maxOpen  = 1 << 16 // actions, open connections
	maxHeld  = 1 << 12 // destinations that were asked about
	maxRoots = 1 << 12
)

// reader goes through the events of a session.
type reader struct {
	session  *api.Session
	profile  *policy.Profile // of the session's agent
	profiles *policy.Profiles
	yield    func(*Deed) bool
	over     bool // it has enough

	actions   map[int]*past           // that haven't ended
	roots     map[int]*policy.Profile // pids of agents' and shells' own processes
	questions map[int64]*asked        // that aren't closed, or whose deed hasn't come yet
	held      map[string]*asked       // on connections, by program and destination
	open      map[int64]*Deed         // connections, by number
	forming   *Deed                   // an action's start, whose programs come one by one
}

// past is an action so far.
type past struct {
	api.Action
	begun bool
}

// asked is a question so far.
type asked struct {
	api.Question
	session *api.Session // as it stood when it was asked
	answer  api.Answer
	by      string
	with    int64
	nobody  bool // was there: it was denied
	closed  time.Time
}

// flood says whether it is about many destinations at once.
func (q *asked) flood() bool { return q.Connection != nil && len(q.Connection.Many) > 0 }

// held says whether something that was tried then, to a destination that a flood lists,
// waited for its answer.
func (q *asked) held(tried time.Time) bool {
	return q.flood() && (q.Open() || !tried.After(q.closed))
}

func (r *reader) tell(d *Deed) {
	if !r.over {
		r.over = !r.yield(d)
	}
}

// formed tells of an action's start once all of its programs have come.
func (r *reader) formed() {
	if d := r.forming; d != nil {
		r.forming = nil
		r.tell(d)
	}
}

// end is after the last event.
func (r *reader) end() {
	r.formed()
	var left []*Deed
	for _, d := range r.open {
		left = append(left, d)
	}
	slices.SortFunc(left, func(a, b *Deed) int { return int(a.Seq) - int(b.Seq) })
	for _, d := range left {
		r.tell(d)
	}
	var waited []*asked
	for _, q := range r.questions {
		if q.answer == "" && q.Connection == nil {
			waited = append(waited, q)
		}
	}
	slices.SortFunc(waited, func(a, b *asked) int { return int(a.ID - b.ID) })
	for _, q := range waited {
		r.waited(0, q)
	}
}

func (r *reader) event(e api.Event) {
	if e.Exec == nil || r.forming == nil || e.Exec.Action != r.forming.Action {
		r.formed()
	}
	switch {
	case e.Session != nil:
		s := *e.Session
		r.session = &s
	case e.Action != nil && e.Action.Kind == api.KindCall, e.Question != nil && e.Question.Subject == api.SubjectCall: // no rule is about those
	case e.Action != nil:
		r.action(e)
	case e.Question != nil:
		r.question(e)
	case e.Decision != nil:
		if q := r.questions[e.Decision.Question]; q != nil && e.Decision.By == api.Nobody {
			q.nobody = true
		} else if q != nil {
			q.answer, q.by, q.with = e.Decision.Answer, e.Decision.By, e.Decision.With
		}
	case e.Exec != nil:
		r.exec(e)
	case e.Attempt != nil:
		r.attempt(e)
	}
}

func (r *reader) action(e api.Event) {
	a := e.Action
	p := r.actions[a.N]
	if p == nil {
		if len(r.actions) >= maxOpen {
			clear(r.actions) // it has more than ever live at once
		}
		p = &past{}
		r.actions[a.N] = p
		if a.Kind == api.KindEdit {
			d := r.deed(e.Seq, Edited, a.N)
			d.At, d.Title = a.StartedAt, a.Title
			r.tell(d)
		}
	}
	p.Action = *a
	if a.State == api.ActionAbandoned || a.State == api.ActionEnded && a.LeftRunning == 0 && a.Kind == api.KindCommand {
		delete(r.actions, a.N)
	}
}

func (r *reader) question(e api.Event) {
	q := e.Question
	known := r.questions[q.ID]
	if known == nil {
		known = &asked{session: r.session}
		r.questions[q.ID] = known
		d := r.deed(e.Seq, Asked, q.Action)
		d.At, d.Title, d.Question, d.About = q.HeldAt, q.Title, q.ID, q.Subject
		r.tell(d)
	}
	if known.Question = *q; !q.Open() {
		known.closed = e.At
	}
	if c := q.Connection; c != nil {
		if len(r.held) >= maxHeld {
			clear(r.held)
		}
		r.held[c.Program+" "+c.Rule] = known
		for _, to := range c.Many {
			r.held[" "+to] = known
		}
	}
	switch {
	case q.Open():
	case q.Connection != nil, q.Subject == api.SubjectEdit:
		delete(r.questions, q.ID)
	case q.Closed == "withdrawn":
		delete(r.questions, q.ID)
		r.waited(e.Seq, known)
	}
}

// waited is a command that nobody answered before it went away.
func (r *reader) waited(seq uint64, q *asked) {
	if q.Command == nil {
		return
	}
	d := r.deed(seq, kindOf(q), q.Action)
	d.At, d.Title, d.Question, d.Verdict, d.Rule = q.HeldAt, q.Title, q.ID, api.Ask, q.Rule
	d.Starts = shownStarts(q.Command, r.profile)
	r.tell(d)
}

func kindOf(q *asked) Kind {
	switch {
	case q.Subject == api.SubjectCommand:
		return Began
	case strings.HasPrefix(q.Rule, joins):
		return Joined
	}
	return Nested
}

// joins begins the reason of a program that joins an action which runs.
const joins = "it joins action "

func (r *reader) deed(seq uint64, k Kind, action int) *Deed {
	return &Deed{Session: r.session, Seq: seq, Kind: k, Action: action}
}

// exec is a program start that was let through or refused.
func (r *reader) exec(e api.Event) {
	x := e.Exec
	s := startOf(x, r.agentOf(x))
	if x.Action == 0 || e.Kind != "exec.allowed" && e.Kind != "exec.denied" {
		return
	}
	a := r.actions[x.Action]
	switch {
	case r.member(x):
		r.forming.Starts = append(r.forming.Starts, s)
	case a != nil && !a.begun:
		a.begun = true
		r.begins(e, a, s)
	default:
		r.formed()
		r.within(e, a, s)
	}
}

// agentOf is the profile of the agent that a program start is of, which is remembered of
// agents' and shells' own processes.
func (r *reader) agentOf(x *api.Exec) *policy.Profile {
	profile := cmp.Or(r.roots[x.Parent], r.roots[x.Pid], r.profile)
	agent := r.profiles.For(x.Argv, x.Program)
	if x.Action != 0 && !agent.Agent() {
		return profile
	}
	if len(r.roots) >= maxRoots {
		clear(r.roots)
	}
	if r.roots[x.Pid] = profile; agent.Agent() {
		r.roots[x.Pid] = agent
	}
	return profile
}

// within is a program that an action starts which runs, or that joins it.
func (r *reader) within(e api.Event, a *past, s Start) {
	x := e.Exec
	d := r.deed(e.Seq, Nested, x.Action)
	d.At, d.Verdict, d.Rule, d.Title = x.At, x.Verdict, x.Rule, policy.Line(x.Argv)
	d.Starts = []Start{s}
	d.Upkeep = a != nil && a.Housekeeping
	if strings.HasPrefix(x.Rule, joins) {
		d.Kind = Joined
	}
	q := r.closed(func(q *asked) bool {
		return q.Subject == api.SubjectNested && q.Action == x.Action && q.Command != nil && q.Command.Pid == x.Pid && !q.Open()
	})
	if q != nil {
		d.Kind = kindOf(q)
		r.answered(d, q)
	}
	r.tell(d)
}

// closed takes the question out that something was asked by; nil where none was.
func (r *reader) closed(is func(*asked) bool) *asked {
	for id, q := range r.questions {
		if is(q) {
			delete(r.questions, id)
			return q
		}
	}
	return nil
}

// member says whether a program starts together with the one before it.
func (r *reader) member(x *api.Exec) bool {
	d := r.forming
	return d != nil && x.Rule == d.Rule && (x.Verdict == api.Deny || x.Basis != nil && x.Basis.Leads)
}

// begins is the first program of an action.
func (r *reader) begins(e api.Event, a *past, first Start) {
	x := e.Exec
	d := r.deed(e.Seq, Began, a.N)
	d.At, d.Verdict, d.Rule, d.Title = x.At, x.Verdict, x.Rule, a.Title
	d.Starts, d.Upkeep = []Start{first}, a.Housekeeping
	if q := r.closed(func(q *asked) bool { return q.Subject == api.SubjectCommand && q.Action == a.N }); q != nil {
		r.answered(d, q)
	}
	r.forming = d
	if a.State == api.ActionDenied {
		delete(r.actions, a.N)
	}
}
