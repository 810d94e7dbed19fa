package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/runner/holder"
	"stepbox/runner/overlay/inode"
	"stepbox/session/e2e/must"
)

// supervisorSpec is the variable that holds a test supervisor's Spec.
const supervisorSpec = "STEPBOX_TEST_SPEC"

// alive is what a test supervisor says of its sandbox.
type alive struct {
	Holder, PID int
	Namespace   uint64
	Cgroups     []string
}

// testSupervisor is a supervisor of its own, to be killed.
func testSupervisor() {
	var spec Spec
	if err := json.Unmarshal([]byte(os.Getenv(supervisorSpec)), &spec); err != nil {
		panic(err)
	}
	s, err := Start(context.Background(), spec, Handlers{Gate: allowAll()})
	if err != nil {
		panic(err)
	}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := s.Terminal().Read(buffer)
			os.Stderr.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	folders := s.cgroups.Folders()
	if strings.Contains(spec.Argv[len(spec.Argv)-1], "FREEZE") {
		for end := time.Now().Add(patience); len(s.pids()) < 3; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				panic("the agent's processes don't come up")
			}
		}
		if strings.Contains(spec.Argv[len(spec.Argv)-1], "TRACED") {
			s.withoutFreezer()
		}
		for attempt := 0; ; attempt++ {
			err := s.Freeze(context.Background())
			if err == nil {
				break
			}
			if attempt == 20 {
				panic(err)
			}
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(alive{s.holder.PID, s.box.PID, s.namespace, folders})
	select {}
}

// supervise runs a sandbox in a supervisor process.
func (r *rig) supervise(argv ...string) (*exec.Cmd, alive) {
	r.t.Helper()
	r.spec.Argv = argv
	encoded, err := json.Marshal(r.spec)
	must.OK(r.t, err)
	cmd := exec.CommandContext(r.t.Context(), "/proc/self/exe", "test-supervisor")
	cmd.Env = append(os.Environ(), supervisorSpec+"="+string(encoded))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must.OK(r.t, err)
	must.OK(r.t, cmd.Start())
	var a alive
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &a)
	}
	if err != nil {
		cmd.Process.Kill()
		_ = cmd.Wait()
		r.t.Fatalf("the supervisor says %q: %v", line, err)
	}
	return cmd, r.named(a)
}

// named has the number of a sandbox's pid namespace stay its own: the kernel gives that of one
// which is gone to the next, as of a test beside this one.
func (r *rig) named(a alive) alive {
	r.t.Helper()
	namespace, err := os.Open("/proc/" + strconv.Itoa(a.PID) + "/ns/pid")
	must.OK(r.t, err)
	r.t.Cleanup(func() { namespace.Close() })
	return a
}

// assertGone checks that nothing is left of a sandbox, within a bound.
func (r *rig) assertGone(a alive, bound time.Duration) {
	r.t.Helper()
	var left []string
	for end := time.Now().Add(bound); ; time.Sleep(5 * time.Millisecond) {
		left = r.leftovers(a)
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("after %v there is still %v", bound, left)
		}
	}
}

func (r *rig) leftovers(a alive) (left []string) {
	members, err := box.Members(a.Namespace, func(int) bool { return true })
	if err != nil || len(members) > 0 {
		left = append(left, "processes "+strings.Trim(strings.Join(strings.Fields(strings.Trim(jsonText(members), "[]")), " "), " "))
	}
	for name, pid := range map[string]int{"PID 1": a.PID, "holder": a.Holder} {
		if status, err := box.ReadStatus(pid); err == nil && status.State != 'Z' {
			left = append(left, name)
		}
	}
	for _, folder := range a.Cgroups {
		if _, err := os.Stat(folder); err == nil {
			left = append(left, folder)
		}
	}
	if _, err := os.Stat(filepath.Join(r.spec.RunDir, r.spec.ID)); !errors.Is(err, fs.ErrNotExist) {
		left = append(left, "the run-time folder")
	}
	if _, err := os.Stat(filepath.Join(r.spec.StateDir, "work")); !errors.Is(err, fs.ErrNotExist) {
		left = append(left, "overlayfs's own folder")
	}
	// This thread's: libcontainer may have left the first one in a sandbox that is gone.
	if mounts, err := os.ReadFile("/proc/thread-self/mountinfo"); err != nil || strings.Contains(string(mounts), r.base) {
		left = append(left, "mounts", string(mounts))
	}
	return left
}

func jsonText(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// assertNoCgroups looks for cgroups named after a sandbox.
func assertNoCgroups(t testing.TB, id string) {
	t.Helper()
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasSuffix(entry.Name(), id) {
			t.Errorf("cgroup %q is left", path)
		}
		return nil
	})
}

func TestSupervisorKilled(t *testing.T) {
	for name, script := range map[string]string{
		"running":  "setsid sleep 1000 & trap '' TERM HUP INT; (trap '' TERM HUP; sleep 1000) & cat",
		"frozen":   "sleep 1000 & sleep 1001; : FREEZE",
		"stopping": "kill -STOP $$",
		"traced":   "while :; do echo >>count; done & sleep 1001; : FREEZE TRACED",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			cmd, a := r.supervise("/bin/sh", "-c", script)
			count := filepath.Join(r.spec.StateDir, "upper", "count")
			before, _ := os.Stat(count)
			must.OK(t, cmd.Process.Kill())
			_ = cmd.Wait()
			r.assertGone(a, patience)
			if now, _ := os.Stat(count); name == "traced" && before != nil && now.Size() != before.Size() {
				t.Error("it ran on before it ended")
			}
		})
	}
}

// TestRunTimeFolderGoesLast: who finds a session's run-time folder gone may make its
// next sandbox, whose work folder is then no longer the old holder's to remove.
func TestRunTimeFolderGoesLast(t *testing.T) {
	r := newRig(t)
	cmd, a := r.supervise("/bin/sh", "-c", "cat")
	work := filepath.Join(r.spec.StateDir, "work")
	for i := range 3000 { // that take a while to remove
		must.OK(t, os.WriteFile(filepath.Join(work, strconv.Itoa(i)), nil, 0o600))
	}
	must.OK(t, cmd.Process.Kill())
	_ = cmd.Wait()
	eventually(t, func() bool {
		_, err := os.Lstat(filepath.Join(r.spec.RunDir, r.spec.ID))
		return errors.Is(err, fs.ErrNotExist)
	}, func() string { return "the run-time folder stays" })
	if _, err := os.Lstat(work); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the work folder is still there, or can't be seen: %v", err)
	}
	r.assertGone(a, patience)
}

// TestBothKilled leaves nobody to clean up: PID 1 follows by itself, and Sweep
// does the rest, frozen processes included.
func TestBothKilled(t *testing.T) {
	for name, script := range map[string]string{
		"running": "setsid sleep 1000 & cat",
		"frozen":  "sleep 1000 & sleep 1001; : FREEZE",
		"traced":  "sleep 1000 & sleep 1001; : FREEZE TRACED",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			cmd, a := r.supervise("/bin/sh", "-c", script)
			if swept, err := Sweep(t.Context(), r.spec.RunDir); len(swept) != 0 || err != nil {
				t.Fatalf("a live sandbox is swept: %v, %v", swept, err)
			}
			// The holder first, before it can act.
			must.OK(t, unix.Kill(a.Holder, unix.SIGKILL))
			must.OK(t, cmd.Process.Kill())
			_ = cmd.Wait()
			eventually(t, func() bool { // the killed let their lock go when the kernel comes to it
				swept, err := Sweep(t.Context(), r.spec.RunDir)
				return err == nil && slices.Equal(swept, []string{r.spec.ID})
			}, func() string { return "nothing is swept" })
			r.assertGone(a, patience)
		})
	}
}

// TestAllKilled leaves nobody but the agent's processes, which end although they are
// frozen, before any other command looks.
func TestAllKilled(t *testing.T) {
	r := newRig(t)
	cmd, a := r.supervise("/bin/sh", "-c", "sleep 1000 & sleep 1001; : FREEZE")
	for _, pid := range []int{a.Holder, cmd.Process.Pid, a.PID} {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) { // PID 1 follows the supervisor
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	eventually(t, func() bool {
		members, err := box.Members(a.Namespace, func(int) bool { return true })
		return err == nil && len(members) == 0
	}, func() string { return "processes of the agent stay" })
	eventually(t, func() bool {
		swept, err := Sweep(t.Context(), r.spec.RunDir)
		return err == nil && slices.Equal(swept, []string{r.spec.ID})
	}, func() string { return "nothing is swept" })
	r.assertGone(a, patience)
}

// TestHolderStopped: a holder that doesn't do its part doesn't keep a sandbox
// from its end.
func TestHolderStopped(t *testing.T) {
	r := newRig(t)
	run := r.start("/bin/cat")
	a := r.named(alive{run.holder.PID, run.box.PID, run.namespace, run.cgroups.Folders()})
	must.OK(t, unix.Kill(run.holder.PID, unix.SIGSTOP))
	opened := make(chan error, 1)
	go func() {
		f, err := run.OpenUpper(context.Background(), "x")
		if err == nil {
			f.Close()
		}
		opened <- err
	}()
	run.closing.Do(func() {
		if err := run.close(t.Context()); err == nil {
			t.Error("nobody hears that the holder was killed")
		}
	})
	if err := <-opened; err == nil {
		t.Error("a holder that is stopped opens files")
	}
	r.assertGone(a, patience)
}

// TestHolderKilled: a sandbox whose holder died is ended, says why, and is
// cleaned up by its supervisor.
func TestHolderKilled(t *testing.T) {
	r := newRig(t)
	run := r.start("/bin/cat")
	a := r.named(alive{run.holder.PID, run.box.PID, run.namespace, run.cgroups.Folders()})
	must.OK(t, unix.Kill(run.holder.PID, unix.SIGKILL))
	eventually(t, func() bool {
		select {
		case <-run.ended:
			return true
		default:
			return false
		}
	}, func() string { return "the sandbox goes on without its holder" })
	if exit, err := run.Wait(); !errors.Is(err, ErrHolder) || exit.Known {
		t.Errorf("exit is %+v, %v", exit, err)
	}
	run.closing.Do(func() {
		if err := run.close(t.Context()); err == nil {
			t.Error("nobody hears that the holder was killed")
		}
	})
	r.assertGone(a, patience)
}

// TestFirstKilled: a sandbox that somebody else ended says so.
func TestFirstKilled(t *testing.T) {
	run := newRig(t).start("/bin/cat")
	must.OK(t, unix.Kill(run.box.PID, unix.SIGKILL))
	<-run.ended
	if exit, err := run.Wait(); !errors.Is(err, ErrFirst) || exit.Known {
		t.Errorf("exit is %+v, %v", exit, err)
	}
}

// TestSweepSparesNewcomers: a folder that is being made is never taken for one
// that was left.
func TestSweepSparesNewcomers(t *testing.T) {
	dir := t.TempDir()
	done := make(chan struct{})
	swept := make(chan []string)
	go func() {
		var all []string
		defer func() { swept <- all }()
		for {
			select {
			case <-done:
				return
			default:
			}
			names, err := Sweep(context.Background(), dir)
			if err != nil {
				t.Error(err)
				return
			}
			all = append(all, names...)
		}
	}()
	for i := range 2000 {
		made := filepath.Join(dir, "s"+strconv.Itoa(i))
		lock, err := makeLocked(made)
		must.OK(t, err)
		if _, err := os.Stat(filepath.Join(made, holder.LockName)); err != nil {
			t.Fatal(err)
		}
		must.OK(t, os.RemoveAll(made))
		lock.Close()
	}
	close(done)
	if all := <-swept; len(all) > 0 {
		t.Errorf("swept: %v", all)
	}
}

// TestAllKilledWhileFrozen leaves frozen processes of which only their cgroup's
// note tells: the first process is killed with those that guard it.
func TestAllKilledWhileFrozen(t *testing.T) {
	r := newRig(t)
	cmd, a := r.supervise("/bin/sh", "-c", "sleep 1000 & sleep 1001; : FREEZE")
	if err := cmd.Process.Signal(unix.SIGSTOP); err != nil { // or it would clean up once the holder is gone
		t.Fatal(err)
	}
	for _, pid := range []int{a.Holder, a.PID, cmd.Process.Pid} {
		must.OK(t, unix.Kill(pid, unix.SIGKILL))
	}
	_ = cmd.Wait()
	path := filepath.Join(r.spec.RunDir, r.spec.ID, guardName)
	var guard holder.Guard
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &guard)
	}
	must.OK(t, err)
	guard.PID = 0 // as before the first process was noted
	must.OK(t, writeGuard(filepath.Dir(path), guard))
	eventually(t, func() bool {
		swept, err := Sweep(t.Context(), r.spec.RunDir)
		return err == nil && slices.Equal(swept, []string{r.spec.ID})
	}, func() string { return "nothing is swept" })
	r.assertGone(a, patience)
}

func TestCloseLeavesNothing(t *testing.T) {
	r := newRig(t)
	run := r.start("/bin/sh", "-c", "sleep 1000 & setsid sleep 1000 & cat")
	a := r.named(alive{run.holder.PID, run.box.PID, run.namespace, run.cgroups.Folders()})
	must.OK(t, run.Close(t.Context()))
	r.assertGone(a, 0)
	if err := run.Close(t.Context()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if exit, _ := run.Wait(); exit.Known {
		t.Errorf("exit is %+v", exit)
	}
}

// TestResume: what the agent left in upper and /tmp is there again.
func TestResume(t *testing.T) {
	r := newRig(t)
	r.sh("echo kept >file; mkdir dir; echo temp >/tmp/scratch")
	r.spec.ID += "-again"
	out, _ := r.sh("cat file /tmp/scratch; rmdir dir && echo gone")
	if out != "kept\ntemp\ngone\n" {
		t.Errorf("the next sandbox sees %q", out)
	}
}

// TestHelpersRefuse: the entries for helpers are of no use to anybody else.
func TestHelpersRefuse(t *testing.T) {
	for _, entry := range []string{"holder", "pid1"} {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", entry)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "stepbox: "+entry) {
			t.Errorf("%s: %q, %v", entry, out, err)
		}
	}
}

// TestAtLeast compares kernel releases.
func TestAtLeast(t *testing.T) {
	for release, want := range map[string]bool{"5.19.0": true, "5.18.19": false, "6.1.0-13-amd64": true, "6.12-rc1": true, "4.20": false, "7": false, "": false, "5.19+": true} {
		if got := inode.AtLeast(release, 5, 19); got != want {
			t.Errorf("%q: %v", release, got)
		}
	}
}

func TestPreflight(t *testing.T) {
	for _, f := range Preflight(t.Context(), filepath.Join(t.TempDir(), "data")) {
		t.Logf("%-26s ok=%v fatal=%v %s", f.Name, f.OK, f.Fatal, f.Detail)
		if !f.OK && f.Fatal {
			t.Errorf("%s: %s\n%s", f.Name, f.Detail, f.Fix)
		}
		if !f.OK && f.Fix == "" {
			t.Errorf("%s: nothing says how to mend it", f.Name)
		}
	}
	assertNoCgroups(t, "probe-"+strconv.Itoa(os.Getpid()))
}

// TestSweepSparesOthers has folders beside those of sandboxes that are anybody's, as
// where a note is wrong or damaged that says where a sandbox's is.
func TestSweepSparesOthers(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-24 * time.Hour)
	write := func(path, text string) {
		t.Helper()
		must.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(filepath.Dir(path), old, old)))
	}
	write(filepath.Join(dir, "projects", "work.txt"), "work")
	write(filepath.Join(dir, "database", holder.LockName), "12345\n") // another program's
	write(filepath.Join(dir, "database", "rows"), "rows")
	write(filepath.Join(dir, "behind", "rows"), "rows")
	write(filepath.Join(dir, "linked", "rows"), "rows")
	write(filepath.Join(dir, "elsewhere"), "")
	must.OK(t, errors.Join(os.Symlink("behind", filepath.Join(dir, "link")), os.Symlink("../elsewhere", filepath.Join(dir, "linked", holder.LockName)), os.Chtimes(filepath.Join(dir, "linked"), old, old)))
	must.OK(t, errors.Join(os.Mkdir(filepath.Join(dir, "cut-short"), 0o700), os.Chtimes(filepath.Join(dir, "cut-short"), old, old)))
	write(filepath.Join(dir, "left", holder.LockName), "")
	write(filepath.Join(dir, "left", "state", "file"), "of a sandbox")
	write(filepath.Join(dir, "other", holder.LockName), "")
	if swept, err := SweepOne(t.Context(), dir, "left"); err != nil || !swept {
		t.Errorf("one that was left: %v, %v", swept, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "other", holder.LockName)); err != nil {
		t.Errorf("beside the one that was swept: %v", err)
	}
	if swept, err := Sweep(t.Context(), dir); err != nil || !slices.Equal(swept, []string{"other"}) {
		t.Errorf("swept: %v, %v", swept, err)
	}
	for _, name := range []string{"projects/work.txt", "database/rows", "behind/rows", "linked/rows", "link"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "cut-short")); err == nil {
		t.Error("an empty one that was left is there still")
	}
}

// TestRemovalKeepsLock: what was removed by half is known as a sandbox's, and nothing
// is removed behind a link.
func TestRemovalKeepsLock(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	must.OK(t, errors.Join(os.MkdirAll(filepath.Join(run, "fixed"), 0o700), os.WriteFile(filepath.Join(run, "a"), nil, 0o600), os.WriteFile(filepath.Join(run, holder.LockName), nil, 0o600)))
	must.OK(t, errors.Join(os.Symlink("run", filepath.Join(dir, "link")), holder.RemoveAll(filepath.Join(dir, "link"))))
	if _, err := os.Stat(filepath.Join(run, "a")); err != nil {
		t.Fatalf("behind a link: %v", err)
	}
	if err := unix.Mount("none", filepath.Join(run, "fixed"), "tmpfs", 0, ""); err != nil {
		t.Skipf("a mount keeps a folder from being removed: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(filepath.Join(run, "fixed"), 0) })
	if err := holder.RemoveAll(run); err == nil {
		t.Fatal("a mount was removed")
	}
	if _, err := os.Stat(filepath.Join(run, holder.LockName)); err != nil {
		t.Errorf("removed by half: %v", err)
	}
}
