package ui

import (
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
)

// sceneEdit is a question about changes of the scene.
func sceneEdit() api.Question {
	ch, _ := sceneChanges()
	return api.Question{
		ID: 9, Action: 10, Subject: api.SubjectEdit, Title: "src/parse.go, src/parse_test.go", Hash: "h9",
		Rule: "step mode: changes are looked at before the next command", HeldAt: sceneNow.Add(-4 * time.Second), Changes: ch.Files[:2],
	}
}

// A question about changes has their differences, and has them read once.
func TestEditHasItsDifferences(t *testing.T) { alone(t, testEditHasItsDifferences) }

func testEditHasItsDifferences(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneEdit()), 120, 35, "plain")
	before := len(d.c.DiffScopes())
	d.press(leader, "a")
	d.shows("edit held")
	d.shows("return nil, ErrEmpty")
	d.advance(3 * time.Second)
	got := d.c.DiffScopes()[before:]
	if len(got) != 1 || got[0] != (api.Scope{Action: 10}) {
		t.Errorf("differences were asked for of %v", got)
	}
	d.press("y")
	d.decided(api.AnswerKeep)
}

// What stands between a question and its answer comes last, and what all commands of
// an agent have isn't shown with each.
func TestReasonComesBeforeVariables(t *testing.T) { alone(t, testReasonComesBeforeVariables) }

func testReasonComesBeforeVariables(t *testing.T) {
	q := sceneQuestion()
	q.Command.Env = []string{"LD_PRELOAD=./x.so"}
	q.Command.EnvUsual = []string{"NO_COLOR=1", "PAGER=cat"}
	d := bench(t, sceneWorkbench(q), 120, 35, "plain")
	d.press(leader, "a")
	d.shows("LD_PRELOAD=./x.so")
	d.shows("2 as approved before, or that say where it runs")
	d.lacks("PAGER=cat")
	inOrder(t, d.text(), "$ go get", "program", "asked by", "last time", "variables   LD_PRELOAD", "and 2 as approved")
	d.press("v")
	d.shows("PAGER=cat")

	q.Command.Env = nil
	d = bench(t, sceneWorkbench(q), 120, 35, "plain")
	d.press(leader, "a")
	d.lacks("as approved before")
	d.press("v")
	d.shows("PAGER=cat")
}

// What only reads the same isn't answered with it.
func TestEqualOnesAreTheSame(t *testing.T) { alone(t, testEqualOnesAreTheSame) }

func testEqualOnesAreTheSame(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	for i, same := range []string{"npm publish", "other bytes", ""} {
		q := ask(int64(20+i), 20+i, "npm publish")
		q.Same = same
		put(d, q)
	}
	d.press(leader, "a")
	d.shows("#20")
	d.lacks("answered with it")
}

// One answer is for all that are the same, if they were named; another one that came
// meanwhile begins the quiet time anew.
func TestEqualOnes(t *testing.T) { alone(t, testEqualOnes) }

func testEqualOnes(t *testing.T) {
	a, b, other := ask(20, 20, "npm publish"), ask(21, 21, "npm publish"), ask(22, 22, "npm publish --force")
	b.Hash, b.Command.Pid = "another", 7
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	put(d, a)
	put(d, b)
	put(d, other)
	d.press(leader, "a")
	d.shows("and 1 equal one, answered with it: #21")
	d.advance(time.Second)
	c := ask(23, 23, "npm publish")
	c.Hash = "third"
	put(d, c)
	d.shows("and 2 equal ones, answered with it: #21, #23")
	d.press("a")
	d.decided()
	d.advance(time.Second)
	d.press("a")
	d.decided(api.AnswerApprove, api.AnswerApprove, api.AnswerApprove)
	for i, want := range []string{a.Hash, "another", "third"} {
		got := d.c.Decisions()[i]
		if got.Hash != want {
			t.Errorf("decision %d is on %s", i, got.Hash)
		}
		if of := min(int64(i), 1) * a.ID; got.With != of {
			t.Errorf("decision %d is that on question %d, want %d", i, got.With, of)
		}
	}
	d.shows("approved #20 and 2 equal ones")
	d.shows("1 held")
}

// In the list each row is answered by itself.
func TestRowsAreAnsweredAlone(t *testing.T) { alone(t, testRowsAreAnsweredAlone) }

func testRowsAreAnsweredAlone(t *testing.T) {
	a, b := ask(20, 20, "npm publish"), ask(21, 21, "npm publish")
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	put(d, a)
	put(d, b)
	d.press(leader, "4")
	d.calmly("a")
	d.decided(api.AnswerApprove)
}

// Changes are taken back with a reason, which the agent is told.
func TestTakenBackWithAReason(t *testing.T) { alone(t, testTakenBackWithAReason) }

func testTakenBackWithAReason(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneEdit()), 120, 35, "plain")
	d.press(leader, "a")
	d.shows("roll back, why…")
	d.advance(3 * time.Second)
	d.press("d")
	d.shows("The agent is told with its next command")
	d.advance(3 * time.Second)
	d.press("n", "o", "enter")
	d.decided(api.AnswerRollback)
	if x := d.c.Decisions()[0]; x.Reason != "no" || x.Question != 9 {
		t.Errorf("decided %+v", x)
	}
}

// The changes of one file are named once, with the command that made them.
func TestChangesOfACommand(t *testing.T) { alone(t, testChangesOfACommand) }

func testChangesOfACommand(t *testing.T) {
	q := sceneEdit()
	q.Changes = q.Changes[:1]
	c := sceneWorkbench(q)
	_, diff := sceneChanges()
	c.Put(api.Event{Action: &api.Action{N: 10, Kind: api.KindCommand, State: api.ActionEnded, Title: "sed -i s/a/b/ src/parse.go"}})
	d := bench(t, c, 120, 35, "plain")
	d.press(leader, "a")
	d.shows("made by     $ sed -i s/a/b/ src/parse.go")
	d.shows(diff.Hunks[0].Lines[0].Text)
	dialog := d.text()[strings.Index(d.text(), "edit held"):]
	if n := strings.Count(dialog, "M src/parse.go"); n != 1 {
		t.Errorf("it is named %d times\n%s", n, dialog)
	}
}

// A command that can't be let run before changes are kept or taken back leads to these.
func TestChangesComeFirst(t *testing.T) { alone(t, testChangesComeFirst) }

func testChangesComeFirst(t *testing.T) {
	c := sceneWorkbench(sceneQuestion())
	d := bench(t, c, 120, 35, "plain")
	d.press(leader, "a")
	d.shows("command held")
	d.advance(3 * time.Second)
	c.Refuse(func(api.Decision) *api.Problem {
		return &api.Problem{Code: api.CodeBusy, Message: "the changes of #10 come first: keep them or roll them back"}
	})
	q := sceneEdit()
	c.Put(api.Event{Question: &q})
	d.idle()
	d.press("a")
	d.decided(api.AnswerApprove)
	d.shows("edit held")
	d.shows("come first")
}

// A connection says how much the same program has sent and received there.
func TestTrafficOfAConnection(t *testing.T) { alone(t, testTrafficOfAConnection) }

func testTrafficOfAConnection(t *testing.T) {
	q := sceneConnection()
	c := sceneWorkbench(q)
	at := func(id int64, program string, sent, received int64) api.Event {
		return api.Event{Attempt: &api.Attempt{ID: id, Program: program, Name: q.Connection.Host, Port: q.Connection.Port, Protocol: q.Connection.Protocol, Sent: sent, Received: received}}
	}
	d := bench(t, c, 80, 24, "plain")
	d.press(leader, "a")
	d.shows("nothing was sent there, or received")
	c.Put(at(901, q.Connection.Program, 2048, 100), at(902, "/bin/other", 1<<20, 1<<20), at(903, q.Connection.Program, 1024, 50))
	d.shows("3k sent, 150 received")
}
