package runner

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/session/e2e/must"
)

// limited starts with limits and skips the test when cgroups can't be used by
// this caller, since then limits are rlimits; see TestRlimits.
func (r *rig) limited(limits Limits, argv ...string) *running {
	r.t.Helper()
	r.spec.Limits = limits
	run := r.start(argv...)
	if in, source := run.Limits(); source == box.SourceNone {
		r.t.Skipf("no cgroup may be made here: %+v by %s", in, source)
	}
	return run
}

// TestMemoryLimit: what takes too much is killed, and PID 1 isn't.
func TestMemoryLimit(t *testing.T) {
	run := newRig(t).limited(Limits{Memory: 64 << 20, Pids: 100}, "/bin/sh", "-c",
		`python3 -c 'x = bytearray(200 << 20); print("GOT IT")'; echo status $?`)
	out, exit := run.wait()
	if strings.Contains(out, "GOT IT") || !strings.Contains(out, "status 137") || exit.Code != 0 {
		t.Errorf("exit is %+v: %q", exit, out)
	}
}

// TestMemoryLimitBelowPID1: where the agent may have less than PID 1 takes, and
// each of its programs takes less too, it is still not PID 1 that is killed.
func TestMemoryLimitBelowPID1(t *testing.T) {
	run := newRig(t).limited(Limits{Memory: 28 << 20, Pids: 100}, "/bin/sh", "-c",
		`for i in $(seq 24); do bash -c 'while :; do x=$x$(printf %1000000s); done' & all="$all $!"; done
		for p in $all; do wait $p; echo status $?; done; echo the agent goes on`)
	out, exit := run.wait()
	if !strings.Contains(out, "status 137") || !strings.Contains(out, "the agent goes on") || exit.Code != 0 {
		t.Errorf("exit is %+v: %q", exit, out)
	}
	if run.Starved() == 0 {
		t.Error("nothing was killed for want of memory")
	}
}

// TestForkBomb tells how an agent takes all process numbers of the host.
func TestForkBomb(t *testing.T) {
	run := newRig(t).limited(Limits{Pids: 40, Memory: 256 << 20, CPUs: 1}, "/bin/bash", "-c",
		`for i in $(seq 100); do sleep 100 & done 2>&1 | grep -q -i resource && echo refused; echo counted; cat`)
	eventually(t, func() bool {
		return run.Usage().Pids <= 56 && strings.Contains(run.text(), "counted") || strings.Contains(run.text(), "fork")
	}, run.text)
	if u := run.Usage(); u.Pids < 20 || u.Pids > 56 { // PID 1's threads may take some of its share
		t.Errorf("it has %d processes", u.Pids)
	}
}

// TestCPULimit: two busy loops get a quarter of a processor.
func TestCPULimit(t *testing.T) {
	run := newRig(t).limited(Limits{CPUs: 0.25, Pids: 50, Memory: 256 << 20}, "/bin/sh", "-c", "while :; do :; done & while :; do :; done & echo started; cat")
	run.expect("started")
	run.Usage()
	began := time.Now()
	eventually(t, func() bool { return time.Since(began) > time.Second }, run.text)
	if u := run.Usage(); u.CPU > 0.5 || u.CPU <= 0 || u.Memory <= 0 || u.Pids < 3 {
		t.Errorf("usage is %+v", u)
	}
}

// TestRlimits is for callers without cgroups: the number of processes is the
// user namespace's.
func TestRlimits(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root is exempt from RLIMIT_NPROC")
	}
	r := newRig(t)
	r.spec.Limits = Limits{Pids: 30, Memory: 128 << 20}
	run := r.start("/bin/bash", "-c", `for i in $(seq 60); do sleep 100 & done; echo counted; wait`)
	if _, source := run.Limits(); source != box.SourceNone {
		t.Skipf("%s bounds them", source)
	}
	run.expect("Resource temporarily unavailable")
	if u := run.Usage(); u.Pids > 30 || u.Memory == 0 {
		t.Errorf("usage is %+v", u)
	}
	r = newRig(t)
	r.spec.Limits = Limits{Memory: 128 << 20}
	if out, _ := r.sh(`python3 -c 'x = bytearray(300 << 20); print("GOT IT")'`); strings.Contains(out, "GOT IT") {
		t.Errorf("a process has more than its limit:\n%s", out)
	}
}

// TestSharedMemoryByRlimits tells how an agent has far more memory than it may where no
// cgroup bounds that: in files that no disk holds.
func TestSharedMemoryByRlimits(t *testing.T) {
	r := newRig(t)
	r.spec.Limits = Limits{Memory: 128 << 20}
	run := r.start("python3", "-u", "-c", `
import ctypes, mmap, os
piece = bytes(1 << 20)
def fill(name, fd):
    n = 0
    try:
        for n in range(200): os.write(fd, piece)
    except OSError: pass
    print(name, n)
fill("shm", os.open("/dev/shm/x", os.O_CREAT | os.O_RDWR))
print("sysv", ctypes.CDLL(None).shmget(0, 200 << 20, 0o600) != -1)
fill("memfd", os.memfd_create("x"))
m = mmap.mmap(-1, 30 << 20)
m.write(bytes(30 << 20))
for i in range(2):
    if os.fork() == 0: m[0]; break
print("filled")
input()`)
	if _, source := run.Limits(); source != box.SourceNone {
		t.Skipf("%s bounds it", source)
	}
	run.expect("filled")
	out, notes := run.text(), strings.Join(run.Notes(), "\n")
	if !strings.Contains(notes, "memory is bounded for each program by itself") {
		t.Errorf("it isn't said what isn't bounded: %q", notes)
	}
	if !strings.Contains(out, "shm 128") || strings.Contains(notes, "and System V's") && !strings.Contains(out, "sysv False") {
		t.Errorf("it took %q", out)
	}
	if n, bound := run.SharedMemory(t.Context()); n>>20 < 229 || n>>20 > 232 || bound != 128<<20 {
		t.Errorf("%d MiB of %d are counted", n>>20, bound>>20)
	}
}

// TestForkStormBelowTheUsersLimit tells how an agent that may have more processes
// than its user ends the supervisor, which can't start a thread. The user is one that
// has nothing else.
func TestForkStormBelowTheUsersLimit(t *testing.T) {
	if os.Getuid() != stormUID {
		runAs(t, stormUID, "^TestForkStormBelowTheUsersLimit$")
		return
	}
	used, err := box.CountTasks(os.Getuid(), 0)
	must.OK(t, err)
	var own unix.Rlimit
	must.OK(t, unix.Getrlimit(unix.RLIMIT_NPROC, &own))
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NPROC, &own) })
	must.OK(t, unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: uint64(used) + 120, Max: own.Max}))
	r := newRig(t)
	r.spec.Limits = Limits{Pids: 2000}
	run := r.start("/bin/bash", "-c", `for i in $(seq 200); do sleep 100 & done; echo counted; wait`)
	run.expect("Resource temporarily unavailable")
	if l, _ := run.Limits(); l.Pids < 24 || l.Pids > 72 || !strings.Contains(strings.Join(run.Notes(), "\n"), fmt.Sprintf("leaves the sandbox %d processes", l.Pids)) {
		t.Errorf("the agent may have %d processes, and %q is said", l.Pids, run.Notes())
	}
	for range 20 { // what a busy supervisor starts
		sleeper := exec.Command("sleep", "100")
		if err := sleeper.Start(); err != nil {
			t.Fatalf("nothing is left for the supervisor: %v", err)
		}
		t.Cleanup(func() { sleeper.Process.Kill(); sleeper.Wait() })
	}
}

// Users of whom no other test's sandboxes are: so none uses the folders that are
// delegated to one, nor the processes that another may have.
const (
	delegatedUID = 12399
	stormUID     = 12398
)

// TestDelegatedV1 makes cgroups where an administrator made folders for a user.
func TestDelegatedV1(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making the folders takes root")
	}
	for _, controller := range []string{"memory", "cpu", "cpuacct", "pids", "freezer"} {
		mount := filepath.Join("/sys/fs/cgroup", controller)
		if _, err := os.Stat(filepath.Join(mount, "cgroup.procs")); err != nil {
			t.Skipf("this host has no v1 controller %s", controller)
		}
		parent := filepath.Join(mount, "stepbox")
		folder := filepath.Join(parent, strconv.Itoa(delegatedUID))
		must.OK(t, os.MkdirAll(folder, 0o755))
		t.Cleanup(func() { os.Remove(folder); os.Remove(parent) })
		must.OK(t, os.Chown(folder, delegatedUID, delegatedUID))
		for _, file := range []string{"cgroup.procs", "tasks"} {
			must.OK(t, os.Chown(filepath.Join(folder, file), delegatedUID, delegatedUID))
		}
	}
	runAs(t, delegatedUID, "^(TestMemoryLimit|TestForkBomb|TestCPULimit|TestFreeze|TestFreezeWithHeldExec|TestSupervisorKilled|TestBothKilled|TestKillTree|TestDelegationIsUsed)$", delegatedV1+"=1")
}

// delegatedV1 says in the environment that cgroups may be made.
const delegatedV1 = "STEPBOX_TEST_DELEGATED"

func TestDelegationIsUsed(t *testing.T) {
	if os.Getenv(delegatedV1) == "" {
		t.Skip("nothing is delegated")
	}
	r := newRig(t)
	r.spec.Limits = Limits{Pids: 100} // of any number the user's own limit leaves fewer
	run := r.start("/bin/cat")
	if _, source := run.Limits(); source != box.SourceV1 {
		t.Errorf("limits come from %s", source)
	}
}
