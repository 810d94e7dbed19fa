package ui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
)

// sceneConnection is a connection that an action of the scene waits for.
func sceneConnection() api.Question {
	return api.Question{
		ID: 7, Action: 11, Subject: api.SubjectConnection, Title: "connect to registry.example.org:443", Hash: "h7",
		Rule: "no rule decides it", HeldAt: sceneNow.Add(-9 * time.Second),
		Connection: &api.Connection{
			Host: "registry.example.org", Port: 443, Protocol: "tcp", Rule: "registry.example.org:443", Program: "/usr/local/bin/node",
			Pid: 48311, Tries: 3, Waiting: 1, LastTry: sceneNow.Add(-2 * time.Second), LastTime: "allowed by tui, 12k in",
		},
	}
}

// sceneFlood is more destinations than are asked about one by one.
func sceneFlood() api.Question {
	q := api.Question{
		ID: 8, Subject: api.SubjectConnection, Title: "connections to many destinations", Hash: "h8",
		Rule: "no rule decides it", HeldAt: sceneNow.Add(-3 * time.Second),
		Connection: &api.Connection{Tries: 968, Waiting: 40, LastTry: sceneNow},
	}
	for i := range 30 {
		q.Connection.Many = append(q.Connection.Many, fmt.Sprintf("host%d.example.org:443", i))
	}
	return q
}

// retold is a question whose tries moved on.
func retold(q api.Question) api.Question {
	c := *q.Connection
	c.Tries, c.Waiting, c.Pid, c.LastTry = c.Tries+1, 0, c.Pid+1, sceneNow
	q.Connection = &c
	return q
}

// What waits to reach something is answered where it is listed, and where it is opened.
func TestConnectionIsAnswered(t *testing.T) {
	for _, c := range []struct {
		name string
		open []string
		key  string
		then []string
		want api.Answer
	}{
		{"allowed in Network", []string{leader, "3"}, "a", nil, api.AnswerApprove},
		{"denied in Network", []string{leader, "3"}, "d", []string{"enter"}, api.AnswerDeny},
		{"allowed in Actions", []string{leader, "4"}, "a", nil, api.AnswerApprove},
		{"denied in Actions", []string{leader, "4"}, "d", []string{"enter"}, api.AnswerDeny},
		{"allowed when opened", []string{leader, "a"}, "a", nil, api.AnswerApprove},
		{"opened from Network", []string{leader, "3", "enter"}, "a", nil, api.AnswerApprove},
		{"denied when opened", []string{leader, "a"}, "d", []string{"enter"}, api.AnswerDeny},
		{"walked to", []string{leader, "4", "g", "tab"}, "a", nil, api.AnswerApprove},
	} {
		for _, size := range sizes {
			t.Run(fmt.Sprint(c.name, size[0]), inBubble(func(t *testing.T) {
				d := bench(t, sceneWorkbench(sceneConnection()), size[0], size[1], "plain")
				d.press(c.open...)
				d.press(c.key)
				d.decided()
				if c.key == "a" { // or it was opened, as the row couldn't show it whole
					d.calmly(c.key)
				}
				d.calmly(c.then...)
				d.decided(c.want)
				d.shows(map[api.Answer]string{api.AnswerApprove: "✓ allowed", api.AnswerDeny: "✗ denied"}[c.want])
				if x := d.c.Decisions()[0]; x.Question != 7 || x.Hash != "h7" {
					t.Errorf("it answers %+v", x)
				}
			}))
		}
	}
}

// While it is tried again and again, the keys for it go on counting; a question that is
// another one takes none at once.
func TestTriesMoveOn(t *testing.T) { alone(t, testTriesMoveOn) }

func testTriesMoveOn(t *testing.T) {
	for _, open := range [][]string{{leader, "3"}, {leader, "4"}, {leader, "a"}} {
		q := sceneConnection()
		d := bench(t, sceneWorkbench(q), 200, 50, "plain")
		d.press(open...)
		d.advance(time.Second)
		q = retold(q)
		d.c.Put(api.Event{Question: &q})
		if open[1] == "a" {
			d.shows("it gave up; the answer serves its next try")
			d.shows("tried 4 times")
		} else {
			d.shows("gave up for now")
		}
		q.Hash = "other"
		d.c.Put(api.Event{Question: &q})
		d.idle()
		d.press("a")
		d.decided()
		d.advance(time.Second)
		q = retold(q)
		d.c.Put(api.Event{Question: &q})
		d.idle()
		d.press("a")
		d.decided(api.AnswerApprove)
		if x := d.c.Decisions()[0]; x.Hash != "other" {
			t.Errorf("it answers %+v", x)
		}
	}
}

// Too many to ask about one by one can be denied together, and not allowed.
func TestFloodIsDenied(t *testing.T) { alone(t, testFloodIsDenied) }

func testFloodIsDenied(t *testing.T) {
	for _, open := range [][]string{{leader, "3"}, {leader, "4"}, {leader, "a"}} {
		d := bench(t, sceneWorkbench(sceneFlood()), 80, 24, "plain")
		d.press(open...)
		d.calmly("a")
		d.shows("too many to allow at once")
		d.decided()
		d.calmly("d", "enter")
		d.decided(api.AnswerDeny)
	}
}

// Which questions come about what makes no screen fail, whatever is pressed.
func TestConnectionsBearEveryKey(t *testing.T) { everywhere(t, testConnectionsBearEveryKey) }

func testConnectionsBearEveryKey(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneConnection(), sceneFlood(), sceneQuestion()), 120, 35, "plain")
	for _, pane := range []string{"3", "4"} {
		for _, row := range []string{"g", "G", "k"} {
			for _, k := range strings.Fields("a b d i n y u U space W K s F h enter v tab @ c I w x") {
				d.press("esc", "esc", "esc", leader, pane, row)
				d.calmly(k)
			}
		}
	}
	d.idle()
}
