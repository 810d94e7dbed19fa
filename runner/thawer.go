package runner

import (
	"os"
	"os/exec"
	"syscall"
)

// thawer lets the agent's processes go once nobody else is left who could. Under
// cgroup v1 what is frozen doesn't die of a kill, with its pid namespace either: when
// supervisor, holder and PID 1 are killed in a freeze, programs would stay until the
// next command. It is a shell, which isn't called as they are and waits for next to
// nothing: for the last of the three to close their end of a pipe.
type thawer struct {
	end  *os.File // kept open by each of the three; nil where none is needed, or can be had
	done chan struct{}
}

// startThawer starts one for an agent's freezer, which it closes; nil is none.
func startThawer(freezer *os.File) (t thawer) {
	if freezer == nil {
		return t
	}
	defer freezer.Close()
	waits, end, err := os.Pipe()
	if err != nil {
		return t
	}
	defer waits.Close()
	cmd := exec.Command("/bin/sh", "-c", "read x; echo THAWED")
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout = "/", []string{}, waits, freezer
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil { // the next Sweep thaws, too
		end.Close()
		return t
	}
	t = thawer{end, make(chan struct{})}
	go func() {
		defer close(t.done)
		_ = cmd.Wait() // there is no freezer any more, as a rule
	}()
	return t
}

// close ends it, after the holder and PID 1.
func (t thawer) close() {
	if t.end != nil {
		t.end.Close()
		<-t.done
	}
}
