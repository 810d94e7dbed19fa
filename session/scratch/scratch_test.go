package scratch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stepbox/runner/gate"
	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/files"
	"stepbox/store/storetest"
)

// patience bounds waits for what should happen at once.
const patience = 2 * time.Minute

type stateOf = *manifest.Manifest

// rig is a project with sandboxes of it.
type rig struct {
	testing.TB
	*Scratch
	project string
	said    string // what the last agent printed
}

// newRig makes a project of some files, by name.
func newRig(t testing.TB, list map[string]string) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	return rigIn(t, dir, list)
}

// rigIn is newRig below a folder, in which there may be one already.
func rigIn(t testing.TB, dir string, list map[string]string) *rig {
	t.Helper()
	must.Sampled(t)
	r := &rig{TB: t, project: filepath.Join(dir, "project")}
	home, data := filepath.Join(dir, "home"), filepath.Join(dir, "data")
	for _, d := range []string{r.project, home, data} {
		r.must(os.MkdirAll(d, 0o700))
	}
	for name, text := range list {
		r.write(name, text)
	}
	st := storetest.Open(t, data)
	r.Scratch = New(Config{
		Store: st, Workspace: r.project, Home: home, DataDir: data,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home},
	})
	t.Cleanup(func() {
		// The kernel takes some of it down in its own time.
		left := traces(data, "")
		for end := time.Now().Add(patience); left != "" && time.Now().Before(end); <-time.After(20 * time.Millisecond) {
			left = traces(data, "")
		}
		if left != "" {
			t.Errorf("left are %s", left)
		}
	})
	return r
}

func (r *rig) must(err error) {
	r.Helper()
	must.OK(r, err)
}

func (r *rig) write(name, text string) {
	r.Helper()
	p := filepath.Join(r.project, name)
	r.must(os.MkdirAll(filepath.Dir(p), 0o755))
	r.must(os.WriteFile(p, []byte(text), 0o644))
}

// agent is the state that a command leaves, run as an agent would: over the
// project as it is, in a sandbox like a session's.
func (r *rig) agent(command string) *manifest.Manifest {
	r.Helper()
	box, low, first, err := r.start(r.Context(), job{argv: []string{"/bin/bash", "-c", command}})
	r.must(err)
	defer low.Close()
	done := make(chan string)
	go func() {
		var out strings.Builder
		follow(box.Terminal(), func(p []byte) { out.Write(p) })
		done <- out.String()
	}()
	(<-first).Allow(gate.NoExit)
	exit, err := box.Wait()
	r.must(err)
	m := r.scan(box.Upper(), box.OpenUpper)
	r.must(box.Close(r.Context()))
	if r.said = strings.ReplaceAll(<-done, "\r\n", "\n"); exit.Code != 0 || exit.Signal != "" {
		r.Fatalf("the agent ended with %+v:\n%s", exit, r.said)
	}
	return m
}

// layer is the state that a command leaves in a layer over the project, with a /tmp of its own: what an
// agent may do, without a sandbox, as far as nothing is hidden from it.
func (r *rig) layer(command string) *manifest.Manifest {
	r.Helper()
	parent := filepath.Dir(r.project)
	dir, err := os.MkdirTemp(parent, "layer")
	r.must(err)
	upper := filepath.Join(dir, "upper")
	r.must(errors.Join(os.Mkdir(upper, 0o700), os.Mkdir(filepath.Join(dir, "work"), 0o700)))
	const over = `mount -t overlay overlay -o userxattr,lowerdir=project,upperdir=$1/upper,workdir=$1/work project && cd project && exec bash -c "$2"`
	cmd := exec.CommandContext(r.Context(), "unshare", "--user", "--map-root-user", "--mount", "sh", "-c", over,
		"sh", filepath.Base(dir), strings.ReplaceAll(command, "/tmp/", dir+"/"))
	cmd.Dir = parent
	r.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "work", "work"), 0o700) }) // as the kernel leaves it nobody can look into it
	cmd.Env = r.cfg.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("%v:\n%s", err, out)
	}
	return r.scan(upper, nil)
}

func (r *rig) scan(upper string, open inode.Opener) *manifest.Manifest {
	r.Helper()
	scanner, err := scan.New(upper, files.Bodies{Store: r.cfg.Store}, open)
	r.must(err)
	defer scanner.Close()
	m, _, err := scanner.Scan(r.Context(), scan.Options{})
	r.must(err)
	return m
}

func (r *rig) check(state *manifest.Manifest, command string) api.CheckResult {
	r.Helper()
	got, err := r.Check(r.Context(), state, command, nil)
	r.must(err)
	return got
}

func TestChecksSucceedAndFail(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "host\n", "gone.txt": "host\n"})
	state := r.agent("echo agent >a.txt; rm gone.txt; mkdir new; echo more >new/file")
	for command, want := range map[string]struct {
		code   int
		output string
	}{
		"cat a.txt new/file; ls -1": {0, "agent\nmore\na.txt\nnew\n"},
		"cat gone.txt; exit 3":      {3, "cat: gone.txt: No such file or directory\n"},
		"kill -9 $$":                {137, ""},
		`printf 'a\tb\rc\033[31mred\033[0m\n\033]0;title\007x\0y'; cat`: {0, "cred\nx\\x00y"},
	} {
		got := r.check(state, command)
		if got.Exit == nil || got.Failure != "" || (got.Exit.Code != want.code && got.Exit.Signal == "") || got.Output != want.output {
			t.Errorf("%s: %+v, exit %+v", command, got, got.Exit)
		}
		if got.Passed() != (want.code == 0) || got.Duration <= 0 || got.Command != api.Escape(command) {
			t.Errorf("%s passed: %v, took %v", command, got.Passed(), got.Duration)
		}
	}
}
