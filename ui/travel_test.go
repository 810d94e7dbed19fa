package ui

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
)

// A file is read as it was with who wrote each line, which leads to the action, and is
// saved where the person says.
func TestFileAsItWas(t *testing.T) { alone(t, testFileAsItWas) }

func testFileAsItWas(t *testing.T) {
	c := sceneWorkbench()
	var saved []string
	d := drive(t, c, 120, 35, Options{Session: sceneSession().ID, Config: themed("plain"), Save: func(_ context.Context, id, key string, at api.Moment, name string) error {
		saved = append(saved, id+" "+string(at)+" "+name)
		if !strings.HasSuffix(name, ".bak2") {
			return errors.New("there is a file there")
		}
		return nil
	}})
	d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() && c.LastTerminal() != nil })
	d.settle()
	d.press(leader, "2")
	d.settle()
	d.press("j", "j")
	d.press("b")
	d.shows("#1 go generate")
	d.shows("package src")
	d.shows("no action wrote it: it is the project's")
	d.press("enter")
	d.shows("no action wrote this line")
	d.press("j")
	d.shows("“I'll generate the parser”")
	d.press("b")
	d.lacks("#1 go generate ./...  ")
	d.calmly("s")
	d.shows("Save this file as it was")
	d.types(".bak")
	d.calmly("enter")
	d.shows("! there is a file there")
	d.shows(".bak ") // what was typed is still there, to be mended
	d.press("2", "enter")
	d.shows("✓ saved as ")
	d.lacks("Save this file as it was")
	if len(saved) != 2 || !slices.ContainsFunc(c.Calls(), func(s string) bool { return len(s) > 6 && s[:6] == "blame " }) {
		t.Errorf("saved %q, asked %q", saved, c.Calls())
	}
	d.press("enter")
	d.lacks("save as…")
}

// Help says what a key does once help is left.
func TestHelpIsntInTheWay(t *testing.T) { alone(t, testHelpIsntInTheWay) }

func testHelpIsntInTheWay(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 60, "plain")
	d.press(leader, "4")
	d.press("?")
	d.shows("Keys")
	d.lacks("close what is open first")
}

// What broke a command is looked for, and found in Actions.
func TestFindWhatBrokeThis(t *testing.T) { alone(t, testFindWhatBrokeThis) }

func testFindWhatBrokeThis(t *testing.T) {
	d := bench(t, sceneWorkbench(), 120, 35, "plain")
	d.press(leader, "4")
	d.press("F")
	d.shows("Find what broke this")
	d.types("make")
	d.press("enter")
	d.shows("This broke it:")
	d.shows("passes before all of them")
	d.shows("fails after #10: go generate ./...")
	d.shows("go there; u rolls it back")
	d.shows("M src/parse.go") // its difference can be read there
	d.press("G")
	d.shows("return nil, ErrEmpty")
	d.press("enter")
	d.lacks("This broke it:")
	d.shows("of #10 ╮")

	// Of what has ended the action can be left out.
	c := sceneWorkbench()
	over := sceneSession()
	over.State, over.EndedAt, over.Exit, over.Held = api.SessionEnded, sceneNow, &api.Exit{}, 0
	c.Put(api.Event{Session: &over})
	d = bench(t, c, 120, 35, "plain")
	d.press(leader, "4")
	d.press("F", "x", "enter")
	d.shows("M src/parse.go")
	d.shows("go there; W applies all but it")
	d.lacks("rolls it back")
}
