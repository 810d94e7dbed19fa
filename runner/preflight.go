package runner

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

	"golang.org/x/sys/unix"

	"stepbox/runner/box"
	"stepbox/runner/gate"
	"stepbox/runner/holder"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/pid1"
)

// Finding is one thing that a sandbox needs of its host.
type Finding struct {
	Name   string
	OK     bool
	Fatal  bool   // without it no sandbox starts; else something is weaker
	Detail string // what was found
	Why    string // what it is for
	Fix    string // the exact commands, or what to do; "" when OK
}

// Preflight looks at what sandboxes need of this host, by doing it wherever it
// can, and leaves nothing behind. stateDir is where sessions will be kept; it is
// made if it doesn't exist. The order is that of a person mending things.
func Preflight(ctx context.Context, stateDir string) []Finding {
	findings := []Finding{checkKernel(), checkSeccomp(), checkMemfd(), checkPtrace(), checkMemory(pid1.MemoryGuard()), checkTerminals()}
	userns := checkUserNamespaces(ctx)
	findings = append(findings, userns, checkStateDir(ctx, stateDir, userns.OK), checkCgroups(ctx))
	if slices.ContainsFunc(findings, func(f Finding) bool { return f.Fatal && !f.OK }) {
		if unix.Access(stateDir, unix.W_OK) == nil { // else that comes first, and no container is to blame for it
			findings = append(findings, checkContainer()...)
		}
		return findings
	}
	sandbox := checkSandbox(ctx, stateDir)
	findings = append(findings, sandbox)
	if !sandbox.OK {
		findings = append(findings, checkContainer()...)
	}
	return findings
}

func checkKernel() Finding {
	f := Finding{Name: "kernel", Fatal: true, Why: "held programs need Linux 5.19 or newer"}
	release := inode.Kernel()
	f.Detail = release
	if f.OK = inode.AtLeast(release, 5, 19); !f.OK {
		f.Fix = "boot a newer kernel (Debian 12, Ubuntu 22.10, Fedora 37 and later have one)"
	}
	return f
}

// checkSeccomp offers no filter at all: a kernel that knows the flags complains
// about the missing filter, another about the flags.
func checkSeccomp() Finding {
	f := Finding{Name: "seccomp notification", Fatal: true, Why: "programs are held by it before they run"}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, 0)
	f.OK = errno == unix.EFAULT
	f.Detail = "available"
	switch errno {
	case unix.EFAULT:
	case unix.EPERM, unix.ENOSYS:
		f.Detail = "refused: " + errno.Error()
		f.Fix = "a seccomp profile is in the way: " + containerFix()
	default:
		f.Detail = errno.Error()
		f.Fix = "boot a kernel of 5.19 or newer with CONFIG_SECCOMP_FILTER"
	}
	return f
}

func checkMemfd() Finding {
	f := Finding{Name: "executable memory files", Fatal: true, OK: true, Detail: "allowed",
		Why: "the sandbox's first process runs from a sealed copy of stepbox that the agent can't change"}
	if value, ok := sysctl("vm/memfd_noexec"); ok && value == "2" {
		f.OK, f.Detail = false, "vm.memfd_noexec is 2"
		f.Fix = "sudo sysctl -w vm.memfd_noexec=1"
	}
	return f
}

func checkPtrace() Finding {
	f := Finding{Name: "ptrace", Fatal: true, OK: true, Detail: "allowed",
		Why: "a program that was approved is checked before its first instruction"}
	if value, ok := sysctl("kernel/yama/ptrace_scope"); ok {
		f.Detail = "kernel.yama.ptrace_scope is " + value
		if value == "3" {
			f.OK = false
			f.Fix = "set kernel.yama.ptrace_scope to 1 in /etc/sysctl.d and restart: the kernel keeps 3 until then"
		}
	}
	return f
}

// memoryOpen says what stays open without Landlock.
const memoryOpen = "Landlock is off: the agent can write into programs that you approved, through /proc/PID/mem"

// checkMemory tells whether an agent is kept from what it got approved.
func checkMemory(guarded bool) Finding {
	f := Finding{Name: "Landlock", OK: guarded, Detail: "on",
		Why: "it keeps the agent from writing into the memory of programs that were approved"}
	if !guarded {
		f.Detail = memoryOpen
		f.Fix = "add landlock to the kernel's list of security modules: boot with lsm=landlock,… (the present list, from /sys/kernel/security/lsm, after it); the kernel needs CONFIG_SECURITY_LANDLOCK"
	}
	return f
}

// checkTerminals tells whether the machine has a pseudo-terminal left for a sandbox.
func checkTerminals() Finding {
	f := Finding{Name: "terminals", Fatal: true, Why: "the agent gets a pseudo-terminal, and whatever it starts may ask for more"}
	used, most, reserved := sysctlNumber("kernel/pty/nr"), sysctlNumber("kernel/pty/max"), sysctlNumber("kernel/pty/reserve")
	f.Detail = fmt.Sprintf("%d of the machine's %d are in use; each session may have %d", used, most-reserved, box.MaxTerminals)
	if f.OK = used < most-reserved || most == 0; !f.OK {
		f.Fix = fmt.Sprintf("sudo sysctl -w kernel.pty.max=%d, or end what has them", 2*most)
	}
	return f
}

func sysctlNumber(name string) int {
	value, _ := sysctl(name)
	n, _ := strconv.Atoi(value) // 0 where it can't be read
	return n
}

func sysctl(name string) (string, bool) {
	text, err := os.ReadFile(filepath.Join("/proc/sys", name))
	return strings.TrimSpace(string(text)), err == nil
}

// checkStateDir mounts an overlay with its upper folder where sessions will be.
func checkStateDir(ctx context.Context, stateDir string, userns bool) Finding {
	f := Finding{Name: "session folder", Fatal: true, Why: "the agent's changes are kept there, in an overlay over the project"}
	fail := func(err error, fix string) Finding {
		f.Detail, f.Fix = err.Error(), fix
		return f
	}
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return fail(err, "set STEPBOX_DATA to a folder that you can write")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(stateDir, &st); err != nil {
		return fail(err, "set STEPBOX_DATA to a folder that you can write")
	}
	const elsewhere = "set STEPBOX_DATA to a folder on a local filesystem such as ext4, xfs, btrfs or tmpfs"
	switch uint32(st.Type) {
	case unix.OVERLAYFS_SUPER_MAGIC:
		fix := elsewhere
		if inContainer() {
			fix = "give the container a volume for it: docker run -v stepbox:/stepbox -e STEPBOX_DATA=/stepbox …"
		}
		return fail(fmt.Errorf("%q is on an overlay itself", stateDir), fix)
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC:
		return fail(fmt.Errorf("%q is on a network filesystem", stateDir), elsewhere)
	}
	dir, err := os.MkdirTemp(stateDir, ".probe-")
	if err != nil {
		return fail(err, "set STEPBOX_DATA to a folder that you can write")
	}
	defer holder.RemoveAll(dir)
	if err := unix.Setxattr(dir, "user.stepbox", []byte("y"), 0); err != nil {
		return fail(fmt.Errorf("%q has no extended attributes: %w", stateDir, err), elsewhere)
	}
	if err := unix.Mknod(filepath.Join(dir, "whiteout"), unix.S_IFCHR, 0); err != nil {
		fix := elsewhere
		if inContainer() {
			fix = containerFix()
		}
		return fail(fmt.Errorf("%q can't hold marks of deleted files: %w", stateDir, err), fix)
	}
	f.Detail = stateDir
	if f.OK = true; !userns {
		return f
	}
	h, err := probeHolder(ctx)
	if err != nil {
		return fail(err, usernsFix(err))
	}
	defer h.Close()
	if err := h.ProbeOverlay(ctx, dir); err != nil {
		f.OK = false
		return fail(err, elsewhere+"; the kernel needs CONFIG_OVERLAY_FS (sudo modprobe overlay)")
	}
	return f
}

// noCgroups says what is weaker where none are mounted.
const noCgroups = "no cgroups are mounted here: what bounds the agent are rlimits, memory for each process by itself and processors not at all"

func checkCgroups(ctx context.Context) Finding {
	f := Finding{Name: "cgroups", Why: "they bound memory, processors and the number of processes, and freeze the agent (by tracing it otherwise, which takes longer)"}
	probe := Limits{Memory: 64 << 20, CPUs: 1, Pids: 64}
	c, err := box.MakeCgroups(ctx, "probe-"+strconv.Itoa(os.Getpid()), probe, func(holder.Guard) error { return nil })
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	defer removeCgroups(c)
	f.OK = c.InForce == probe && c.CanFreeze()
	f.Detail = c.Source
	if f.OK {
		return f
	}
	if !box.HasCgroups() {
		f.Detail, f.Fix = noCgroups, "mount them: sudo mount -t cgroup2 cgroup2 /sys/fs/cgroup"
		return f
	}
	var missing []string
	for _, m := range []struct {
		name string
		has  bool
	}{{"memory", c.InForce.Memory > 0}, {"cpu", c.InForce.CPUs > 0}, {"pids", c.InForce.Pids > 0}, {"freezing", c.CanFreeze()}} {
		if !m.has {
			missing = append(missing, m.name)
		}
	}
	f.Detail += ", without " + strings.Join(missing, ", ")
	f.Fix = "log in with a systemd user session (loginctl show-user shows it), or start with systemd-run --user --scope -p Delegate=yes stepbox …"
	if c.Source == box.SourceSystemd {
		f.Fix = "sudo mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n' | sudo tee /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload, then log in again"
	}
	if inContainer() {
		f.Fix = "set them from outside: docker run --memory=4g --cpus=2 --pids-limit=2048 …"
	} else if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err == nil || hybrid() {
		f.Fix = fmt.Sprintf("for c in memory cpu cpuacct pids freezer; do sudo mkdir -p /sys/fs/cgroup/$c/stepbox/%[1]d && sudo chown -R %[1]d /sys/fs/cgroup/$c/stepbox/%[1]d; done (again after each restart)", os.Getuid())
	}
	return f
}

func hybrid() bool {
	_, err := os.Stat("/sys/fs/cgroup/freezer")
	return err == nil
}

// checkContainer says what stands in the way where a container is the host.
func checkContainer() []Finding {
	if !inContainer() {
		return nil
	}
	f := Finding{Name: "container", Fatal: true, Detail: "this host is a container itself", Fix: containerFix(),
		Why: "a sandbox takes namespaces, mounts and a /proc of its own, which engines of containers forbid by default"}
	if inPod() {
		f.Detail = "this host is a container in a pod of Kubernetes"
	}
	for _, c := range confinements() {
		if c.found != "" {
			f.Detail += "; " + c.found
		}
	}
	return []Finding{f}
}

// checkSandbox runs a program in a real sandbox.
func checkSandbox(ctx context.Context, stateDir string) (f Finding) {
	f = Finding{Name: "a sandbox", Fatal: true, Why: "everything together"}
	dir, err := os.MkdirTemp(stateDir, ".probe-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	defer holder.RemoveAll(dir)
	project := filepath.Join(dir, "project")
	if err := os.Mkdir(project, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		f.Detail = err.Error()
		return f
	}
	spec := Spec{
		ID: "probe-" + strconv.Itoa(os.Getpid()), StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"),
		Workspace: project, Argv: []string{"/bin/sh", "-c", "exit 7"}, Env: []string{"PATH=/usr/bin:/bin"},
	}
	decides := allowAll()
	refused := make(chan string, 1)
	decides.Failed = func(_ *gate.Exec, why string) {
		select {
		case refused <- why:
		default:
		}
	}
	s, err := Start(ctx, spec, Handlers{Gate: decides})
	if err != nil {
		f.Detail, f.Fix = err.Error(), "see above, or report this with the output of stepbox doctor"
		return f
	}
	defer s.Close(ctx)
	select {
	case <-s.Exited():
	case <-ctx.Done():
		f.Detail = ctx.Err().Error()
		return f
	}
	exit, err := s.Wait()
	_ = s.Close(ctx) // after which all is told
	const report = "report this with the output of stepbox doctor"
	select {
	case why := <-refused:
		f.Detail, f.Fix = "a shell that was allowed was "+why, report
		return f
	default:
	}
	if err != nil || exit.Code != 7 {
		f.Detail, f.Fix = fmt.Sprintf("a shell in it ended as %+v (%v)", exit, err), report
		return f
	}
	f.OK, f.Detail = true, "works"
	return f
}
