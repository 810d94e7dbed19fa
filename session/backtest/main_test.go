package backtest

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"stepbox/policy"
	"stepbox/policy/policytest"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/files"
	"stepbox/session/ledger"
	"stepbox/store"
	"stepbox/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// began is when all sessions of these tests begin.
var began = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// writer writes a record of sessions, one after the other.
type writer struct {
	t       testing.TB
	st      *store.Store
	history *files.History
	s       api.Session
	execs   int64
	asked   int64
	tries   int64
	n       int
	pid     int
}

func record(t testing.TB) *writer {
	t.Helper()
	st := storetest.New(t)
	w := &writer{t: t, st: st, history: files.NewHistory(st, func(string) bool { return false })}
	w.begin("one", api.ModePolicy)
	return w
}

// begin begins another session.
func (w *writer) begin(id string, m api.Mode) {
	w.t.Helper()
	w.s = api.Session{ID: id, Name: id, Agent: "generic", Mode: m, State: api.SessionEnded, Folder: "/p", Workspace: "/p", StartedAt: began}
	w.execs, w.asked, w.tries, w.n, w.pid = 0, 0, 0, 0, 1000
	storetest.Begin(w.t, w.st, id, w.s)
	w.add(api.Event{Kind: "session.created", Session: new(w.s)})
}

func (w *writer) add(events ...api.Event) {
	w.t.Helper()
	must.OK(w.t, ledger.Append(w.t.Context(), w.st, w.s.ID, func([]store.Event) error { return nil }, events...))
}

// rules has a person make rules for the session.
func (w *writer) rules(made ...api.Rule) {
	w.s.Rules = slices.Concat(made, w.s.Rules)
	w.add(api.Event{Kind: "session.ruled", Session: new(w.s)})
}

// step is one thing that the agent does.
type step struct {
	line   []string    // a command that begins an action; or
	nested []string    // one that the newest action starts; or
	to     string      // HOST:PORT[/PROTOCOL] that the newest action connects to
	say    api.Answer  // of a person, who is asked; "" asks nobody
	with   int64       // the question that it answers, too
	gone   bool        // it is asked about, and goes away
	by     string      // whose answer; "" is "me"
	result api.Verdict // where nobody is asked; "" is allow
	basis  *api.Basis  // nil: as nothing was odd
	upkeep bool        // it is housekeeping
	more   []step      // starts in the same job
	exec   func(*api.Exec)
}

func (w *writer) exec(argv []string, at step, action int, rule string, v api.Verdict) api.Event {
	w.execs++
	w.pid++
	x := api.Exec{ID: w.execs, Action: action, Pid: w.pid, Parent: 1000, Argv: api.EscapeAll(argv), Program: "/usr/bin/" + argv[0], Cwd: "/p", Verdict: v, Rule: rule, At: w.now(), Basis: at.basis}
	b := api.Basis{}
	if x.Basis != nil {
		b = *x.Basis
	}
	b.Leads = at.nested == nil
	x.Basis = &b
	if at.exec != nil {
		at.exec(&x)
	}
	kind := "exec.allowed"
	if v == api.Deny {
		kind = "exec.denied"
	}
	return api.Event{Kind: kind, Exec: &x}
}

func (w *writer) now() time.Time {
	return began.Add(time.Duration(w.execs+w.tries+w.asked) * time.Second)
}

// do records steps.
func (w *writer) do(steps ...step) {
	w.t.Helper()
	for _, s := range steps {
		if s.by == "" {
			s.by = "me"
		}
		if s.result == "" {
			s.result = api.Allow
		}
		switch {
		case s.line != nil:
			w.command(s)
		case s.nested != nil:
			w.nested(s)
		default:
			w.connect(s)
		}
	}
}

// ask records a question, and its answer.
func (w *writer) ask(q api.Question, s step) (v api.Verdict, rule string) {
	w.asked++
	q.ID, q.HeldAt, q.Action = w.asked, w.now(), w.n
	w.add(api.Event{Kind: "question.opened", Question: new(q)})
	if s.gone {
		q.Closed = "withdrawn"
		w.add(api.Event{Kind: "question.closed", Question: new(q)})
		return "", ""
	}
	v, rule = api.Allow, "approved by "+s.by
	if s.say == api.AnswerDeny {
		v, rule = api.Deny, "denied by "+s.by
	}
	q.Closed, q.ClosedBy = string(v), s.by
	d := api.Decision{Question: q.ID, With: s.with, Answer: s.say, By: s.by, At: w.now(), Action: w.n}
	w.add(api.Event{Kind: "decision", Decision: &d}, api.Event{Kind: "question.closed", Question: new(q)}, api.Event{Kind: "session.counted", Session: new(w.s)})
	return v, rule
}

func shownAs(argv []string) *api.Command {
	return &api.Command{Line: policy.Line(argv), Argv: api.EscapeAll(argv), Cwd: "/p", Program: "/usr/bin/" + argv[0]}
}

func (w *writer) command(s step) {
	w.n++
	v, rule := s.result, "a rule"
	a := api.Action{N: w.n, Kind: api.KindCommand, State: api.ActionHeld, Title: policy.Line(s.line), StartedAt: w.now(), Housekeeping: s.upkeep}
	for _, m := range s.more {
		a.Title += " | " + policy.Line(m.line)
	}
	if s.say != "" || s.gone {
		w.add(api.Event{Kind: "action.held", Action: new(a)})
		if v, rule = w.ask(api.Question{Subject: api.SubjectCommand, Title: a.Title, Rule: "it asks", Command: shownAs(s.line)}, s); v == "" {
			a.State = api.ActionAbandoned
			w.add(api.Event{Kind: "action.abandoned", Action: new(a)})
			return
		}
	}
	kind := "action.released"
	if a.State, a.Verdict, a.Rule = api.ActionRunning, v, rule; v == api.Deny {
		a.State, kind = api.ActionDenied, "action.denied"
	}
	events := []api.Event{{Kind: kind, Action: new(a)}, w.exec(s.line, s, w.n, rule, v)}
	for _, m := range s.more {
		events = append(events, w.exec(m.line, m, w.n, rule, v))
	}
	w.add(events...)
}

func (w *writer) nested(s step) {
	v, rule := s.result, "a rule"
	if s.say != "" || s.gone {
		q := shownAs(s.nested)
		q.Pid = w.pid + 1
		if v, rule = w.ask(api.Question{Subject: api.SubjectNested, Title: q.Line, Rule: "it asks", Command: q}, s); v == "" {
			return
		}
	}
	w.add(w.exec(s.nested, s, w.n, rule, v))
}

func (w *writer) connect(s step) {
	d, err := policy.ParseHost(s.to)
	must.OK(w.t, err)
	w.tries++
	a := api.Attempt{ID: w.tries, At: w.now(), Action: w.n, Pid: w.pid, Program: "/usr/bin/curl", Protocol: string(d.Protocol), Name: d.Name, Port: d.First, Open: true, Verdict: api.Ask}
	w.add(api.Event{Kind: "attempt.opened", Attempt: new(a)})
	a.Verdict, a.Rule, a.Open = s.result, "a rule", false
	if s.say != "" || s.gone {
		if a.Verdict, a.Rule = w.ask(api.Question{Subject: api.SubjectConnection, Title: "connect to " + s.to, Connection: &api.Connection{Host: d.Name, Port: d.First, Protocol: a.Protocol, Rule: s.to, Program: a.Program}}, s); s.gone {
			a.Verdict, a.Rule = api.Deny, unanswered
		}
	}
	w.add(api.Event{Kind: "attempt.closed", Attempt: new(a)})
}

func argv(line ...string) []string { return line }

// tester judges the record of a writer: by no rules but the built-in now, and by those
// of a text.
// tester tries rules of a person's in front of their own, which ask about a push.
func (w *writer) tester(with string) *Backtester {
	own, err := policytest.ParseLayer("yours", "", []byte("commands: [{ask: git push}]"))
	must.OK(w.t, err)
	return &Backtester{
		History: &w.history.History, Home: "/home/me",
		Layers: func(string) (Layers, error) { return Layers{User: own}, nil },
		Load: func(name, file string) (policy.Layer, error) {
			l, err := policytest.ParseLayer(name, file, []byte(with))
			l.Rules = append(l.Rules, own.Rules...)
			return l, err
		},
	}
}

func (w *writer) try(with string) api.PolicyTried {
	w.t.Helper()
	out, err := w.tester(with).Try(w.t.Context(), api.PolicyTry{File: "/new.yaml"}, func(api.PastSeen) {})
	must.OK(w.t, err)
	return out
}
