package box

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// hostname is what the machine calls itself inside: the host's own name is
// nobody's business.
const hostname = "stepbox"

// maskedPaths and readonlyPaths are the parts of a fresh /proc that aren't the
// sandbox's own, the same that other runtimes hide.
var (
	maskedPaths = []string{
		"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys",
		"/proc/latency_stats", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// shownDevices are bound from the host's /dev; everything else there is absent.
// They are bound read-only, which keeps nobody from using a device, but keeps
// root, who owns the host's nodes, from changing them. What libcontainer covers
// with /dev/null is read-only with it.
var shownDevices = []string{"null", "zero", "full", "random", "urandom", "tty"}

// configure translates a specification for libcontainer and makes the folders
// and files that it names.
func configure(spec Spec) (*configs.Config, *layout, error) {
	rootfs := filepath.Join(spec.Dir, "root")
	plan, err := layOut(spec, rootfs)
	if err != nil {
		return nil, nil, err
	}
	uid, gid := int64(os.Getuid()), int64(os.Getgid())
	config := &configs.Config{
		Rootfs:     rootfs,
		Readonlyfs: true,
		Hostname:   hostname,
		Namespaces: configs.Namespaces{
			{Type: configs.NEWUSER, Path: namespacePath(spec.Holder, "user")},
			{Type: configs.NEWNET, Path: namespacePath(spec.Holder, "net")},
			{Type: configs.NEWNS}, {Type: configs.NEWPID}, {Type: configs.NEWIPC},
			{Type: configs.NEWUTS}, {Type: configs.NEWCGROUP},
		},
		UIDMappings: []configs.IDMap{{HostID: uid, Size: 1}},
		GIDMappings: []configs.IDMap{{HostID: gid, Size: 1}},
		// Mapped owners are all that takes root's rights on the host. Root without
		// them, as in a container, is an ordinary user.
		RootlessEUID:    len(plan.first) == 0,
		RootlessCgroups: true,
		NoNewPrivileges: true,
		NoNewKeyring:    false,
		// No set holds a capability, the bounding set included, so that root's
		// exec inside gives none either.
		Capabilities:  &configs.Capabilities{},
		Mounts:        plan.mounts,
		MaskPaths:     append(plan.masks, maskedPaths...),
		ReadonlyPaths: append(plan.fixed, readonlyPaths...),
		Rlimits:       rlimits(),
		// Only a place to put the first process before it is moved to cgroups of
		// our own: where that isn't allowed, libcontainer goes on without.
		Cgroups: &cgroups.Cgroup{Name: cgroupName(spec.ID), Rootless: true, Resources: &cgroups.Resources{}},
	}
	return config, plan, nil
}

// rlimits never exceed the caller's own hard limits, which only root could.
func rlimits() []configs.Rlimit {
	wanted := []configs.Rlimit{
		{Type: unix.RLIMIT_CORE},
		{Type: unix.RLIMIT_NOFILE, Soft: 65536, Hard: 65536},
		{Type: unix.RLIMIT_MEMLOCK, Soft: 8 << 20, Hard: 8 << 20},
	}
	for i, limit := range wanted {
		var own unix.Rlimit
		if unix.Getrlimit(limit.Type, &own) == nil {
			wanted[i].Hard = min(limit.Hard, own.Max)
			wanted[i].Soft = min(limit.Soft, own.Max)
		}
	}
	return wanted
}

func cgroupName(id string) string { return "stepbox-" + id }

// checkIdentity refuses what the map of a single id can't show.
func checkIdentity() error {
	if os.Geteuid() != os.Getuid() || os.Getegid() != os.Getgid() {
		return fmt.Errorf("cannot make a sandbox from a setuid program")
	}
	return nil
}
