package ui

import (
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
)

// sceneProposals are rules that the answer to the scene's connection may become.
func sceneProposals() []api.Proposal {
	return []api.Proposal{
		{Pattern: "registry.example.org:443", Means: "exactly this destination", Matched: 14, Examples: []string{"registry.example.org:443"}},
		{Pattern: "registry.example.org", Means: "every port of it", Matched: 15, Examples: []string{"registry.example.org:443", "registry.example.org:80"}},
		{Pattern: "*.example.org:443", Means: "every name below example.org, port 443", Matched: 41, Denied: 2, Examples: []string{"registry.example.org:443", "files.example.org:443", "paste.example.org:443"}},
	}
}

// proposing is the scene with a connection whose rules are proposed.
func proposing(t *testing.T, cols, rows int, theme string) *driver {
	c := sceneWorkbench(sceneConnection())
	c.Propose(7, sceneProposals()...)
	return bench(t, c, cols, rows, theme)
}

// The rule and for how long it holds are chosen; the answer has both, and what takes it
// back is said.
func TestAnswerBecomesARule(t *testing.T) { alone(t, testAnswerBecomesARule) }

func testAnswerBecomesARule(t *testing.T) {
	for _, open := range [][]string{{leader, "3"}, {leader, "4"}, {leader, "a"}} {
		d := proposing(t, 200, 50, "plain")
		d.press(open...)
		d.press("A")
		d.shows("Make it a rule")
		d.press("enter")
		d.decided()
		d.shows("14 past attempts of this folder")
		d.press("j", "j", "tab")
		d.shows("2 of them denied by you")
		d.advance(time.Second)
		d.press("enter")
		d.decided(api.AnswerApprove)
		if x := d.c.Decisions()[0]; x.Hash != "h7" || x.Pattern != "*.example.org:443" || x.For != api.ExtentProject {
			t.Errorf("it answers %+v", x)
		}
		back := "ctrl+z"
		if open[1] == "a" {
			back = leader + " ctrl+z"
		}
		d.shows("allow *.example.org:443 in this project · " + back + " forgets it")
		d.lacks("Make it a rule")
	}
}

// A question on which no rule that allows counts says why, and so does what makes rules.
func TestSaysWhyNoRuleCounts(t *testing.T) { alone(t, testSaysWhyNoRuleCounts) }

func testSaysWhyNoRuleCounts(t *testing.T) {
	q := sceneQuestion()
	d := bench(t, sceneWorkbench(q), 80, 24, "plain")
	d.press(leader, "a")
	d.lacks("none that allows counts")
	q.Command.Uncounted = "it is given GOFLAGS, which may have it do more than it shows"
	c := sceneWorkbench(q)
	c.Propose(q.ID)
	d = bench(t, c, 80, 24, "plain")
	d.press(leader, "a")
	d.shows("none that allows counts: it is given GOFLAGS")
	d.calmly("A")
	d.shows("no rule can be made of it")
	d.shows("no rule that allows counts for it: it is given GOFLAGS")
	d.calmly("enter")
	d.decided()
}

// Esc leaves without an answer, and one that is answered elsewhere takes none.
func TestRuleIsLeft(t *testing.T) { alone(t, testRuleIsLeft) }

func testRuleIsLeft(t *testing.T) {
	d := proposing(t, 120, 35, "plain")
	d.press(leader, "a")
	d.calmly("A", "esc")
	d.lacks("Make it a rule")
	d.shows("connection held")
	d.calmly("A")
	d.shows("exactly this destination")
	q := sceneConnection()
	q.Closed, q.ClosedBy = "deny", "cli"
	d.c.Put(api.Event{Question: &q})
	d.shows("answered elsewhere")
	d.calmly("enter")
	d.decided()
}

// Where nothing is proposed, the narrowest rule can be made.
func TestNothingIsProposed(t *testing.T) { alone(t, testNothingIsProposed) }

func testNothingIsProposed(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneConnection(), sceneQuestion()), 120, 35, "plain")
	d.press(leader, "a")
	d.calmly("A")
	d.shows("wider rules can't be proposed")
	d.calmly("tab", "tab", "enter")
	d.decided(api.AnswerApprove)
	if x := d.c.Decisions()[0]; x.Pattern != "go get github.com/x/y@latest" && x.Pattern != "registry.example.org:443" && x.Pattern != "" || x.For != api.ExtentAlways {
		t.Errorf("it answers %+v", x)
	}
	d.shows("always · ")
}

// A denial holds once, or for longer.
func TestDenialHolds(t *testing.T) { alone(t, testDenialHolds) }

func testDenialHolds(t *testing.T) {
	d := proposing(t, 120, 35, "plain")
	d.press(leader, "4")
	d.calmly("d")
	d.shows("deny once")
	d.press("n", "o", "tab")
	d.shows("deny in this session")
	d.press("tab", "tab", "tab")
	d.shows("deny once")
	d.press("shift+tab")
	d.advance(time.Second)
	d.press("enter")
	d.decided(api.AnswerDeny)
	if x := d.c.Decisions()[0]; x.For != api.ExtentAlways || x.Pattern != "" || x.Reason != "no" {
		t.Errorf("it answers %+v", x)
	}
	d.shows("deny registry.example.org:443 always")
}

// What can be denied once only isn't said to be denied for longer.
func TestDeniedOnceOnly(t *testing.T) { alone(t, testDeniedOnceOnly) }

func testDeniedOnceOnly(t *testing.T) {
	atALimit, action := sceneConnection(), sceneQuestion()
	atALimit.Connection.Limit, action.Subject = "connections 2/min", api.SubjectLimit
	for _, q := range []api.Question{sceneFlood(), atALimit, action} {
		d := bench(t, sceneWorkbench(q), 80, 24, "plain")
		d.press(leader, "a")
		if q.ID != sceneFlood().ID {
			d.calmly("A")
			d.shows("d ends it")
		}
		d.calmly("d")
		d.shows("deny once")
		d.lacks("for how long")
		d.press("tab")
		d.advance(time.Second)
		d.press("enter")
		d.decided(api.AnswerDeny)
		if x := d.c.Decisions(); x[0].For != "" {
			t.Errorf("it answers %+v", x)
		}
	}
}

// Why an answer isn't taken is there whole, with what to do about it at its end.
func TestRefusedRuleSaysWhy(t *testing.T) { alone(t, testRefusedRuleSaysWhy) }

func testRefusedRuleSaysWhy(t *testing.T) {
	d := proposing(t, 80, 24, "plain")
	d.c.Refuse(func(api.Decision) *api.Problem {
		return &api.Problem{Code: api.CodeInvalid, Message: `the policy "/home/me/projects/parser/.stepbox.yaml" isn't trusted, so nothing is put into it: look at it with stepbox policy trust`}
	})
	d.press(leader, "4")
	d.calmly("A")
	d.shows("past attempts")
	d.calmly("enter")
	d.shows("with stepbox policy trust")
	d.shows("Make it a rule")
}

// What was denied earlier is let through from its next try on by a rule, which one key
// takes back.
func TestDeniedEarlierIsAllowed(t *testing.T) { alone(t, testDeniedEarlierIsAllowed) }

func testDeniedEarlierIsAllowed(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "3", "g")
	d.calmly("a")
	d.shows("it is allowed already")
	d.press("j", "a")
	d.shows("too soon")
	d.calmly("a")
	d.shows("allow pastebin.com:443 in this session · ctrl+z forgets it")
	d.calmly("ctrl+z")
	d.shows("forgotten: allow pastebin.com:443 in this session")
	d.calmly("A")
	d.shows("Make it a rule")
	d.lacks("it covers nothing") // nobody counted
	d.calmly("j", "tab", "enter")
	d.shows("allow pastebin.com in this project")
	d.lacks("Make it a rule")
	d.calmly("P")
	d.shows("Rules made in this session")
	d.calmly("d")
	d.shows("no rule was made in this session")
	d.calmly("esc", "k", "d")
	d.shows("→ deny in this session: api.anthropic.com:443")
	d.shows("enter deny so")
	d.calmly("tab", "enter")
	d.shows("✗ deny api.anthropic.com:443 in this project")
	want := []string{
		"allow pastebin.com:443 session", "take back allow pastebin.com:443 session",
		"allow pastebin.com project", "take back allow pastebin.com project", "deny api.anthropic.com:443 project",
	}
	if got := d.c.Calls(); !slices.Equal(got, want) {
		t.Errorf("it asked for %q", got)
	}
	d.decided()
}

// What a person allowed once, or watch mode let pass, isn't allowed already: a rule can be
// made of it, without which it is asked about again, or isn't reached.
func TestLetThroughWithoutARule(t *testing.T) { alone(t, testLetThroughWithoutARule) }

func testLetThroughWithoutARule(t *testing.T) {
	for _, rule := range []string{"approved by tui", "watch mode"} {
		d := bench(t, sceneWorkbench(), 120, 35, "plain")
		d.c.Put(api.Event{Attempt: &api.Attempt{
			ID: 90, At: sceneNow, Protocol: "tcp", Name: "host.stepbox.internal", Port: 5432, Verdict: api.Allow, Rule: rule,
			Failure: "a rule must name the port to reach this host's own services",
		}})
		d.press(leader, "3")
		d.shows("host.stepbox.internal")
		d.calmly("a")
		d.shows("A makes one")
		d.calmly("enter")
		d.shows("press A in Network: a rule for it")
		d.press("esc")
		d.calmly("A")
		d.shows("Make it a rule")
		d.lacks("every port of it")
		d.calmly("enter")
		d.shows("allow host.stepbox.internal:5432 in this session")
	}
}

// What a policy denies isn't said to be allowed by a rule that it outranks.
func TestDeniedForGood(t *testing.T) { alone(t, testDeniedForGood) }

func testDeniedForGood(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	a := api.Attempt{ID: 90, At: sceneNow, Protocol: "tcp", Name: "paste.example.org", Port: 443, Verdict: api.Deny, Rule: "deny *.example.org (your policy, line 3)"}
	d.c.Put(api.Event{Attempt: &a})
	d.press(leader, "3")
	d.shows("paste.example.org")
	for _, k := range []string{"a", "A"} {
		d.lacks("no rule outranks a denial")
		d.calmly(k)
		d.shows("no rule outranks a denial: change it where it stands: deny *.example.org (your policy, line 3)")
		d.lacks("Make it a rule")
		d.advance(7 * time.Second)
		d.send(clock{})
	}
	d.calmly("enter")
	d.shows("change it where it stands")
	d.press("esc")
	a.ID, a.Rule, a.Name = 91, "deny files.example.org:443 (this session)", "files.example.org"
	d.c.Put(api.Event{Attempt: &a})
	d.shows("files.example.org")
	d.calmly("a")
	d.shows("allow files.example.org:443 in this session")
	if got := d.c.Calls(); len(got) != 1 {
		t.Errorf("it asked for %q", got)
	}
}

// Of many destinations one is let through by a rule.
func TestFloodHasRules(t *testing.T) { alone(t, testFloodHasRules) }

func testFloodHasRules(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneFlood()), 80, 24, "plain")
	d.press(leader, "3")
	d.calmly("A")
	d.shows("Make it a rule")
	d.calmly("j", "j", "enter")
	d.shows("allow host2.example.org:443 in this session")
	d.decided()
}

// After the same answer several times it is offered by itself; that it comes while the
// question stands begins no quiet time anew.
func TestRuleIsOffered(t *testing.T) { alone(t, testRuleIsOffered) }

func testRuleIsOffered(t *testing.T) {
	q := sceneConnection()
	d := proposing(t, 120, 35, "plain")
	d.press(leader, "4")
	d.advance(time.Second)
	q.Offer = &api.Offer{Answer: api.AnswerApprove, Times: 3, Pattern: "registry.example.org", Means: "every port of it"}
	d.c.Put(api.Event{Question: &q})
	d.shows("A always registry.example.org…")
	d.press("A")
	d.shows("● registry.example.org ")
	d.press("esc", "enter")
	d.shows("you allowed this 3 times: A makes that a rule")
	q.Offer = &api.Offer{Answer: api.AnswerDeny, Times: 4}
	d.c.Put(api.Event{Question: &q})
	d.shows("you denied this 4 times: d, then tab, has that hold for longer")
	d.decided()
}

// An answer may do more than make a rule: that is said before it is given.
func TestRuleSaysWhatElseRuns(t *testing.T) { alone(t, testRuleSaysWhatElseRuns) }

func testRuleSaysWhatElseRuns(t *testing.T) {
	other := sceneConnection()
	other.ID, other.Hash = 8, "h8"
	c := *other.Connection
	c.Host, c.Program, c.Written = "a.example.org", "/home/ada/tool", true
	other.Connection = &c
	w := sceneWorkbench(sceneConnection(), other)
	p := sceneProposals()
	p[0].Once = []string{"npm publish", "ssh x", "ssh y", "ssh z", "ssh w"}
	p[2].Waiting = []int64{8}
	w.Propose(7, p...)
	d := bench(t, w, 80, 24, "plain")
	d.press(leader, "a")
	d.calmly("A")
	d.shows("approves once, too: npm publish")
	d.shows("and 2 more")
	d.lacks("allows what waits")
	d.press("j", "j")
	d.lacks("approves once")
	d.shows("allows what waits, too: tool → a.example.org")
	d.shows("(this session wrote it)")
}

// A meaning that the list has no room for is shown whole.
func TestRuleSaysWhatItMeans(t *testing.T) { alone(t, testRuleSaysWhatItMeans) }

func testRuleSaysWhatItMeans(t *testing.T) {
	w := sceneWorkbench(sceneConnection())
	w.Propose(7, api.Proposal{Pattern: "git config --global user.email ann@example.org", Means: "exactly this command"},
		api.Proposal{Pattern: "git *", Means: "every git command, also those that other rules ask about"})
	d := bench(t, w, 80, 24, "plain")
	d.press(leader, "a")
	d.calmly("A")
	d.shows("git *")
	d.lacks("other rules ask about")
	d.press("j")
	d.shows("every git command, also those that other rules ask about")
}

// What enter would make a rule of has to have been in view whole: a long pattern's end, which
// may be what makes it wide, what else it lets run, and for how long.
func TestRuleIsReadFirst(t *testing.T) { alone(t, testRuleIsReadFirst) }

func testRuleIsReadFirst(t *testing.T) {
	long := "touch " + strings.Repeat("a", 150)
	for _, size := range [][2]int{{80, 24}, {40, 12}} {
		c := sceneWorkbench(ask(20, 20, long))
		c.Propose(20,
			api.Proposal{Pattern: long, Means: "exactly this command"},
			api.Proposal{Pattern: long + " *", Means: "whatever comes after it", Once: []string{"rm -rf " + strings.Repeat("b", 200) + " end"}})
		d := bench(t, c, size[0], size[1], "plain")
		d.press(leader, "a")
		for range 12 {
			d.calmly("pgdown")
		}
		d.calmly("A")
		d.until("the rules are there", func() bool { return strings.Contains(d.text(), "Make it a rule") && d.m.bench.Arrived() })
		d.idle()
		d.press("j", "tab", "tab")
		d.calmly("enter")
		d.decided()
		d.shows("scroll through all of it first")
		read := d.text()
		for range 30 {
			d.calmly("pgdown")
			read += d.text()
		}
		for _, words := range []string{"aaaa *", "end", "for   "} {
			if !strings.Contains(read, words) {
				t.Errorf("at %v %q was never in view", size, words)
			}
		}
		d.shows("allow always")
		d.calmly("enter")
		d.decided(api.AnswerApprove)
		if x := d.c.Decisions()[0]; x.Pattern != long+" *" || x.For != api.ExtentAlways {
			t.Errorf("it answers %+v", x)
		}
	}
}

// What stood there while the rules were looked up isn't what enter makes a rule of.
func TestRuleIsReadOnceItIsThere(t *testing.T) { alone(t, testRuleIsReadOnceItIsThere) }

func testRuleIsReadOnceItIsThere(t *testing.T) {
	c := sceneWorkbench(ask(20, 20, "touch a"))
	c.Propose(20, api.Proposal{Pattern: "touch a", Means: "exactly this command", Once: []string{"rm -rf" + strings.Repeat(" b", 500) + " end"}})
	d := bench(t, c, 80, 24, "plain")
	d.press(leader, "a")
	d.calmly("A")
	d.shows("approves once, too")
	d.calmly("enter")
	d.decided()
	d.shows("scroll through all of it first")
}
