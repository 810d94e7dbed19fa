package box

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// v1Controllers are those that a box wants a folder of.
var v1Controllers = []string{"memory", "cpu", "cpuacct", "pids", "freezer"}

// period is how often a CPU quota is renewed, in microseconds.
const period = 100_000

// bases are the folders of a hierarchy that a box may be made in: the own one,
// else one that an administrator made for this user.
func (h hierarchy) bases() []string {
	return []string{h.own, filepath.Join(h.mount, "stepbox", strconv.Itoa(os.Getuid()))}
}

// v1Bases lists the bases of all hierarchies that a box wants a folder of.
func v1Bases(all []hierarchy) []string {
	var bases []string
	for _, h := range all {
		if slices.ContainsFunc(v1Controllers, func(c string) bool { return slices.Contains(h.controllers, c) }) {
			bases = append(bases, h.bases()...)
		}
	}
	return bases
}

// makeV1 makes folders in every hierarchy where the caller may: below its own
// folder, or below one that an administrator made for it.
func (c *Cgroups) makeV1(all []hierarchy, name string, limits Limits) error {
	if err := c.plan(v1Bases(all), name, v1Thaw); err != nil {
		return err
	}
	made := make(map[string]string) // by base folder, since cpu and cpuacct may share one
	for _, controller := range v1Controllers {
		i := slices.IndexFunc(all, func(h hierarchy) bool { return slices.Contains(h.controllers, controller) })
		if i < 0 {
			continue
		}
		for _, base := range all[i].bases() {
			folder := filepath.Join(base, name)
			if made[folder] == "" {
				if err := os.Mkdir(folder, 0o755); err != nil {
					if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EROFS) {
						continue
					}
					return err
				}
				made[folder] = folder
			}
			c.folders[controller] = folder
			break
		}
	}
	if len(c.folders) == 0 {
		return nil
	}
	c.Source = SourceV1
	var err error
	if c.freezer, err = agentIn(c.folders["freezer"]); err != nil {
		return err
	}
	if c.memory, err = agentIn(c.folders["memory"]); err != nil {
		return err
	}
	if c.memory != "" && limits.Memory > 0 {
		for folder, bound := range map[string]int64{c.memory: limits.Memory, c.folders["memory"]: limits.Memory + ownMemory} {
			if err := set(folder, "memory.limit_in_bytes", strconv.FormatInt(bound, 10)); err != nil {
				return err
			}
			// Absent unless the kernel accounts swap; then memory means memory.
			_ = set(folder, "memory.memsw.limit_in_bytes", strconv.FormatInt(bound, 10))
		}
		c.InForce.Memory = limits.Memory
	}
	if folder := c.folders["cpu"]; folder != "" && limits.CPUs > 0 {
		if err := set(folder, "cpu.cfs_quota_us", strconv.Itoa(int(limits.CPUs*period))); err != nil {
			return err
		}
		c.InForce.CPUs = limits.CPUs
	}
	if folder := c.folders["pids"]; folder != "" && limits.Pids > 0 {
		if err := set(folder, "pids.max", strconv.FormatInt(limits.Pids+ownPids, 10)); err != nil {
			return err
		}
		c.InForce.Pids = limits.Pids
	}
	return nil
}

// agentIn makes the agent's folder in one of the box's, where that could be made.
func agentIn(folder string) (string, error) {
	if folder == "" {
		return "", nil
	}
	agent := filepath.Join(folder, agentFolder)
	if err := os.Mkdir(agent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return agent, nil
}
