package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Groups are cgroups below the agent's own, one for each program start that
// was judged: what descends from it is born there, whatever becomes of its
// parents, and the agent has no way to move. They bound nothing, and freezing
// the agent's cgroup freezes them.

// CanGroup says whether groups can be made.
func (c *Cgroups) CanGroup() bool { return c.freezer != "" }

// EnterGroup moves a process, with its threads, into a group, which is made if
// it isn't there. The name is one path element.
func (c *Cgroups) EnterGroup(name string, pid int) error {
	if c.freezer == "" {
		return errors.New("cannot make a group of processes: there are no cgroups")
	}
	folder := filepath.Join(c.freezer, name)
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot make a group of processes: %w", err)
	}
	return enter(folder, pid)
}

// GroupIn is the name of the group that a process is in, given its
// /proc/PID/cgroup; "" when it is in none. See cgroups(7).
func (c *Cgroups) GroupIn(text []byte) string {
	if c.freezer == "" {
		return ""
	}
	// The box's own folder has a name that no other has.
	own := "/" + filepath.Base(filepath.Dir(c.freezer)) + "/" + agentFolder + "/"
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 || c.unified != (parts[1] == "") {
			continue
		}
		if !c.unified && !slices.Contains(strings.Split(parts[1], ","), "freezer") {
			continue
		}
		if _, name, ok := strings.Cut(parts[2], own); ok {
			return name
		}
		return ""
	}
	return ""
}

// GroupProcesses lists who is in a group now.
func (c *Cgroups) GroupProcesses(name string) []int {
	if c.freezer == "" {
		return nil
	}
	pids, _ := readIDs(filepath.Join(c.freezer, name, "cgroup.procs"))
	return pids
}

// DropGroup removes a group and says whether it is gone: one with processes
// stays.
func (c *Cgroups) DropGroup(name string) bool {
	if c.freezer == "" {
		return true
	}
	err := unix.Rmdir(filepath.Join(c.freezer, name))
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// tree reads a list of ids of the agent's cgroup and of all groups below it.
// A process that enters a group meanwhile leaves the agent's own, which is read
// first, so none is missed.
func (c *Cgroups) tree(file string) (ids []int, groups map[int]string, ok bool) {
	if ids, ok = readIDs(filepath.Join(c.freezer, file)); !ok {
		return nil, nil, false
	}
	groups = make(map[int]string)
	for _, group := range subfolders(c.freezer) {
		more, _ := readIDs(filepath.Join(group, file)) // it may just have been removed
		ids = append(ids, more...)
		for _, id := range more {
			groups[id] = filepath.Base(group)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), groups, true
}

// subfolders lists the folders in a cgroup's folder.
func subfolders(folder string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		if e.IsDir() {
			list = append(list, filepath.Join(folder, e.Name()))
		}
	}
	return list
}
