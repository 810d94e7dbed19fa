package gate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

func init() {
	roles["supervisor"] = playSupervisor
	roles["slow exec"] = playSlowExec
}

// playSupervisor owns the gate of a sandbox whose listener is its descriptor 3,
// tells the pid of each victim, and then answers with the verdict it was given.
func playSupervisor(args []string) {
	g, err := New(os.NewFile(3, "listener"), Options{Exec: func(e *Exec) {
		if filepath.Base(e.Program.Path) != "victim" {
			e.Allow()
			return
		}
		fmt.Println(e.PID)
		if args[0] == "deny" {
			e.Deny("because")
		} else {
			e.Allow()
		}
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin) // until killed, or the test is over
	_ = g.Close()
}

// playSlowExec starts a program with so many arguments that the kernel needs a
// while to take them over.
func playSlowExec(args []string) {
	for range 16 {
		args = append(args, strings.Repeat("x", 100<<10))
	}
	c := exec.Command(args[0], args[1:]...)
	c.Env = clean()
	fmt.Println(c.Run())
}

// A supervisor that is killed after its verdict takes the process along that
// stands before the first instruction of what it judged. It is caught there by
// stopping it first.
func TestKilledBetweenVerdictAndCheck(t *testing.T) {
	const repeats = 100 // until it was seen
	for _, verdict := range []string{"deny", "allow"} {
		t.Run(verdict, func(t *testing.T) {
			for range repeats {
				if killBeforeCheck(t, verdict) {
					return
				}
			}
			t.Error("the supervisor was never caught in time, so that this test shows nothing")
		})
	}
}

// killBeforeCheck makes one attempt, and says whether the supervisor was caught.
func killBeforeCheck(t *testing.T, verdict string) (caught bool) {
	v := newVictim(t)
	supervisor := exec.Command("/proc/self/exe", verdict)
	supervisor.Env = append(os.Environ(), roleEnv+"=supervisor")
	stdin, err := supervisor.StdinPipe()
	must.OK(t, err)
	stdout, err := supervisor.StdoutPipe()
	must.OK(t, err)
	said := bufio.NewReader(stdout)
	line := func() string {
		l, err := said.ReadString('\n')
		must.OK(t, err)
		return strings.TrimSpace(l)
	}
	b := start(t, setup{role: "slow exec", args: []string{v.path, v.ran()}, elsewhere: func(listener *os.File) {
		supervisor.ExtraFiles = []*os.File{listener}
		must.OK(t, supervisor.Start())
		listener.Close()
		if l := line(); l != "ready" {
			t.Fatal(l)
		}
	}})
	defer func() {
		stdin.Close()
		_ = supervisor.Process.Kill()
		_ = supervisor.Wait() // it was killed
	}()
	pid, err := strconv.Atoi(line())
	must.OK(t, err)
	child, err := openProc(pid)
	if err != nil {
		return false // it has ended already
	}
	defer child.close()
	for { // traced, or gone
		st, err := child.status()
		if err != nil {
			return false
		}
		if st.tracer != 0 {
			break
		}
		runtime.Gosched()
	}
	must.OK(t, unix.Kill(supervisor.Process.Pid, unix.SIGSTOP))
	b.eventually("the supervisor is stopped", func() bool { return letterOf(supervisor.Process.Pid) == 'T' })
	// It may have been stopped before its answer went out, which then never
	// comes; or after it was done.
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline) && !caught; {
		st, err := child.status()
		if err != nil || st.tracer == 0 {
			break
		}
		exe, err := child.link("exe")
		state, gone := child.state()
		caught = err == nil && gone == nil && exe == v.path && state.letter == 't'
		runtime.Gosched()
	}
	must.OK(t, supervisor.Process.Kill())
	if !caught {
		return false
	}
	b.wait()
	want := "signal: killed\n"
	if !pidfdTellsExit() {
		want = "" // its parent is traced too, as the older kernel needs it for exits
	}
	if got := b.out.String(); got != want {
		t.Errorf("it ended as %q", got)
	}
	v.spared(t)
	if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("it lives: %v", err)
	}
	return true
}

func letterOf(pid int) byte {
	d, err := openProc(pid)
	if err != nil {
		return 0
	}
	defer d.close()
	s, err := d.state()
	if err != nil {
		return 0
	}
	return s.letter
}
