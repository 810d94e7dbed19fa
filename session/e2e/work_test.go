package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"stepbox/session/e2e/must"
	"stepbox/session/e2e/pairstest"
)

// BenchmarkThousand is what a program's start costs through all layers, from the
// gate to the record: a shell starts /bin/true a thousand times, inside in policy
// mode and outside. As the agent, each is an action with checkpoints around it;
// nested, all are of one. Added is what each costs more than outside.
//
//	go test -run '^$' -bench Thousand -benchtime 1x ./session/e2e
func BenchmarkThousand(b *testing.B) {
	const loop = `i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done`
	for name, script := range map[string]string{"agent": loop, "nested": "sh -c '" + loop + "'; :"} {
		b.Run(name, func(b *testing.B) {
			var in, out []float64
			note := func(to *[]float64, run func() time.Duration) func() time.Duration {
				return func() time.Duration {
					took := run()
					*to = append(*to, took.Seconds()) // milliseconds each
					return took
				}
			}
			work := work{b: b, dir: folder(b), script: script}
			pairstest.Compare(b,
				pairstest.Way{Name: "inside", Run: note(&in, work.inside)},
				pairstest.Way{Name: "outside", Run: note(&out, work.outside)})
			added := make([]float64, len(in)-1) // without the one that warms up
			for i := range added {
				added[i] = in[i+1] - out[i+1]
			}
			slices.Sort(added)
			b.ReportMetric(added[len(added)/2], "added-ms")
			b.Logf("added to each: %.2f (%.2f to %.2f) ms", added[len(added)/2], added[len(added)/4], added[len(added)*3/4])
		})
	}
}

// BenchmarkBuild is what real work costs inside: a go build with an empty build
// cache, npm ci from a filled cache, and make. It takes minutes.
//
//	go test -run '^$' -bench Build -benchtime 1x -timeout 60m ./session/e2e
func BenchmarkBuild(b *testing.B) {
	for _, c := range []struct {
		name, needs string
		fill        func(b *testing.B, dir string)
		script      string
	}{
		{"go", "go", goProject, "GOCACHE=$(mktemp -d) go build -mod=vendor -o /dev/null ./policy"},
		{"npm", "npm", npmProject, "npm ci --offline --cache ./cache --no-audit --no-fund --ignore-scripts >&2"},
		{"make", "cc", cProject, "make -s -j2 >&2"},
	} {
		b.Run(c.name, func(b *testing.B) {
			if _, err := exec.LookPath(c.needs); err != nil {
				b.Skip(err)
			}
			work := work{b: b, dir: folder(b), script: c.script}
			c.fill(b, work.project())
			pairstest.Compare(b, pairstest.Way{Name: "inside", Run: work.inside}, pairstest.Way{Name: "outside", Run: work.outside})
		})
	}
}

// BenchmarkCalls is a session of an agent's as its commands make it: forty calls of its
// shell that list, read, search, edit, test and commit, one after the other, in policy
// mode inside and outside.
//
//	go test -run '^$' -bench Calls -benchtime 1x ./session/e2e
func BenchmarkCalls(b *testing.B) {
	if _, err := exec.LookPath("python3"); err != nil {
		b.Skip(err)
	}
	const round = `bash -c 'ls -la'; bash -c 'cat calc.py'; bash -c 'grep -rn def .'; bash -c 'git status --short'; bash -c "sed -i s/round.*/round$i/ notes.txt"
bash -c 'python3 -m unittest -q 2>/dev/null'; bash -c 'git diff --stat'; bash -c 'head -n 5 notes.txt | wc -l'; bash -c 'git add -A'; bash -c "git commit -qm round$i"; `
	work := work{b: b, dir: folder(b), script: "{ for i in 1 2 3 4; do " + round + "done; } >/dev/null"}
	for name, text := range map[string]string{
		"calc.py": "def add(a, b):\n    return a + b\n", "notes.txt": "round\n",
		"test_calc.py": "import unittest, calc\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(calc.add(1, 2), 3)\n",
	} {
		must.OK(b, os.WriteFile(filepath.Join(work.project(), name), []byte(text), 0o600))
	}
	cmd := exec.Command("sh", "-c", "git init -q && git config user.name a && git config user.email a@b.example && git add -A && git commit -qm zero")
	cmd.Dir = work.project()
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	pairstest.Compare(b, pairstest.Way{Name: "inside", Run: work.inside}, pairstest.Way{Name: "outside", Run: work.outside})
}

// folder is one for a benchmark's files, not below a home folder.
func folder(b *testing.B) string {
	dir, err := os.MkdirTemp("", "b")
	must.OK(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	for _, name := range []string{"project", "run"} {
		must.OK(b, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	return dir
}

// work is a shell's script that is timed by itself, so that starting a sandbox isn't
// counted. What it changes inside stays out of the project; outside, it runs in a
// copy of that.
type work struct {
	b      *testing.B
	dir    string
	script string
}

func (w *work) project() string { return filepath.Join(w.dir, "project") }

func (w *work) command() []string {
	return []string{"sh", "-c", "t=$(date +%s%N); " + w.script + ` || exit; echo took $(($(date +%s%N) - t)).`}
}

func (w *work) inside() time.Duration {
	cmd := exec.CommandContext(w.b.Context(), program, append([]string{"run", "--mode", "policy", "--"}, w.command()...)...)
	cmd.Dir = w.project()
	cmd.Env = append(os.Environ(), "STEPBOX_DATA="+filepath.Join(w.dir, "data"), "XDG_RUNTIME_DIR="+filepath.Join(w.dir, "run"))
	return w.took(cmd)
}

func (w *work) outside() time.Duration {
	dir := filepath.Join(w.dir, "copy")
	must.OK(w.b, os.CopyFS(dir, os.DirFS(w.project())))
	defer os.RemoveAll(dir)
	line := w.command()
	cmd := exec.CommandContext(w.b.Context(), line[0], line[1:]...)
	cmd.Dir = dir
	return w.took(cmd)
}

var tookLine = regexp.MustCompile(`took (\d+)\.`)

// took runs a command and reads how long it says that its work took.
func (w *work) took(cmd *exec.Cmd) time.Duration {
	out, err := cmd.CombinedOutput()
	said := tookLine.FindSubmatch(out)
	if err != nil || said == nil {
		w.b.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	n, err := strconv.ParseInt(string(said[1]), 10, 64)
	must.OK(w.b, err)
	return time.Duration(n)
}

// do runs a command that prepares something.
func do(b *testing.B, dir, name string, args ...string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// goProject is a package of this module with all that it needs.
func goProject(b *testing.B, dir string) {
	for _, name := range []string{"policy", "go.mod", "go.sum"} {
		do(b, "../..", "cp", "-r", name, dir)
	}
	do(b, dir, "go", "mod", "vendor")
}

// npmProject is one with a usual number of dependencies, and npm's cache of them.
func npmProject(b *testing.B, dir string) {
	do(b, dir, "npm", "init", "-y")
	do(b, dir, "npm", "install", "--cache", "./cache", "--no-audit", "--no-fund", "express@4.21.2", "eslint@9.17.0")
	do(b, dir, "npm", "ci", "--cache", "./cache", "--no-audit", "--no-fund") // which asks for more than install
	must.OK(b, os.RemoveAll(filepath.Join(dir, "node_modules")))
}

// cProject is a program of sixty files.
func cProject(b *testing.B, dir string) {
	write := func(name, format string, args ...any) {
		must.OK(b, os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, format, args...), 0o644))
	}
	write("Makefile", "OBJECTS := $(patsubst %%.c,%%.o,$(wildcard *.c))\nprogram: $(OBJECTS)\n\t$(CC) -o $@ $(OBJECTS)\n")
	write("main.c", "int main(void) { return 0; }\n")
	for i := range 60 {
		write(fmt.Sprintf("part%d.c", i), "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint part%d(char *s) { return printf(\"%%zu\", strlen(s)) + rand(); }\n", i)
	}
}
