package box

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"stepbox/runner/holder"
)

// Words for what enforces limits.
const (
	SourceSystemd = "systemd user manager"
	SourceV2      = "cgroup v2"
	SourceV1      = "cgroup v1"
	SourceNone    = "rlimits"
)

// agentFolder is the cgroup below a box's own that holds the agent's tree, so
// that freezing it leaves PID 1 running, and want of memory there leaves it alive.
const agentFolder = "agent"

// restFolder is where PID 1 is beside it in the unified hierarchy, whose cgroups
// that hand controllers down hold no processes themselves. In others it is in
// the box's own.
const restFolder = "pid1"

// Cgroups are the cgroups of one box. Every field stays as it was made; methods
// may be used from several goroutines. The zero value has none.
type Cgroups struct {
	Source  string
	InForce Limits // what the kernel was made to enforce

	// folders of the box, by controller; "" is the unified hierarchy's.
	folders map[string]string
	// freezer is the folder of the agent's tree in the hierarchy that can freeze;
	// "" when none can.
	freezer string
	// memory is the folder of the agent's tree in the hierarchy that bounds and
	// counts memory; "" when none does.
	memory  string
	unified bool
	extra   []string // folders that libcontainer makes beside ours
	note    func(holder.Guard) error
}

// hierarchy is one mounted cgroup hierarchy and where this process is in it.
type hierarchy struct {
	controllers []string
	unified     bool
	mount       string // where it is mounted
	own         string // this process's folder, below mount
}

// hierarchies reads what is mounted and where this process is. See cgroups(7).
func hierarchies() ([]hierarchy, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return nil, fmt.Errorf("cannot find the mounted cgroups: %w", err)
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("cannot find the own cgroups: %w", err)
	}
	var found []hierarchy
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		h := hierarchy{unified: parts[1] == "", controllers: strings.Split(parts[1], ",")}
		for _, m := range mounts {
			if !h.matches(m) {
				continue
			}
			h.mount, h.own = m.Mountpoint, m.Mountpoint
			// A container sees its own part of the hierarchy as the mount's root.
			if relative, err := filepath.Rel(m.Root, parts[2]); err == nil && filepath.IsLocal(relative) {
				h.own = filepath.Join(m.Mountpoint, relative)
			}
			found = append(found, h)
			break
		}
	}
	return found, nil
}

func (h hierarchy) matches(m *mountinfo.Info) bool {
	if h.unified || m.FSType == "cgroup2" {
		return h.unified && m.FSType == "cgroup2"
	}
	options := strings.Split(m.VFSOptions, ",")
	return slices.ContainsFunc(h.controllers, func(c string) bool { return slices.Contains(options, c) })
}

// MakeCgroups makes a box's cgroups with limits as far as this caller may;
// where it may not, Source is SourceNone. Nothing is left behind on an error.
// Before the first is made note is told which there may be, of which some will
// not be: whoever is killed in between leaves nothing that nobody knows of.
func MakeCgroups(ctx context.Context, id string, limits Limits, note func(holder.Guard) error) (*Cgroups, error) {
	all, err := hierarchies()
	if err != nil {
		return nil, err
	}
	c := &Cgroups{Source: SourceNone, folders: make(map[string]string), note: note}
	name := cgroupName(id)
	controllersInV1 := slices.ContainsFunc(all, func(h hierarchy) bool {
		return !h.unified && slices.Contains(h.controllers, "memory")
	})
	if controllersInV1 {
		err = c.makeV1(all, name, limits)
	} else {
		err = c.makeV2(ctx, all, name, limits)
	}
	if err != nil {
		_ = c.Guard().Clean(ctx, -1)
		return nil, err
	}
	return c, nil
}

// plan notes the folders that there may be soon: those of the box below bases,
// and those that libcontainer makes where it can for the moment until Join.
func (c *Cgroups) plan(bases []string, name string, freeze func(folder string) holder.Write) error {
	all, err := hierarchies() // again: this process may have moved
	if err != nil {
		return err
	}
	for _, h := range all {
		c.extra = append(c.extra, filepath.Join(h.own, name))
		if h.unified && h.own != h.mount {
			c.extra = append(c.extra, filepath.Join(filepath.Dir(h.own), name))
		}
	}
	planned := Cgroups{extra: slices.Clone(c.extra)}
	var thaw []holder.Write
	for _, base := range bases {
		agent := filepath.Join(base, name, agentFolder)
		planned.extra = append(planned.extra, filepath.Join(base, name), agent, filepath.Join(base, name, restFolder))
		thaw = append(thaw, freeze(agent))
	}
	return c.note(holder.Guard{Thaw: thaw, Cgroups: planned.Folders()})
}

// Join puts the box's first process, with its threads, into the cgroups, there
// into the agent's: what it starts is born there. Leave takes itself out
// again. Moving a process may wait for a grace period of the kernel's, many
// milliseconds, so that callers do it beside other work.
func (c *Cgroups) Join(pid int) error {
	for _, folder := range c.folders {
		if agent := filepath.Join(folder, agentFolder); agent == c.freezer || agent == c.memory {
			folder = agent
		}
		if err := enter(folder, pid); err != nil {
			return err
		}
	}
	if c.unified {
		return c.splitMemory()
	}
	return nil
}

// Leave moves PID 1 out of the agent's cgroups, once the agent's first process
// was born there: neither a freeze nor want of memory is to take it along.
func (c *Cgroups) Leave(pid int) error {
	for _, agent := range c.agents() {
		rest := filepath.Dir(agent)
		if c.unified {
			rest = filepath.Join(rest, restFolder)
		}
		if err := enter(rest, pid); err != nil {
			return err
		}
	}
	return nil
}

// agents lists the folders of the agent's tree.
func (c *Cgroups) agents() []string {
	list := slices.Compact([]string{c.freezer, c.memory})
	return slices.DeleteFunc(list, func(folder string) bool { return folder == "" })
}

func enter(folder string, pid int) error {
	return set(folder, "cgroup.procs", strconv.Itoa(pid))
}

// set writes a value to a file of a cgroup.
func set(folder, file, value string) error {
	if err := os.WriteFile(filepath.Join(folder, file), []byte(value), 0); err != nil {
		return fmt.Errorf("cannot set a cgroup: %w", err)
	}
	return nil
}

func get(folder, file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, file))
	return strings.TrimSpace(string(text)), err
}

func getNumber(folder, file string) int64 {
	text, err := get(folder, file)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// Folders lists all folders, children before parents.
func (c *Cgroups) Folders() []string {
	list := append(slices.AppendSeq(c.agents(), maps.Values(c.folders)), c.extra...)
	if c.unified {
		list = append(list, filepath.Join(c.folders[""], restFolder))
	}
	slices.SortFunc(list, func(a, b string) int { return depth(b) - depth(a) })
	return slices.Compact(list)
}

// Guard says how the folders are removed, whoever does it.
func (c *Cgroups) Guard() holder.Guard {
	return holder.Guard{Thaw: c.ThawWrites(), Cgroups: c.Folders()}
}

// ownPids is added to the bound on processes for PID 1's threads.
const ownPids = 16

// ownMemory is added to the agent's bound on memory to bound the box with PID 1.
const ownMemory = 64 << 20

// Usage is what a box has used and uses.
type Usage struct {
	CPU    time.Duration // processor time so far
	Memory int64         // bytes that the agent's tree has now, caches of files included
	Pids   int           // the agent's processes and threads now
}

// Usage reads the counters; ok says whether there are any.
func (c *Cgroups) Usage() (u Usage, ok bool) {
	if c.unified {
		folder := c.folders[""]
		text, err := get(folder, "cpu.stat")
		if err != nil {
			return u, false
		}
		for line := range strings.Lines(text) {
			if value, found := strings.CutPrefix(line, "usage_usec "); found {
				n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
				u.CPU = time.Duration(n) * time.Microsecond
			}
		}
		u.Memory, u.Pids = getNumber(c.memory, "memory.current"), len(c.threads())
		return u, u.Memory > 0
	}
	cpu := c.folders["cpuacct"]
	if cpu == "" || c.memory == "" || c.freezer == "" {
		return u, false
	}
	u.CPU = time.Duration(getNumber(cpu, "cpuacct.usage"))
	u.Memory = getNumber(c.memory, "memory.usage_in_bytes")
	u.Pids = len(c.threads())
	return u, true
}

// Starved is how many of the agent's processes the kernel has killed for want of memory.
func (c *Cgroups) Starved() int64 {
	file := "memory.oom_control"
	if c.unified {
		file = "memory.events"
	}
	text, _ := get(c.memory, file) // without a cgroup there is no such limit, and no such end
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}

// Processes lists the agent's tree; ok says whether cgroups know it.
func (c *Cgroups) Processes() (pids []int, ok bool) {
	if c.freezer == "" {
		return nil, false
	}
	return readIDs(filepath.Join(c.freezer, "cgroup.procs"))
}

// threads lists the agent's tree by thread.
func (c *Cgroups) threads() []int {
	file := "tasks"
	if c.unified {
		file = "cgroup.threads"
	}
	ids, _ := readIDs(filepath.Join(c.freezer, file))
	return ids
}

func readIDs(path string) ([]int, bool) {
	text, err := readAll(path)
	if err != nil {
		return nil, false
	}
	var ids []int
	for field := range strings.FieldsSeq(string(text)) {
		if id, err := strconv.Atoi(field); err == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids) // some kernels list one twice
	return slices.Compact(ids), true
}
