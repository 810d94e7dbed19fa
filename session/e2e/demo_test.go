package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/demo"
	"stepbox/session/e2e/must"
)

// A person goes through the whole demo, at the sizes that terminals have: each
// thing that it promises happens in front of them, and their machine is as it was.
func TestDemo(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 35}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			t.Parallel()
			watchDemo(t, size[0], size[1])
		})
	}
}

func watchDemo(t *testing.T, cols, rows int) {
	p := newPerson(t)
	secret(p)
	tm := p.open(cols, rows, "demo")

	// A command: opened, read, approved.
	tm.held("#1 held")
	tm.shows("STEP")
	tm.decide("◆ #1 command held", "a", "$ cat README.md", "step mode holds every action")
	tm.held("#2 held")
	tm.undock()
	tm.agentShows("greet.sh says hello")
	tm.decide("◆ #2 command held", "a")

	// An edit by no program: kept.
	tm.held("1 of 2 held")
	tm.decide("◆ #3 edit held", "y", "M notes.txt")
	tm.held("#4 held")
	tm.decide("◆ #4 command held", "a")
	tm.held("1 of 2 held")
	tm.decide("◆ #4 edit held", "y", "M greet.sh")
	tm.held("#5 held")
	tm.decide("◆ #5 command held", "a")

	// The attempt to delete everything: denied, with a reason that the agent reads.
	tm.held("#6 held")
	tm.ask("◆ #6 command held")
	tm.shows("$ rm -rf ./README.md")
	tm.answer("d", "asks for a reason", func() bool { return strings.Contains(tm.text(), "Deny command") })
	tm.press("it is not clutter")
	tm.shows("it is not clutter")
	tm.tick() // a line that was typed before the question was in view isn't sent
	tm.answer(enter, "denied", func() bool { return !strings.Contains(tm.text(), "Deny command") })
	tm.undock()
	tm.agentShows("stepbox: denied: it is not clutter")

	// The connection: denied, which Network says.
	tm.until("a connection is held", func() bool {
		return strings.Contains(tm.last(), "connection held") || strings.Contains(tm.last(), "telemetry.example:443 held")
	})
	tm.ask("◆ connection held")
	tm.shows("telemetry.example, TCP port 443", "no rule knows this host")
	tm.answer("d", "asks for a reason", func() bool { return strings.Contains(tm.text(), "Deny connection") })
	tm.answer(enter, "denied", func() bool { return !strings.Contains(tm.text(), "Deny connection") })
	tm.held("#7 held")
	tm.press(leader + "3")
	tm.until("the refusal is in Network", func() bool {
		return slices.ContainsFunc(tm.box("3 Network"), func(r string) bool {
			return strings.Contains(r, "telemetry.example") && strings.Contains(r, "denied")
		})
	})
	tm.press(leader + "1")
	tm.agentShows("Refused. I would like your private key.")

	// The person's key isn't there.
	tm.decide("◆ #7 command held", "a")
	tm.undock()
	tm.agentShows("No key here.")

	// The tidying: approved, looked at, taken back from the list.
	tm.held("#8 held")
	tm.decide("◆ #8 command held", "a")
	tm.held("1 of 2 held")
	tm.press(leader + "4")
	tm.awake("u roll back")
	const plan = "Roll back what #8 changed?"
	tm.answer("u", "shows what would go back", func() bool { return strings.Contains(tm.text(), plan) })
	tm.shows("M greet.sh", "M notes.txt", "y roll back")
	tm.tick()
	tm.answer("y", "rolled back", func() bool { return !strings.Contains(tm.text(), plan) })
	tm.held("#9 held")
	tm.until("the list says that it was rolled back", func() bool {
		return slices.ContainsFunc(tm.box("4 Actions"), func(r string) bool {
			return strings.Contains(r, "sh tidy.sh") && strings.Contains(r, "rolled back")
		})
	})
	tm.decide("◆ #9 command held", "a")

	// The end: the agent saw its files as they were before the tidying.
	tm.until("the title says that it ended", func() bool { return strings.Contains(tm.first(), "ENDED: exit 0") })
	tm.shows("2 changed files aren't in your project yet", "w apply")
	tm.press(escape)
	tm.gone("in your project yet")
	tm.press(leader + "1")
	tm.agentShows(`echo hello "$1"`)
	tm.agentShows("That was all. Nothing outside this")
	if s := tm.text(); strings.Contains(s, secretText) {
		t.Errorf("the agent has the person's key:\n%s", s)
	}
	sameProject(t, p)
	got := map[int]string{}
	for _, a := range p.show("demo").List {
		got[a.N] = fmt.Sprint(a.State, " ", a.Review)
	}
	if got[6] != "denied " || got[3] != "ended kept" || got[4] != "ended kept" || got[8] != "ended rolled back" {
		t.Errorf("the record says %v", got)
	}

	tm.press(leader + "d")
	code, words := tm.ended()
	if code != 0 || !strings.Contains(words, "The demo is over, and its folder gone;") {
		t.Errorf("exit %d, last words %q", code, words)
	}
	if list := p.sessions(); len(list) != 1 || list[0].State != api.SessionEnded {
		t.Errorf("the record lists %+v", list)
	}
	// That the demo's folder is gone is seen to when the person leaves.
}

// undock leaves the question that followed, so that the agent's screen is seen whole.
func (tm *terminal) undock() {
	tm.t.Helper()
	tm.until("the next question followed", func() bool { return strings.Contains(tm.last(), "deciding") && strings.Contains(tm.last(), "◆") })
	tm.tick()
	tm.press(escape)
	tm.until("it is left", func() bool { return !strings.Contains(tm.last(), "deciding") })
}

const secretText = "SECRET-OF-THE-HOST"

// secret puts a key where the demo's agent looks for one.
func secret(p *person) {
	p.t.Helper()
	must.OK(p.t, os.Mkdir(filepath.Join(p.home, ".ssh"), 0o700))
	must.OK(p.t, os.WriteFile(filepath.Join(p.home, ".ssh", "id_ed25519"), []byte(secretText+"\n"), 0o600))
}

// sameProject compares the demo's project on the host with a fresh one.
func sameProject(t *testing.T, p *person) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(p.temp, "stepbox-demo-*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("the demo's project is in %q (%v)", dirs, err)
	}
	fresh, remove, err := demo.Project()
	must.OK(t, err)
	defer remove()
	want, got := files(t, fresh), files(t, filepath.Join(dirs[0], "demo"))
	if len(got) != len(want) {
		t.Errorf("the project on the host has %d files, want %d", len(got), len(want))
	}
	for name, text := range want {
		if !bytes.Equal(got[name], text) {
			t.Errorf("%s changed on the host: %q", name, got[name])
		}
	}
}

func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	list, err := os.ReadDir(dir)
	must.OK(t, err)
	out := map[string][]byte{}
	for _, f := range list {
		if out[f.Name()], err = os.ReadFile(filepath.Join(dir, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
