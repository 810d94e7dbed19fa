package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"stepbox/session/api"
)

// An agent goes on without its person, who finds it as they left it, and sees
// it end when someone ends it elsewhere.
func TestDetachAndAttach(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(120, 35)
	tm.line(`for i in $(seq 60); do printf '\e[3%dmline %d\e[0m\n' $((i%8)) $i; done; printf '\e[1mlast li%s' 'ne: '`, "last line: ")
	before := tm.agent()
	tm.press(leader + "d")
	code, words := tm.ended()
	if code != 0 || !strings.Contains(words, "stepbox attach") {
		t.Errorf("exit %d, last words %q", code, words)
	}
	if list := p.sessions(); len(list) != 1 || !list[0].Live() {
		t.Fatalf("the record lists %+v", list)
	}

	tm = p.open(120, 35, "attach")
	tm.until("the screen is the one that was left", func() bool { return tm.agent() == before })
	tm.line("echo st''ill here", "still here")
	// A second person looks at the same agent: both see what it prints.
	other := p.open(120, 35, "attach", "shell")
	other.agentShows("still here")
	other.line("echo from an''other", "from another")
	tm.agentShows("from another")

	p.do("kill", "shell")
	for _, tm := range []*terminal{tm, other} {
		tm.until("the title says that it ended", func() bool { return strings.Contains(tm.first(), "ENDED") })
		tm.agentShows("from another")
		tm.press("qq")
		if code, _ := tm.ended(); code != 0 {
			t.Errorf("exit %d", code)
		}
	}
	if s := p.show("shell"); s.State != api.SessionEnded || s.Exit == nil || s.Exit.Signal == "" {
		t.Errorf("the record says %s, %+v; want that it was killed", s.State, s.Exit)
	}
}

// Killing the interface takes nothing from the agent.
func TestKilledInterface(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(120, 35)
	// The loop starts no programs: bash itself misses some interrupts between them.
	tm.line("n=0; until read -rt 0.05; do n=$((n+1)); echo count=$n; done", "count=3\n")
	tm.kill9()
	if list := p.sessions(); len(list) != 1 || list[0].State != api.SessionRunning {
		t.Fatalf("the record lists %+v", list)
	}
	tm = p.open(120, 35, "attach")
	tm.agentShows("count=")
	seen := tm.agent()
	tm.until("the agent goes on", func() bool { return tm.agent() != seen && strings.Contains(tm.agent(), "count=") })
	tm.press(ctrlC)
	tm.prompt()
	tm.line("echo in''terrupted", "interrupted")
	tm.press("exit" + enter)
	tm.until("the title says that it ended", func() bool { return strings.Contains(tm.first(), "ENDED") })
}

// Hanging up on the interface, as closing a terminal's window does, takes
// nothing from the agent either.
func TestClosedTerminal(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.shell(120, 35)
	tm.line("echo re''ady", "ready")
	tm.hangUp()
	if list := p.sessions(); len(list) != 1 || list[0].State != api.SessionRunning {
		t.Fatalf("the record lists %+v", list)
	}
	tm = p.open(80, 24, "attach")
	tm.agentShows("ready")
	tm.line("echo go''es on", "goes on")
}

// A signal that comes beside the hang-up, as at a logout, leaves no screen behind,
// whichever is first. Another screen's end takes nothing from the agent.
func TestClosedTerminalBesideSignal(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.do("run", "--name", "past", "--mode", "watch", "--", "echo", "in the past")
	p.do("run", "--name", "alive", "--mode", "watch", "--detach", "--", "bash", "-c", "echo alive by now; read -r")
	for round := range 8 {
		for _, c := range []struct {
			args  []string
			shows string
		}{{[]string{"replay", "past"}, "in the past"}, {[]string{"attach", "alive"}, "alive by now"}, {nil, "alive"}} {
			tm := p.open(80, 24, c.args...)
			tm.shows(c.shows)
			first, then := tm.pty.Close, func() error { return tm.cmd.Process.Signal(syscall.SIGTERM) }
			if round%2 == 1 {
				first, then = then, first
			}
			if err := errors.Join(first(), then()); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			tm.hangUp()
			how := tm.cmd.ProcessState.Sys().(syscall.WaitStatus)
			code := how.ExitStatus()
			if how.Signaled() { // it came when all was done already
				code = 128 + int(how.Signal())
			}
			if code != 128+int(syscall.SIGHUP) && code != 128+int(syscall.SIGTERM) {
				t.Errorf("%v: exit %d", c.args, code)
			}
		}
	}
	if s := p.show("alive"); !s.Live() {
		t.Errorf("the session is %s", s.State)
	}
}

// A screen ends with its terminal also where nobody tells it of the hang-up.
func TestClosedTerminalUntold(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.do("run", "--name", "past", "--mode", "watch", "--", "echo", "in the past")
	for _, args := range [][]string{{"replay", "past"}, nil} {
		tm := p.start(80, 24, func(ctx context.Context) *exec.Cmd {
			cmd := p.command(ctx, args...)
			cmd.Args = append([]string{"bash", "-c", `trap "" HUP; exec "$@"`, "bash", cmd.Path}, args...)
			cmd.Path = "/bin/bash"
			return cmd
		})
		tm.shows("past")
		tm.hangUp()
		if code := tm.cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGHUP) {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}

// The demo's folder goes with its screen, and so its session ends with it.
func TestClosedDemo(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.open(80, 24, "demo")
	tm.held("#1 held")
	tm.hangUp()
	if list := p.sessions(); len(list) != 1 || list[0].Live() {
		t.Fatalf("the record lists %+v", list)
	}
	if left, err := os.ReadDir(p.temp); err != nil || len(left) > 0 {
		t.Fatalf("of the demo's folder %v is left: %v", left, err)
	}
	tm = p.open(80, 24, "demo")
	tm.held("#1 held")
	tm.press(leader + "d")
	tm.until("it says that the demo is over", func() bool { return strings.Contains(tm.text(), "The demo is over") })
}

// Demos at once, in as many terminals, are sessions of their own.
func TestTwoDemos(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	first := p.open(80, 24, "demo")
	first.held("#1 held")
	second := p.open(120, 35, "demo")
	second.held("#1 held")
	p.holds("demo", 1)
	p.holds("demo-2", 1)
	for _, tm := range []*terminal{first, second} {
		tm.press(leader + "d")
		tm.until("it says that the demo is over", func() bool { return strings.Contains(tm.text(), "The demo is over") })
	}
}

// The first screen lists what runs above what ran. What ran can be opened and
// read, and takes no keys.
func TestHomeScreen(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.do("run", "--name", "bygone", "--mode", "watch", "--detach", "--", "sh", "-c", "echo what it printed; echo x > made.txt")
	if !poll(func() bool { s := p.sessions(); return len(s) == 1 && s[0].State == api.SessionEnded }) {
		t.Fatal("the first session didn't end")
	}
	p.do("run", "--name", "present", "--mode", "watch", "--detach", "--", "bash", "--norc", "--noprofile")

	tm := p.open(120, 35)
	tm.until("both are listed", func() bool {
		live, past := strings.Join(tm.box("Live"), "\n"), strings.Join(tm.box("Past"), "\n")
		return strings.Contains(live, "present") && strings.Contains(past, "bygone") && strings.Contains(past, "exit 0") &&
			!strings.Contains(live, "bygone")
	})
	tm.press("j" + enter)
	tm.until("the past one is open", func() bool { return strings.Contains(tm.first(), "ENDED: exit 0") })
	tm.agentShows("what it printed")
	tm.shows("A made.txt")
	tm.press("TTTT" + leader + "4") // no key of a course
	tm.press("a")
	tm.shows("the session has ended")
	if s := tm.text(); strings.Contains(s, "TTTT") {
		t.Errorf("a past session takes keys:\n%s", s)
	}
	tm.press(leader + "h")
	tm.shows("1 session", "present")
	tm.press("g" + enter)
	tm.agentShows("bash-")
	tm.line("echo al''ive", "alive")
	tm.press(leader + "h")
	tm.shows("bygone")
	tm.press("q")
	if code, _ := tm.ended(); code != 0 {
		t.Errorf("exit %d", code)
	}
	if s := p.show("present"); !s.Live() {
		t.Errorf("leaving the first screen left %s", s.State)
	}
	if s := p.show("bygone"); s.Actions != len(s.List) {
		t.Errorf("opening a past session changed it: %+v", s.List)
	}
}
