package ui

import (
	"fmt"
	"testing"
	"time"

	"stepbox/session/api"
)

// sceneRequest is a use of the person's that an action of the scene waits for.
func sceneRequest(lasts bool) api.Question {
	return api.Question{
		ID: 9, Action: 11, Subject: api.SubjectRequest, Title: "sign in to git@github.com with your key me@laptop", Hash: "h9",
		Rule: "each is asked about", HeldAt: sceneNow.Add(-4 * time.Second),
		Request: &api.Request{
			Facts: []api.Fact{{Name: "host", Value: "github.com, as your known_hosts and the server's own key prove"}, {Name: "digest", Value: "SHA-256 abc"}},
			Lasts: lasts, Program: "/usr/bin/ssh", Pid: 4711,
		},
	}
}

// A request is answered where it is listed, and where it is opened; nothing is decided
// before all that the answer covers was shown.
func TestRequestIsAnswered(t *testing.T) {
	for _, size := range sizes {
		for _, c := range []struct {
			name  string
			open  []string
			keys  []string
			lasts bool
			want  api.Answer
			holds api.Extent
		}{
			{"allowed in Actions", []string{leader, "4"}, []string{"a", "a"}, false, api.AnswerApprove, ""},
			{"allowed when opened", []string{leader, "a"}, []string{"a"}, false, api.AnswerApprove, ""},
			{"for the session", []string{leader, "a"}, []string{"A"}, true, api.AnswerApprove, api.ExtentSession},
			{"denied", []string{leader, "a"}, []string{"d", "enter"}, false, api.AnswerDeny, ""},
		} {
			t.Run(fmt.Sprint(c.name, size[0]), inBubble(func(t *testing.T) {
				d := bench(t, sceneWorkbench(sceneRequest(c.lasts)), size[0], size[1], "plain")
				d.press(c.open...)
				d.decided()
				d.calmly(c.keys...)
				d.decided(c.want)
				if x := d.c.Decisions()[0]; x.Question != 9 || x.Hash != "h9" || x.For != c.holds && !(x.For == api.ExtentOnce && c.holds == "") {
					t.Errorf("it answers %+v", x)
				}
			}))
		}
	}
}

// What can't last isn't let last, and keys for commands do nothing.
func TestRequestIsAnsweredOnce(t *testing.T) { alone(t, testRequestIsAnsweredOnce) }

func testRequestIsAnsweredOnce(t *testing.T) {
	d := bench(t, sceneWorkbench(sceneRequest(false)), 120, 35, "plain")
	d.press(leader, "a")
	d.calmly("A")
	d.shows("a allows it once")
	d.calmly("i")
	d.calmly("o")
	d.decided()
}
