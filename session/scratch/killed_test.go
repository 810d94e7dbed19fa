package scratch

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stepbox/runner"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/e2e/must"
)

// TestKilled runs a check that never ends, in a process of its own that is killed.
func TestKilled(t *testing.T) {
	dir := os.Getenv("STEPBOX_TEST_KILLED")
	if dir == "" {
		t.Skip("it is started by another test")
	}
	r := rigIn(t, dir, nil)
	_, err := r.Check(t.Context(), nil, "mkdir a; chmod 0 a; echo begun; sleep 1000", func(line string) { fmt.Println("told " + line) })
	t.Fatal(err)
}

// What a process that was killed left is gone after the next start.
func TestNothingIsLeftOfTheKilled(t *testing.T) {
	r := newRig(t, nil)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "STEPBOX_TEST_KILLED="+filepath.Dir(r.project))
	out, err := cmd.StdoutPipe()
	r.must(err)
	r.must(cmd.Start())
	var said []byte
	for buf := make([]byte, 4096); !bytes.Contains(said, []byte("told begun")); {
		n, err := out.Read(buf)
		if said = append(said, buf[:n]...); err != nil {
			t.Fatalf("it said %s: %v", said, err)
		}
	}
	places, err := os.ReadDir(Folder(r.cfg.DataDir))
	if err != nil || len(places) != 1 {
		t.Fatalf("there are %v, %v", places, err)
	}
	id := places[0].Name()
	if swept, err := runner.Sweep(t.Context(), Folder(r.cfg.DataDir)); err != nil || len(swept) > 0 {
		t.Fatalf("swept are %v, %v: it lives", swept, err)
	}
	r.must(cmd.Process.Kill())
	if err := cmd.Wait(); err == nil {
		t.Fatal("it ended by itself")
	}
	// Its sandbox ends by itself; a start sweeps the rest.
	for end := time.Now().Add(2 * time.Minute); ; <-time.After(20 * time.Millisecond) {
		_, err := runner.Sweep(t.Context(), Folder(r.cfg.DataDir))
		left := traces(r.cfg.DataDir, id)
		if err == nil && left == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left are %s, %v", left, err)
		}
	}
}

// traces lists what there is of the sandboxes of a store's folder, and the cgroups
// of one of them.
func traces(dataDir, id string) string {
	var out []string
	patterns := []string{dataDir + "/scratch/*"}
	if id != "" {
		patterns = append(patterns, "/sys/fs/cgroup/*/stepbox/"+id, "/sys/fs/cgroup/*/stepbox-"+id, "/sys/fs/cgroup/*/*/stepbox-"+id)
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern) // a pattern that is well-formed
		out = append(out, found...)
	}
	mounts, _ := filepath.Glob("/proc/[0-9]*/mountinfo")
	for _, m := range mounts {
		if text, err := os.ReadFile(m); err == nil && strings.Contains(string(text), dataDir+"/scratch/") {
			out = append(out, m)
		}
	}
	return strings.Join(out, " ")
}

func TestConfigured(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                   "[]",
		"checks: []":                         "[]",
		"checks:\n- go vet ./...\n- \"a b\"": `["go vet ./..." "a b"]`,
		"checks: go vet":                     `["go vet"]`,
		"commands: [{ask: ls}]\nchecks: [x]": `["x"]`,
		"checks:\n  - x: 1":                  ".stepbox.yaml:2:5: text",
		"check:\n- x":                        `.stepbox.yaml:1:1: there is no key "check"; did you mean "checks"?`,
		"checks:\n- x\nchecks:\n- y":         ".stepbox.yaml:3:1: ",
		"checks:\n- ' '":                     ".stepbox.yaml:2:4: a check is a command",
		"checks: [":                          ".stepbox.yaml:1:9: ",
		"include: none.yaml":                 "cannot include",
		"checks:\n" + strings.Repeat("- x\n", 101): "at most 100",
	} {
		dir := t.TempDir()
		must.OK(t, os.WriteFile(filepath.Join(dir, ConfigName), []byte(text), 0o644))
		got, err := Configured(dir)
		said := fmt.Sprintf("%q", got)
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, want) {
			t.Errorf("%.40q gives %s, want %s", text, said, want)
		}
	}
	dir := t.TempDir()
	if got, err := Configured(dir); err != nil || got != nil {
		t.Errorf("without a file there are %q, %v", got, err)
	}
	must.OK(t, os.Symlink("elsewhere", filepath.Join(dir, ConfigName)))
	if _, err := Configured(dir); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a link: %v", err)
	}
}

// BenchmarkCheck is a check of nothing, by how many files the agent changed.
func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{0, 10, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRig(b, map[string]string{"a.txt": "x"})
			var state *manifest.Manifest
			if n > 0 {
				state = r.agent(fmt.Sprintf("for d in $(seq %d); do mkdir d$d; for f in 1 2 3 4 5 6 7 8 9 10; do echo $d $f >d$d/$f; done; done", n/10))
			}
			for b.Loop() {
				if got := r.check(state, "true"); !got.Passed() {
					b.Fatalf("%+v", got)
				}
			}
		})
	}
}
