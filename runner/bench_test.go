package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkStart measures the time from asking for a sandbox to the first byte
// of its agent's output, beside other tools that show the same folders:
//
//	go test -bench Start -run '^$' ./runner
//
// Compare ratios, on an idle machine, as an ordinary user where possible.
func BenchmarkStart(b *testing.B) {
	b.Run("stepbox", benchmarkStepbox)
	b.Run("runc", benchmarkRunc)
	b.Run("bwrap", benchmarkBwrap)
}

func benchmarkStepbox(b *testing.B) {
	r := newRig(b)
	r.spec.Argv = []string{"/bin/echo", "hi"}
	id := r.spec.ID
	first := make([]byte, 16)
	var toStart, toByte time.Duration
	for i := 0; b.Loop(); i++ {
		r.spec.ID = fmt.Sprintf("%s-%d", id, i)
		began := time.Now()
		s, err := Start(b.Context(), r.spec, r.handler)
		if err != nil {
			b.Fatal(err)
		}
		toStart += time.Since(began)
		if _, err := s.Terminal().Read(first); err != nil {
			b.Fatal(err)
		}
		toByte += time.Since(began)
		b.StopTimer()
		<-s.Exited()
		if err := s.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(toStart.Microseconds())/1000/float64(b.N), "ms/start")
	b.ReportMetric(float64(toByte.Microseconds())/1000/float64(b.N), "ms/first-byte")
}

// firstByte runs a command per iteration up to its first byte.
func firstByte(b *testing.B, command func(i int) *exec.Cmd) {
	first := make([]byte, 16)
	for i := 0; b.Loop(); i++ {
		cmd := command(i)
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		if _, err := out.Read(first); err != nil {
			b.Fatalf("no output: %v", err)
		}
		b.StopTimer()
		if err := cmd.Wait(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/first-byte")
}

// shown are the system folders that the other tools show.
func shown() (folders []string, links map[string]string) {
	links = make(map[string]string)
	for _, folder := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc"} {
		info, err := os.Lstat(folder)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			links[folder], _ = os.Readlink(folder)
		case info.IsDir():
			folders = append(folders, folder)
		}
	}
	return folders, links
}

func benchmarkBwrap(b *testing.B) {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		b.Skip("bwrap isn't installed")
	}
	args := []string{"--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/run", "--tmpfs", "/tmp"}
	folders, links := shown()
	for _, folder := range folders {
		args = append(args, "--ro-bind", folder, folder)
	}
	for name, target := range links {
		args = append(args, "--symlink", target, name)
	}
	args = append(args, "--", "/bin/echo", "hi")
	firstByte(b, func(int) *exec.Cmd { return exec.CommandContext(b.Context(), path, args...) })
}

func benchmarkRunc(b *testing.B) {
	path, err := exec.LookPath("runc")
	if err != nil {
		b.Skip("runc isn't installed")
	}
	dir := b.TempDir()
	root := filepath.Join(dir, "rootfs")
	if err := os.Mkdir(root, 0o755); err != nil {
		b.Fatal(err)
	}
	folders, links := shown()
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			b.Fatal(err)
		}
	}
	spec := exec.CommandContext(b.Context(), path, "spec", "--rootless")
	spec.Dir = dir
	if out, err := spec.CombinedOutput(); err != nil {
		b.Skipf("runc spec fails: %s", out)
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
	process["args"], process["terminal"] = []string{"/bin/echo", "hi"}, false
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
	state := filepath.Join(dir, "state")
	firstByte(b, func(i int) *exec.Cmd {
		return exec.CommandContext(b.Context(), path, "--root", state, "run", "--bundle", dir, fmt.Sprintf("bench-%d-%d", os.Getpid(), i))
	})
}
