package box

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"stepbox/runner/holder"
)

// CanFreeze says whether cgroups can freeze the agent's tree.
func (c *Cgroups) CanFreeze() bool { return c.freezer != "" }

// Freeze asks for the agent's tree to be frozen, or thawed; Frozen says whether
// it is.
func (c *Cgroups) Freeze(frozen bool) error {
	write := c.freezeWrite(frozen)
	return set(filepath.Dir(write.Path), filepath.Base(write.Path), write.Value)
}

// ThawWrites are the writes by which a holder thaws the tree.
func (c *Cgroups) ThawWrites() []holder.Write {
	if c.freezer == "" {
		return nil
	}
	return []holder.Write{c.freezeWrite(false)}
}

func (c *Cgroups) freezeWrite(frozen bool) holder.Write {
	thaw := v1Thaw
	if c.unified {
		thaw = v2Thaw
	}
	write := thaw(c.freezer)
	switch {
	case frozen && c.unified:
		write.Value = "1"
	case frozen:
		write.Value = "FROZEN"
	}
	return write
}

// v1Thaw is the write that thaws a folder of cgroup v1's freezer.
func v1Thaw(folder string) holder.Write {
	return holder.Write{Path: filepath.Join(folder, "freezer.state"), Value: "THAWED"}
}

// v2Thaw is the same for the unified hierarchy.
func v2Thaw(folder string) holder.Write {
	return holder.Write{Path: filepath.Join(folder, "cgroup.freeze"), Value: "0"}
}

// Settling watches threads come to rest, over several looks.
type Settling struct {
	seen map[int]string // what threads had done by the last look, by thread id
}

// Look says whether all threads were seen at rest twice with nothing done in
// between.
func (s *Settling) Look(threads []int) bool {
	before := s.seen
	s.seen = make(map[int]string)
	still := before != nil
	for _, thread := range threads {
		counters, rests := atRest(thread)
		if !rests {
			s.seen = nil
			return false
		}
		s.seen[thread] = counters
		still = still && before[thread] == counters
	}
	return still
}

// Frozen says whether the tree is frozen, given the threads that wait for the
// exec gate. Those can't be frozen, nor does the kernel call a tree frozen that
// holds one; but they can't run either. So a tree with held threads counts as
// frozen once all others were seen at rest twice with nothing done in between:
// whatever wakes now is stopped on its way back to its program.
func (c *Cgroups) Frozen(held []int, settling *Settling) (bool, error) {
	if c.unified {
		text, err := get(c.freezer, "cgroup.events")
		if err != nil {
			return false, err
		}
		if slices.Contains(strings.Split(text, "\n"), "frozen 1") {
			return true, nil
		}
	} else {
		text, err := get(c.freezer, "freezer.state")
		if err != nil {
			return false, err
		}
		if text == "FROZEN" {
			return true, nil
		}
	}
	if len(held) == 0 {
		return false, nil
	}
	others := slices.DeleteFunc(c.threads(), func(thread int) bool { return slices.Contains(held, thread) })
	return settling.Look(others), nil
}

// atRest says whether a thread isn't running, and what it has done so far. A
// thread that is gone rests.
func atRest(thread int) (counters string, rests bool) {
	dir := "/proc/" + strconv.Itoa(thread)
	status, err := ReadStatus(thread)
	if err != nil {
		return "", true
	}
	if status.State == 'R' {
		// Some kernels show frozen threads as running; those sleep somewhere.
		where, err := os.ReadFile(filepath.Join(dir, "wchan"))
		if err != nil || len(where) == 0 || string(where) == "0" {
			return "", errors.Is(err, os.ErrNotExist)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "schedstat"))
	if err != nil {
		return status.CPU.String(), true
	}
	return string(text), true
}

// Heir lets the agent's processes go once nobody else is left who could: under cgroup
// v1 a frozen process doesn't die of a kill, so that when supervisor, holder and PID 1 are
// killed in a freeze, programs would stay until the next command. It is a shell, which isn't called as they are and waits for next to
// nothing: for the last of the three to close their end of a pipe.
type Heir struct {
	Alive *os.File // for each of the three to keep open; nil where no heir is needed, or can be had
	done  chan struct{}
}

// Heir starts one.
func (c *Cgroups) Heir() (h Heir) {
	if c.freezer == "" || c.unified {
		return h
	}
	freezer, err := os.OpenFile(c.freezeWrite(false).Path, os.O_WRONLY, 0)
	if err != nil {
		return h // who sweeps thaws, too
	}
	defer freezer.Close()
	waits, alive, err := os.Pipe()
	if err != nil {
		return h
	}
	defer waits.Close()
	cmd := exec.Command("/bin/sh", "-c", "read x; echo THAWED")
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout = "/", []string{}, waits, freezer
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		alive.Close()
		return h
	}
	h = Heir{alive, make(chan struct{})}
	go func() {
		defer close(h.done)
		_ = cmd.Wait() // there is no freezer any more, as a rule
	}()
	return h
}

// Dismiss ends it, after the holder and PID 1.
func (h Heir) Dismiss() {
	if h.Alive != nil {
		h.Alive.Close()
		<-h.done
	}
}
