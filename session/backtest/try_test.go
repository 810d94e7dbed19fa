package backtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
)

// changed says a result in a few words.
func changed(t api.PolicyTried) string {
	var out []string
	for _, l := range []struct {
		name string
		list []api.PolicyChange
	}{{"through", t.LetThrough}, {"asks", t.Asked}, {"stops", t.Stopped}, {"saves", t.Saved}, {"unknown", t.Unknown}} {
		for _, p := range l.list {
			out = append(out, fmt.Sprintf("%s %d %s", l.name, p.Times, p.What))
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

func TestTry(t *testing.T) {
	push := argv("git", "push", "origin", "main")
	for name, c := range map[string]struct {
		steps  []step
		with   string
		want   string
		denied int
	}{
		"a question saved":              {[]step{{line: push, say: api.AnswerApprove}, {line: push, say: api.AnswerApprove}}, "commands: [{allow: git push origin main}]", "saves 2 git push origin main", 0},
		"a denial let through":          {[]step{{line: push, say: api.AnswerDeny}}, "commands: [{allow: git push **}]", "through 1 git push origin main", 1},
		"a new question":                {[]step{{line: argv("make")}}, "commands: [{ask: make}]", "asks 1 make", 0},
		"a new denial":                  {[]step{{line: argv("make")}}, "commands: [{deny: make}]", "stops 1 make", 0},
		"a question becomes a denial":   {[]step{{line: push, say: api.AnswerApprove}}, "commands: [{deny: git push}]", "stops 1 git push origin main", 0},
		"nothing said":                  {[]step{{line: push, say: api.AnswerApprove}, {line: argv("make")}, {to: "example.org:443", say: api.AnswerDeny}}, "commands: []", "", 0},
		"the same said again":           {[]step{{line: push, say: api.AnswerDeny}}, "commands: [{ask: git push}]", "", 0},
		"it went away unanswered":       {[]step{{line: push, gone: true}}, "commands: [{allow: git push **}]", "through 1 git push origin main", 0},
		"nobody was there":              {[]step{{line: push, say: api.AnswerDeny, by: api.Nobody}}, "commands: [{allow: git push **}]", "through 1 git push origin main", 0},
		"denied in step mode":           {[]step{{line: argv("make"), say: api.AnswerDeny}}, "commands: []", "", 0},
		"housekeeping":                  {[]step{{line: argv("make"), upkeep: true}, {nested: argv("cc")}}, "commands: [{ask: make}]", "", 0},
		"denied as housekeeping's part": {[]step{{line: argv("make"), upkeep: true}, {nested: argv("cc")}}, "commands: [{deny: cc}]", "stops 1 cc", 0},
		"a connection saved":            {[]step{{line: argv("curl")}, {to: "example.org:443", say: api.AnswerApprove}}, "network: [{allow: example.org}]", "saves 1 connect to example.org:443", 0},
		"a connection let through":      {[]step{{line: argv("curl")}, {to: "example.org:443", say: api.AnswerDeny}}, `network: [{allow: "*"}]`, "through 1 connect to example.org:443", 1},
		"a connection nobody answered":  {[]step{{line: argv("curl")}, {to: "example.org:443", gone: true}}, `network: [{allow: "*"}]`, "through 1 connect to example.org:443", 0},
		"another port stays":            {[]step{{line: argv("curl")}, {to: "example.org:80", say: api.AnswerDeny}}, "network: [{allow: example.org:443}]", "", 0},
		"programs of the network":       {[]step{{line: argv("curl")}, {to: "example.org:80", say: api.AnswerDeny}}, "network: [{allow: example.org, programs: wget}]", "", 0},
		"a job's worst counts":          {[]step{{line: argv("cat", "x"), more: []step{{line: argv("sh")}, {line: push}}, say: api.AnswerApprove}}, "commands: [{allow: git push **}]", "saves 1 cat x | sh | git push origin main", 0},
		"a part of what is allowed":     {[]step{{line: argv("make")}, {nested: push, say: api.AnswerApprove}}, "commands: [{allow: make, children: allow}]", "saves 1 git push origin main", 0},
		"a part that was denied":        {[]step{{line: argv("make")}, {nested: push, say: api.AnswerDeny}}, "commands: [{allow: make, children: allow}]", "through 1 git push origin main", 1},
		"a part of a push": {[]step{{line: push, say: api.AnswerApprove}, {nested: argv("git", "send-pack", "--stateless-rpc", "x")}},
			"commands: [{allow: git push origin main}]", "saves 1 git push origin main", 0},
		"a part of what is approved": {[]step{{line: argv("make")}, {nested: argv("cc")}}, "commands: [{ask: make}, {ask: cc}]", "asks 1 make", 0},
		"a part that is denied":      {[]step{{line: argv("make")}, {nested: argv("cc")}}, "commands: [{allow: make, children: allow}, {deny: cc}]", "stops 1 cc", 0},
		"a part of what is denied":   {[]step{{line: argv("make")}, {nested: argv("cc")}}, "commands: [{deny: make}, {ask: cc}]", "stops 1 make", 0},
		"the same part once":         {[]step{{line: argv("make")}, {nested: argv("cc")}, {nested: argv("cc")}}, "commands: [{ask: cc}]", "asks 1 cc", 0},
		"the same connection once":   {[]step{{line: argv("curl")}, {to: "example.org:443", say: api.AnswerApprove}, {to: "example.org:443"}}, "network: [{allow: example.org}]", "saves 1 connect to example.org:443", 0},
		"cut arguments":              {[]step{{line: push, say: api.AnswerApprove, basis: &api.Basis{Cut: true}}}, "commands: [{allow: git push **}]", "", 0},
		"doubt":                      {[]step{{line: argv("make"), say: api.AnswerApprove, basis: &api.Basis{Doubt: "it reads commands from ~/x"}}}, "commands: [{allow: make}]", "", 0},
		"another's name":             {[]step{{line: push, say: api.AnswerApprove, basis: &api.Basis{Posing: true}}}, "commands: [{allow: git push **}]", "", 0},
		"started by another name":    {[]step{{line: argv("x", "push"), basis: &api.Basis{Started: "/usr/bin/tool"}}}, "commands: [{deny: tool push}]", "stops 1 x push", 0},
		"an interpreter": {[]step{{line: argv("tool", "-x"), basis: &api.Basis{Interpreter: []string{"/usr/bin/python3", "/usr/bin/tool"}, Loaded: "/usr/bin/python3"}}},
			"commands: [{ask: python3}]", "asks 1 tool -x", 0},
		"a newline":                 {[]step{{line: argv("sh", "-c", "true\ngit push")}}, "commands: [{deny: git push}]", `stops 1 sh -c $'true\ngit push'`, 0},
		"what looks like a newline": {[]step{{line: argv("sh", "-c", `echo 'a\ngit push'`)}}, "commands: [{deny: git push}]", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := record(t)
			for i, s := range c.steps { // a text with escapes is recorded beside its exact one
				if s.line != nil && s.basis == nil && slices.ContainsFunc(s.line, api.Unclear) {
					c.steps[i].basis = &api.Basis{Exact: s.line}
				}
			}
			w.do(c.steps...)
			got := w.try(c.with)
			if changed(got) != c.want || got.Denied != c.denied {
				t.Errorf("%q, %d denied; want %q, %d", changed(got), got.Denied, c.want, c.denied)
			}
		})
	}
}

// What a person answered by making a rule is an answer, and rules that were made in a
// session go on to hold in it.
func TestRulesMadeInASession(t *testing.T) {
	w := record(t)
	w.do(step{line: argv("curl")})
	a := api.Attempt{ID: 9, At: w.now(), Action: 1, Program: "/usr/bin/curl", Protocol: "tcp", Name: "example.org", Port: 443, Open: true, Verdict: api.Ask}
	q := api.Question{ID: 1, Action: 1, Subject: api.SubjectConnection, HeldAt: w.now(), Connection: &api.Connection{Program: a.Program, Rule: "example.org:443"}}
	w.add(api.Event{Kind: "attempt.opened", Attempt: new(a)}, api.Event{Kind: "question.opened", Question: new(q)})
	w.rules(api.Rule{Verdict: api.Deny, Host: "example.org:443", By: "me", At: q.HeldAt.Add(1)})
	q.Closed, q.ClosedBy = "deny", "deny example.org:443 (this session)"
	a.Open, a.Verdict, a.Rule = false, api.Deny, q.ClosedBy
	w.add(api.Event{Kind: "question.closed", Question: new(q)}, api.Event{Kind: "attempt.closed", Attempt: new(a)})
	w.do(step{to: "example.org:443", result: api.Deny}) // by the rule
	got := w.try(`network: [{allow: "*"}]`)
	if want := "through 1 connect to example.org:443"; changed(got) != want || got.Denied != 1 || got.LetThrough[0].By != "me" {
		t.Errorf("%q, %+v", changed(got), got.LetThrough)
	}
	if got.Then.Connections != 1 || got.Now.Connections != 1 || got.With.Connections != 0 {
		t.Errorf("questions: %+v then, %+v now, %+v with it", got.Then, got.Now, got.With)
	}
}

// Questions are counted in each mode.
func TestCounts(t *testing.T) {
	w := record(t)
	w.do(
		step{line: argv("ls")}, step{nested: argv("cat")},
		step{line: argv("git", "push"), say: api.AnswerApprove}, step{nested: argv("ssh", "x")},
		step{line: argv("node"), upkeep: true},
		step{line: argv("curl")}, step{to: "example.org:443", say: api.AnswerApprove}, step{to: "example.org:443"},
	)
	w.n++
	w.add(api.Event{Kind: "action.edited", Action: &api.Action{N: w.n, Kind: api.KindEdit, State: api.ActionEnded, Title: "a.go"}})
	got := w.try("commands: [{ask: ls}]")
	want := api.PolicyTried{
		Sessions: 1, Commands: 3, Programs: 2, Connections: 2, Edits: 1,
		Then: api.QuestionCount{Commands: 1, Connections: 1}, Now: api.QuestionCount{Commands: 1, Connections: 1},
		With: api.QuestionCount{Commands: 2, Connections: 1}, Step: api.QuestionCount{Commands: 3, Connections: 1, Edits: 1},
	}
	got.Asked = nil
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("counted\n%+v, want\n%+v", got, want)
	}
}

// Which sessions are gone through.
func TestWhichSessions(t *testing.T) {
	w := record(t)
	w.begin("two", api.ModeWatch)
	w.do(step{line: argv("git", "push")})
	w.begin("elsewhere", api.ModePolicy)
	b := w.tester("")
	for name, c := range map[string]struct {
		of   api.PastOf
		want int
	}{
		"all":          {api.PastOf{}, 3},
		"one":          {api.PastOf{Sessions: []string{"two"}}, 1},
		"of a folder":  {api.PastOf{Folder: "/p"}, 3},
		"of another":   {api.PastOf{Folder: "/q"}, 0},
		"since":        {api.PastOf{Since: began.Add(time.Second)}, 0},
		"since before": {api.PastOf{Since: began}, 3},
	} {
		got, err := b.Try(t.Context(), api.PolicyTry{PastOf: c.of}, func(api.PastSeen) {})
		if err != nil || got.Sessions != c.want {
			t.Errorf("%s: %d sessions, %v", name, got.Sessions, err)
		}
	}
	for name, r := range map[string]api.PolicyTry{
		"no such session":   {PastOf: api.PastOf{Sessions: []string{"none"}}},
		"a relative folder": {PastOf: api.PastOf{Folder: "p"}},
		"no such place":     {File: "/new.yaml", As: api.ExtentSession},
	} {
		if _, err := b.Try(t.Context(), r, func(api.PastSeen) {}); err == nil {
			t.Errorf("%s: it is tried", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := b.Try(ctx, api.PolicyTry{}, func(api.PastSeen) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("it goes on when nobody waits: %v", err)
	}
}

// flood has a program try many destinations, about which one question is asked: it ends
// unanswered, or as rules let all of them pass.
func (w *writer) flood(n int, allowed bool) {
	w.t.Helper()
	w.do(step{line: argv("scan")})
	var tries []api.Attempt
	var many []string
	for i := range n {
		w.tries++
		a := api.Attempt{ID: w.tries, At: w.now(), Action: w.n, Pid: w.pid, Program: "/usr/bin/scan", Protocol: "tcp", Name: fmt.Sprintf("h%d.example.org", i), Port: 443, Open: true, Verdict: api.Ask}
		w.add(api.Event{Kind: "attempt.opened", Attempt: new(a)})
		tries, many = append(tries, a), append(many, a.Name+":443")
		q := api.Question{ID: w.asked + 1, Subject: api.SubjectConnection, HeldAt: tries[0].At, Connection: &api.Connection{Many: slices.Clone(many)}}
		kind := "question.changed"
		if i == 0 {
			kind = "question.opened"
		}
		w.add(api.Event{Kind: kind, Question: &q})
	}
	w.asked++
	for _, a := range tries {
		if a.Open, a.Verdict, a.Rule = false, api.Deny, unanswered; allowed {
			a.Verdict, a.Rule = api.Allow, "a rule"
		}
		w.add(api.Event{Kind: "attempt.closed", Attempt: new(a)})
	}
	q := api.Question{ID: w.asked, Subject: api.SubjectConnection, HeldAt: tries[0].At, Connection: &api.Connection{Many: many}, Closed: "withdrawn"}
	w.add(api.Event{Kind: "question.closed", Question: &q})
}

// One question is asked about many destinations at once, whatever became of it, and as long
// as rules ask about any of them.
func TestTryCountsAFloodOnce(t *testing.T) {
	for name, c := range map[string]struct {
		allowed bool
		rules   string
		with    int
		saved   int
	}{
		"all of it":       {true, `network: [{allow: "*"}]`, 0, 1},
		"one of it":       {true, "network: [{allow: h0.example.org}]", 1, 1},
		"nothing":         {true, "network: []", 1, 0},
		"nobody answered": {false, "network: []", 1, 0},
		"another of it":   {true, "network: [{allow: h1.example.org}]", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := record(t)
			w.flood(4, c.allowed)
			got := w.try(c.rules)
			if got.Connections != 4 || got.Then.Connections != 1 || got.Now.Connections != 1 || got.With.Connections != c.with || got.Step.Connections != 1 {
				t.Errorf("of %d connections %d were asked about, by the rules of now %d, by others %d, and in step mode %d",
					got.Connections, got.Then.Connections, got.Now.Connections, got.With.Connections, got.Step.Connections)
			}
			if saved := len(got.Saved); saved != c.saved {
				t.Errorf("%d questions are saved, want %d: %s", saved, c.saved, changed(got))
			}
		})
	}
}
