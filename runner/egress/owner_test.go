package egress

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// Whoever has a socket is found however long the search takes, and the search
// ends after so many descriptors.
func TestOwnerIsFoundOnABusyMachine(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must.OK(t, err)
	defer unix.Close(fd)
	var st unix.Stat_t
	must.OK(t, unix.Fstat(fd, &st))
	busy := func() []int {
		<-time.After(20 * time.Millisecond) // as long as a look at /proc may take
		return []int{os.Getpid()}
	}
	o := &owners{processes: busy, known: make(map[uint64]owner)}
	if found, ok := o.find(st.Ino, 0); ok {
		t.Errorf("without a look it is %+v's", found)
	}
	if found, ok := o.find(st.Ino, scanNow); !ok || found.pid != os.Getpid() {
		t.Errorf("it is %+v's, %v", found, ok)
	}
}

// A process without a program any more has none: the name that it goes by is its own choice.
func TestAProgramThatEndedIsUnknown(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.Env = []string{roleVar + "=client"} // which ends at once
	must.OK(t, cmd.Start())
	defer func() { _ = cmd.Wait() }()
	var info unix.Siginfo
	must.OK(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil))
	if got, _ := program(cmd.Process.Pid); got != "" {
		t.Errorf("its program is %q", got)
	}
}

// When a program's file was written is known also where it is no more.
func TestAProgramThatIsGoneFromItsPath(t *testing.T) {
	data, err := os.ReadFile("/proc/self/exe")
	must.OK(t, err)
	began := time.Now().Add(-time.Second) // file times are coarse
	file := t.TempDir() + "/copy"
	must.OK(t, os.WriteFile(file, data, 0o700))
	cmd := exec.Command(file)
	cmd.Env = []string{roleVar + "=client stay"}
	must.OK(t, cmd.Start())
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	must.OK(t, os.Remove(file))
	if path, changed := program(cmd.Process.Pid); path != file+" (deleted)" || changed.Before(began) {
		t.Errorf("it is %q, changed %s", path, changed)
	}
}
