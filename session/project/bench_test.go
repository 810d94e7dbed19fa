package project

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/e2e/must"
	"stepbox/session/e2e/pairstest"
)

// folderBodies keeps bodies as files, as the store does with larger ones.
type folderBodies string

func (d folderBodies) Put(_ context.Context, r io.Reader) (content.Hash, int64, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return content.Hash{}, 0, err
	}
	h := content.Sum(b)
	name := filepath.Join(string(d), h.String())
	if _, err := os.Stat(name); err == nil {
		return h, int64(len(b)), nil
	}
	return h, int64(len(b)), os.WriteFile(name, b, 0o600)
}

func (d folderBodies) Open(_ context.Context, h content.Hash) (io.ReadCloser, int64, error) {
	b, err := os.ReadFile(filepath.Join(string(d), h.String()))
	return io.NopCloser(bytes.NewReader(b)), int64(len(b)), err
}

func (d folderBodies) Missing(_ context.Context, hashes []content.Hash) (missing []content.Hash, err error) {
	for _, h := range hashes {
		if _, err := os.Stat(filepath.Join(string(d), h.String())); err != nil {
			missing = append(missing, h)
		}
	}
	return missing, nil
}

// BenchmarkCarry writes changed files over old ones: ours, with a journal and all of
// it on disk at the end; "rsync -a" and "git checkout", which promise neither; and
// "rsync -a" with a sync(1) of that file system after it.
func BenchmarkCarry(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchCarry(b, n) })
	}
}

func benchCarry(b *testing.B, files int) {
	for _, tool := range []string{"rsync", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			b.Skipf("%s isn't installed", tool)
		}
	}
	top := b.TempDir()
	bodies := folderBodies(filepath.Join(top, "bodies"))
	root, repo, to := filepath.Join(top, "project"), filepath.Join(top, "repo"), filepath.Join(top, "to")
	versions := [2]string{filepath.Join(top, "old"), filepath.Join(top, "new")}
	for _, d := range []string{string(bodies), root, repo, to, versions[0], versions[1]} {
		must.OK(b, os.Mkdir(d, 0o755))
	}
	name := func(i int) string { return fmt.Sprintf("d%03d/file%05d.txt", i/100, i) }
	states := [2][]State{}
	for v, dir := range versions {
		for i := range files {
			text := bytes.Repeat([]byte(fmt.Sprintf("version %d of line %d\n", v, i)), 100+i%100)
			must.OK(b, os.MkdirAll(filepath.Dir(filepath.Join(dir, name(i))), 0o755), os.WriteFile(filepath.Join(dir, name(i)), text, 0o644))
			h, size, err := bodies.Put(b.Context(), bytes.NewReader(text))
			must.OK(b, err)
			states[v] = append(states[v], State{Kind: 1, Meta: manifest.Meta{Mode: 0o644}, Size: size, Hash: h})
		}
	}
	run := func(dir string, argv ...string) {
		cmd := exec.CommandContext(b.Context(), argv[0], argv[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", argv, err, out)
		}
	}
	run(repo, "git", "init", "-q")
	for v, dir := range versions {
		run(top, "rsync", "-a", dir+"/", repo+"/")
		run(repo, "git", "add", "-A")
		run(repo, "git", "commit", "-qm", "v")
		run(repo, "git", "branch", fmt.Sprint("v", v))
	}
	run(repo, "git", "checkout", "-q", "v0")
	run(top, "rsync", "-a", versions[0]+"/", root+"/")
	run(top, "rsync", "-a", versions[0]+"/", to+"/")
	f, err := Open(root)
	must.OK(b, err)
	defer f.Close()
	in := Journals{Dir: filepath.Join(top, "journals"), Bodies: bodies}
	at := map[string]int{}
	turn := func(way string, do func(v int)) pairstest.Way {
		return pairstest.Way{Name: way, Run: func() time.Duration {
			v := 1 - at[way]
			at[way] = v
			unix.Sync() // what others wrote isn't ours to wait for
			start := time.Now()
			do(v)
			return time.Since(start)
		}}
	}
	journal := 0
	ours := turn("stepbox", func(v int) {
		steps := make([]Step, files)
		for i := range steps {
			steps[i] = Step{name(i), states[1-v][i], states[v][i]}
		}
		journal++
		left, err := f.Carry(b.Context(), in, fmt.Sprint("bench-", journal), steps, nil)
		if err != nil || len(left) > 0 {
			b.Fatalf("%v %+v", err, left)
		}
	})
	rsync := func(v int) { run(top, "rsync", "-a", "--ignore-times", versions[v]+"/", to+"/") }
	pairstest.Compare(b, ours,
		turn("rsync", rsync),
		turn("rsync-and-sync", func(v int) { rsync(v); run(top, "sync", "-f", to) }),
		turn("git-checkout", func(v int) { run(repo, "git", "checkout", "-q", fmt.Sprint("v", v)) }))
}
