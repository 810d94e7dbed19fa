package box

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// supervisorFolder is the leaf that this process moves to: a cgroup that hands
// controllers down holds no processes itself (cgroups(7), "no internal
// processes").
const supervisorFolder = "supervisor"

// delegated is where this process may make cgroups, found once: finding it
// moves the process.
var delegated struct {
	sync.Mutex
	known  bool
	folder string
	source string
}

// makeV2 makes the box's folder where this process was given a subtree.
func (c *Cgroups) makeV2(ctx context.Context, all []hierarchy, name string, limits Limits) error {
	i := slices.IndexFunc(all, func(h hierarchy) bool { return h.unified })
	if i < 0 {
		return c.plan(nil, name, v2Thaw)
	}
	base, source := findDelegated(ctx, all[i])
	if base == "" {
		return c.plan(nil, name, v2Thaw) // libcontainer tries for itself
	}
	if err := c.plan([]string{base}, name, v2Thaw); err != nil {
		return err
	}
	folder := filepath.Join(base, name)
	if err := os.Mkdir(folder, 0o755); err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
			return nil
		}
		return fmt.Errorf("cannot make a cgroup: %w", err)
	}
	c.Source, c.unified = source, true
	c.folders[""] = folder
	c.freezer, c.memory = filepath.Join(folder, agentFolder), filepath.Join(folder, agentFolder)
	for _, leaf := range []string{c.freezer, filepath.Join(folder, restFolder)} {
		if err := os.Mkdir(leaf, 0o755); err != nil {
			return fmt.Errorf("cannot make a cgroup: %w", err)
		}
	}
	// A file is missing where its controller wasn't delegated.
	if limits.Memory > 0 && set(folder, "memory.max", strconv.FormatInt(limits.Memory+ownMemory, 10)) == nil {
		_ = set(folder, "memory.swap.max", "0")
		c.InForce.Memory = limits.Memory
	}
	if limits.CPUs > 0 && set(folder, "cpu.max", fmt.Sprintf("%d %d", int(limits.CPUs*period), period)) == nil {
		c.InForce.CPUs = limits.CPUs
	}
	if limits.Pids > 0 && set(folder, "pids.max", strconv.FormatInt(limits.Pids+ownPids, 10)) == nil {
		c.InForce.Pids = limits.Pids
	}
	return nil
}

// splitMemory has the unified hierarchy count and bound the agent's memory apart
// from PID 1's. The first process must have left the box's own cgroup, into which
// libcontainer puts it, and into which it couldn't come afterwards.
func (c *Cgroups) splitMemory() error {
	err := set(c.folders[""], "cgroup.subtree_control", "+memory")
	if c.InForce.Memory == 0 {
		return nil // perhaps it wasn't delegated; then nothing is counted
	}
	if err == nil {
		err = set(c.memory, "memory.max", strconv.FormatInt(c.InForce.Memory, 10))
	}
	_ = set(c.memory, "memory.swap.max", "0") // absent unless the kernel accounts swap
	return err
}

// findDelegated finds the folder that boxes are made in, with controllers
// enabled for them as far as possible: a scope asked of systemd, else the own
// cgroup where that is this user's. The answer holds for the process's life.
func findDelegated(ctx context.Context, h hierarchy) (folder, source string) {
	delegated.Lock()
	defer delegated.Unlock()
	if delegated.known {
		return delegated.folder, delegated.source
	}
	own, source := h.own, SourceV2
	switch {
	case ownScope(own):
		// Started by one of ours, or by systemd-run for us.
		if filepath.Base(own) == supervisorFolder {
			own = filepath.Dir(own)
		}
		source = SourceSystemd
	default:
		if scope, err := askForScope(ctx); err == nil {
			own, source = filepath.Join(h.mount, scope), SourceSystemd
		}
	}
	if unix.Access(filepath.Join(own, "cgroup.procs"), unix.W_OK) != nil || unix.Access(own, unix.W_OK) != nil {
		own, source = "", SourceNone
	} else {
		enableControllers(own)
	}
	delegated.known, delegated.folder, delegated.source = true, own, source
	return own, source
}

// ownScope says whether a cgroup is a scope that was made for a supervisor.
func ownScope(folder string) bool {
	name := filepath.Base(folder)
	if name == supervisorFolder {
		name = filepath.Base(filepath.Dir(folder))
	}
	return strings.HasPrefix(name, scopePrefix) && strings.HasSuffix(name, ".scope")
}

// enableControllers hands controllers on to the folders below. Processes in the
// way move to a leaf first: with them in place the kernel would still hand on
// cpu and pids, and make the folder the root of a threaded subtree, in which
// boxes can't be (cgroups(7), "Cgroups v2 thread mode"). Where some of them aren't
// this process or its children, boxes go without limits but can be frozen.
func enableControllers(folder string) {
	pids, ok := readIDs(filepath.Join(folder, "cgroup.procs"))
	if !ok || slices.ContainsFunc(pids, func(pid int) bool { return !ours(pid) }) {
		return
	}
	if len(pids) > 0 {
		leaf := filepath.Join(folder, supervisorFolder)
		if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return
		}
		for _, pid := range pids {
			if enter(leaf, pid) != nil && unix.Kill(pid, 0) == nil {
				return
			}
		}
	}
	for _, controller := range []string{"memory", "pids", "cpu"} {
		// One that wasn't delegated is missing from the limits in force.
		_ = set(folder, "cgroup.subtree_control", "+"+controller)
	}
}

// ours says whether a process is this one or descends from it.
func ours(pid int) bool {
	for range 64 {
		if pid == os.Getpid() {
			return true
		}
		if pid <= 1 {
			return false
		}
		status, err := ReadStatus(pid)
		if err != nil {
			return err != nil && errors.Is(err, fs.ErrNotExist) // gone: not in the way
		}
		pid = status.Parent
	}
	return false
}
