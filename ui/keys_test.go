package ui

import (
	"testing"
	"testing/synctest"
	"time"

	"stepbox/session/api"
	"stepbox/ui/keys"
)

// A person's own leader and keys are what the screens name, and what works.
func TestOwnKeys(t *testing.T) { synctest.Test(t, testOwnKeys) } // not beside others: keys are the process's

func testOwnKeys(t *testing.T) {
	a, of, ofLeader := keys.Arrange("ctrl+g", []keys.Change{{Name: "approve", Keys: []string{"v"}}, {Name: "actions", Keys: []string{"0"}}, {Place: keys.Decision, Name: "v", Keys: []string{"r"}}})
	if ofLeader != nil || of[0] != nil || of[1] != nil || of[2] != nil {
		t.Fatal(ofLeader, of)
	}
	keys.Use(a)
	defer keys.Use(keys.Usual())
	d := bench(t, sceneWorkbench(sceneQuestion()), 120, 35, "plain")
	d.press("ctrl+g", "ctrl+g", leader)
	d.until("the agent has both", func() bool { return d.c.LastTerminal().Got() == "\a\x1d" })
	d.shows("ctrl+g a open it  ctrl+g 0 actions")
	d.press("ctrl+g", "?")
	d.shows("every key but the leader, ctrl+g, goes to the agent")
	d.press("ctrl+g", "0")
	keysOn := keysOn([]api.Question{sceneQuestion()}, "ctrl+g", "0", "w")
	d = keysOn(t, 80, 24, "plain")
	d.shows("v approve")
	d.lacks("a approve")
	d.golden()
	d.press("a")
	d.idle()
	if n := len(d.c.Decisions()); n > 0 {
		t.Fatal("the usual key approved")
	}
	d.advance(time.Second)
	d.calmly("v")
	d.until("it is approved", func() bool { return len(d.c.Decisions()) == 1 })
}

// ctrl+5 is what ctrl+] is sent as where ] needs AltGr; the agent has one and the same.
func TestLeaderAsCtrl5(t *testing.T) { alone(t, testLeaderAsCtrl5) }

func testLeaderAsCtrl5(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press("ctrl+5", "ctrl+5", "x")
	d.until("the agent got it", func() bool { return d.c.LastTerminal().Got() == "\x1dx" })
}
