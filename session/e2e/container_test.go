package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// dockerCapabilities are what Docker leaves root in a container by default.
var dockerCapabilities = []string{
	"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_MKNOD",
	"CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT",
}

// container is a folder from which runc runs commands as Docker would with the
// options that doctor asks for: Docker's capabilities, a /proc of which nothing
// is covered, cgroups that can only be read.
type container struct {
	t      *testing.T
	bundle string
	volume string // a folder that commands can write, at the same path inside
	n      int
}

func newContainer(t *testing.T) *container {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("making a container like Docker's takes root")
	}
	if _, err := exec.LookPath("runc"); err != nil {
		t.Skip("runc isn't installed")
	}
	dir, err := os.MkdirTemp("", "c")
	must.OK(t, err)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	c := &container{t: t, bundle: filepath.Join(dir, "bundle"), volume: filepath.Join(dir, "volume")}
	for _, d := range []string{dir, c.bundle, c.volume, filepath.Join(c.bundle, "root")} {
		must.OK(t, os.MkdirAll(d, 0o755))
	}
	must.OK(t, os.Chmod(c.volume, 0o777))
	return c
}

// run runs a command in a container of its own as a user and gives what it says.
func (c *container) run(uid int, argv ...string) (string, error) {
	c.t.Helper()
	type object = map[string]any
	bind := func(path string, options ...string) object {
		return object{"destination": path, "source": path, "type": "none", "options": append(options, "rbind")}
	}
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755"}},
		{"destination": "/dev/pts", "type": "devpts", "source": "devpts", "options": []string{"newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": []string{"nosuid", "nodev", "mode=1777"}},
		{"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": []string{"nosuid", "noexec", "nodev", "ro"}},
		{"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": []string{"nosuid", "noexec", "nodev", "relatime", "ro"}},
		bind(c.volume),
		{"destination": "/stepbox", "source": program, "type": "none", "options": []string{"bind", "ro"}},
	}
	root := filepath.Join(c.bundle, "root")
	for _, name := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc"} {
		info, err := os.Lstat(name)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(name)
			must.OK(c.t, err)
			if err := os.Symlink(target, filepath.Join(root, name)); err != nil && !os.IsExist(err) {
				c.t.Fatal(err)
			}
		default:
			mounts = append(mounts, bind(name, "ro"))
		}
	}
	mounts = append(mounts, object{"destination": "/etc/hosts", "source": "/etc/hosts", "type": "none", "options": []string{"bind", "ro"}})
	capabilities := object{"bounding": dockerCapabilities}
	if uid == 0 {
		capabilities["effective"], capabilities["permitted"] = dockerCapabilities, dockerCapabilities
	}
	project := filepath.Join(c.volume, fmt.Sprint("project-", uid))
	must.OK(c.t, os.MkdirAll(project, 0o755))
	must.OK(c.t, os.Chown(project, uid, uid))
	config, err := json.Marshal(object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": uid, "gid": uid}, "args": argv, "cwd": project, "capabilities": capabilities,
			"env": []string{"PATH=/usr/local/bin:/usr/bin:/bin", "container=oci", fmt.Sprintf("HOME=%s/home-%d", c.volume, uid), fmt.Sprintf("STEPBOX_DATA=%s/data-%d", c.volume, uid)},
		},
		"root": object{"path": root}, "mounts": mounts,
		"linux": object{"namespaces": []object{{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "network"}, {"type": "cgroup"}}},
	})
	must.OK(c.t, err)
	must.OK(c.t, os.WriteFile(filepath.Join(c.bundle, "config.json"), config, 0o600))
	c.n++
	name := fmt.Sprintf("stepbox-e2e-%d-%d", os.Getpid(), c.n)
	out, err := exec.CommandContext(c.t.Context(), "runc", "--root", filepath.Join(c.bundle, "state"), "run", "--bundle", c.bundle, name).CombinedOutput()
	return string(out), err
}

// TestInContainer: where root hasn't the rights that it has on a host, it is
// confined like anybody else, and asked for nothing that can't be had there.
func TestInContainer(t *testing.T) {
	t.Parallel()
	c := newContainer(t)
	for _, uid := range []int{0, ordinary} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			c.t = t
			out, err := c.run(uid, "/stepbox", "run", "--mode", "watch", "--", "sh", "-c", "echo made >file; cat file; cat /etc/shadow 2>/dev/null; exit 7")
			if exit := (*exec.ExitError)(nil); err == nil || !errors.As(err, &exit) || exit.ExitCode() != 7 {
				t.Errorf("it ends with %v", err)
			}
			if said, _, _ := strings.Cut(out, "stepbox: 1 file changed and not applied"); strings.TrimSpace(said) != "made" {
				t.Errorf("it says:\n%s", out)
			}
			for _, command := range []string{"show", "log"} {
				if out, err = c.run(uid, "/stepbox", command, fmt.Sprint("project-", uid)); err != nil || strings.Contains(out, "cannot") {
					t.Errorf("%s: %v\n%s", command, err, out)
				}
			}
			out, err = c.run(uid, "/stepbox", "doctor")
			if err != nil || strings.Contains(out, "MISSING") || strings.Contains(out, "sudo") || !strings.Contains(out, "docker run --memory") {
				t.Errorf("doctor: %v\n%s", err, out)
			}
		})
	}
}
