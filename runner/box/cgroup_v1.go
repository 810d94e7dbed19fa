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

// makeV1 makes folders in every hierarchy where the caller may: below its own
// folder, or below one that an administrator made for it.
func (c *Cgroups) makeV1(all []hierarchy, name string, limits Limits) error {
	made := make(map[string]string) // by base folder, since cpu and cpuacct may share one
	for _, controller := range v1Controllers {
		i := slices.IndexFunc(all, func(h hierarchy) bool { return slices.Contains(h.controllers, controller) })
		if i < 0 {
			continue
		}
		for _, base := range []string{all[i].own, filepath.Join(all[i].mount, "stepbox", strconv.Itoa(os.Getuid()))} {
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
	if folder := c.folders["freezer"]; folder != "" {
		agent := filepath.Join(folder, agentFolder)
		if err := os.Mkdir(agent, 0o755); err != nil {
			return err
		}
		c.freezer = agent
	}
	if folder := c.folders["memory"]; folder != "" && limits.Memory > 0 {
		if err := set(folder, "memory.limit_in_bytes", strconv.FormatInt(limits.Memory, 10)); err != nil {
			return err
		}
		// Absent unless the kernel accounts swap; then memory means memory.
		_ = set(folder, "memory.memsw.limit_in_bytes", strconv.FormatInt(limits.Memory, 10))
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
