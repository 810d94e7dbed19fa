package pairstest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Bwrap gives commands that run argv in a sandbox of bubblewrap's; ok is false,
// and it is said, when that isn't installed.
func Bwrap(b *testing.B, argv ...string) (command func() *exec.Cmd, ok bool) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		b.Log("bwrap isn't installed: nothing is compared with it")
		return nil, false
	}
	args := []string{"--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run", "--tmpfs", "/tmp"}
	folders, links := shown(b)
	for _, folder := range folders {
		args = append(args, "--ro-bind", folder, folder)
	}
	for name, target := range links {
		args = append(args, "--symlink", target, name)
	}
	args = append(append(args, "--"), argv...)
	return func() *exec.Cmd { return exec.CommandContext(b.Context(), path, args...) }, true
}

// Runc is Bwrap for a rootless container of runc's.
func Runc(b *testing.B, argv ...string) (command func() *exec.Cmd, ok bool) {
	path, err := exec.LookPath("runc")
	if err != nil {
		b.Log("runc isn't installed: nothing is compared with it")
		return nil, false
	}
	dir := b.TempDir()
	root := filepath.Join(dir, "rootfs")
	if err := os.Mkdir(root, 0o755); err != nil {
		b.Fatal(err)
	}
	folders, links := shown(b)
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			b.Fatal(err)
		}
	}
	spec := exec.CommandContext(b.Context(), path, "spec", "--rootless")
	spec.Dir = dir
	if out, err := spec.CombinedOutput(); err != nil {
		b.Fatalf("runc spec: %v\n%s", err, out)
	}
	name := filepath.Join(dir, "config.json")
	text, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		b.Fatal(err)
	}
	process := config["process"].(map[string]any)
	process["args"], process["terminal"] = argv, false
	mounts := config["mounts"].([]any)
	for _, folder := range folders {
		mounts = append(mounts, map[string]any{"destination": folder, "type": "none", "source": folder, "options": []string{"rbind", "ro", "nosuid", "nodev"}})
	}
	config["mounts"] = mounts
	if text, err = json.Marshal(config); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		b.Fatal(err)
	}
	state, n := filepath.Join(dir, "state"), 0
	return func() *exec.Cmd {
		n++
		return exec.CommandContext(b.Context(), path, "--root", state, "run", "--bundle", dir, fmt.Sprintf("bench-%d-%d", os.Getpid(), n))
	}, true
}

// shown are the system folders that a sandbox shows.
func shown(b *testing.B) (folders []string, links map[string]string) {
	links = make(map[string]string)
	for _, folder := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc"} {
		info, err := os.Lstat(folder)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(folder)
			if err != nil {
				b.Fatal(err)
			}
			links[folder] = target
		case info.IsDir():
			folders = append(folders, folder)
		}
	}
	return folders, links
}
