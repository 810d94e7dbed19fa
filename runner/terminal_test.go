package runner

import (
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"

	"stepbox/session/e2e/must"
)

func TestTerminal(t *testing.T) {
	r := newRig(t)
	r.spec.Cols, r.spec.Rows = 100, 30
	out, exit := r.sh(`tty; stty size; echo term=$TERM; test -t 0 && test -t 1 && test -t 2 && echo all; echo to tty >/dev/tty; exit 3`)
	for _, want := range []string{"/dev/pts/0\n", "30 100\n", "term=xterm\n", "all\n", "to tty\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
	if exit != (Exit{Code: 3, Known: true}) {
		t.Errorf("exit is %+v", exit)
	}
}

// One agent can't take all the terminals of the machine.
func TestTerminalsAreBounded(t *testing.T) {
	run := newRig(t).start("/bin/bash", "-c", `for ((n = 1; n < 600; n++)); do exec {fd}<>/dev/ptmx || break; done; echo "$n terminals"`)
	if out, _ := run.wait(); !strings.Contains(out, strconv.Itoa(MaxTerminals)+" terminals\n") || !strings.Contains(out, "No space left on device") {
		t.Errorf("it had %q", out)
	}
}

func TestResize(t *testing.T) {
	run := newRig(t).start("/bin/bash", "-c", `trap 'stty size' WINCH; echo ready; for i in $(seq 1000); do sleep 0.02; done`)
	run.expect("ready")
	must.OK(t, pty.Setsize(run.Terminal(), &pty.Winsize{Cols: 132, Rows: 43}))
	run.expect("43 132")
}

func TestExitBySignal(t *testing.T) {
	_, exit := newRig(t).sh("kill -TERM $$")
	if exit != (Exit{Signal: "SIGTERM", Known: true}) {
		t.Errorf("exit is %+v", exit)
	}
}

func TestJobControl(t *testing.T) {
	run := newRig(t).start("/bin/bash", "--norc", "--noprofile", "-i")
	run.typeIn("PS1='> '\n")
	run.expect("> ")
	// Ctrl-C reaches the foreground job and not the shell.
	run.typeIn("sleep 1000\n")
	run.awaitForeground("sleep")
	run.typeIn("\x03")
	run.typeIn("echo status $?\n")
	run.expect("status 130")
	// Ctrl-Z stops it, fg goes on, and the shell gets the terminal back.
	run.typeIn("cat\n")
	run.awaitForeground("cat")
	run.typeIn("\x1a")
	run.expect("Stopped")
	run.typeIn("fg\n")
	run.awaitForeground("cat")
	run.typeIn("through cat\n")
	eventually(t, func() bool { return strings.Count(run.text(), "through cat") == 2 }, run.text)
	run.typeIn("\x04")
	run.typeIn("ps -o pid,ppid,tpgid,comm; trap; exit 4\n")
	out, exit := run.wait()
	if exit.Code != 4 {
		t.Errorf("exit is %+v:\n%s", exit, out)
	}
}

// awaitForeground waits until a command other than the shell has the terminal.
func (r *running) awaitForeground(name string) {
	r.t.Helper()
	eventually(r.t, func() bool {
		list, err := r.Processes()
		if err != nil {
			return false
		}
		for _, p := range list {
			if p.Name == name && p.State == 'S' && foreground(p.PID) {
				return true
			}
		}
		return false
	}, func() string { return "no " + name + " in the foreground:\n" + r.text() })
}

// TestSignalsAreDefault makes sure that an agent doesn't inherit what PID 1
// needs: signals ignored or blocked.
func TestSignalsAreDefault(t *testing.T) {
	out, _ := newRig(t).sh("grep -E 'Sig(Blk|Ign)' /proc/self/status")
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(strings.TrimSpace(line), "\t0000000000000000") {
			t.Errorf("%q", line)
		}
	}
}

// TestLastOutput makes sure that ending doesn't throw the last output away.
func TestLastOutput(t *testing.T) {
	out, _ := newRig(t).sh("seq 1 60000; printf end")
	if !strings.HasSuffix(out, "\n60000\nend") || strings.Count(out, "\n") != 60000 {
		t.Errorf("%d lines, the last of them %q", strings.Count(out, "\n"), out[max(0, len(out)-40):])
	}
}
