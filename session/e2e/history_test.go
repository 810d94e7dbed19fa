package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"stepbox/session/e2e/must"
	"stepbox/session/e2e/pairstest"
)

// BenchmarkBisect measures the whole command that finds which of 300 actions broke
// a test, beside git bisect run over as many commits of the same changes:
//
//	go test -run '^$' -bench Bisect ./session/e2e
func BenchmarkBisect(b *testing.B) {
	const steps, fault = 300, 217
	test := "! grep -q broken state"
	change := func(i int) string {
		if i == fault {
			return "echo broken >>state"
		}
		return fmt.Sprintf("echo %d >>state", i)
	}
	p := newPerson(b)
	p.write("state", "0\n")
	var script strings.Builder
	for i := 1; i <= steps; i++ {
		fmt.Fprintf(&script, "sh -c '%s'\n", change(i))
	}
	p.write("agent.sh", script.String())
	p.do("run", "--mode", "watch", "--name", "s", "--", "sh", "agent.sh")
	ways := []pairstest.Way{{Name: "stepbox", Run: func() time.Duration {
		began := time.Now()
		out := p.do("bisect", "s", "--", "sh", "-c", test)
		took := time.Since(began)
		if !strings.Contains(out, "echo broken") {
			b.Fatalf("it found something else: %s", out)
		}
		return took
	}}}
	if git, err := exec.LookPath("git"); err != nil {
		b.Log("git isn't installed: nothing is compared with it")
	} else {
		dir := b.TempDir()
		run := func(args ...string) string {
			cmd := exec.CommandContext(b.Context(), git, append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil {
				b.Fatalf("git %v: %v\n%s", args, err, out)
			}
			return string(out)
		}
		run("init", "-q")
		must.OK(b, os.WriteFile(filepath.Join(dir, "state"), []byte("0\n"), 0o644))
		run("add", "state")
		run("commit", "-qm", "0")
		for i := 1; i <= steps; i++ {
			do(b, dir, "sh", "-c", change(i))
			run("commit", "-qam", strconv.Itoa(i))
		}
		ways = append(ways, pairstest.Way{Name: "git", Run: func() time.Duration {
			began := time.Now()
			run("bisect", "start", "HEAD", fmt.Sprintf("HEAD~%d", steps))
			out := run("bisect", "run", "sh", "-c", test)
			took := time.Since(began)
			if !strings.Contains(out, "is the first bad commit") {
				b.Fatalf("git found something else: %s", out)
			}
			run("bisect", "reset")
			return took
		}})
	}
	pairstest.Compare(b, ways...)
}

// BenchmarkRecorded measures what a busy hour leaves on the disk: a thousand
// actions, each with a change and 10 kB of coloured output, done as fast as they
// can be. It is beside the file of asciinema, if that is installed.
//
//	go test -run '^$' -bench Recorded -benchtime 1x ./session/e2e
func BenchmarkRecorded(b *testing.B) {
	const line = `i=0; while [ $i -lt 1000 ]; do sh -c "echo $i >>state; seq -f \"$(printf '\033[3%dm' $((i%8)))line %g of step $i \" 1 400"; i=$((i+1)); done`
	p := newPerson(b)
	p.write("state", "0\n")
	p.write("agent.sh", line)
	data := filepath.Join(p.dir, "data")
	size := func(dir string) (n int64) {
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				n += info.Size()
			}
			return err
		})
		must.OK(b, err)
		return n
	}
	for b.Loop() {
		p.do("run", "--mode", "watch", "--name", "s", "--", "sh", "agent.sh")
		if !poll(func() bool { // the supervisor packs and closes the record after the command has ended
			_, err := os.Lstat(filepath.Join(data, "stepbox.db-wal"))
			return errors.Is(err, fs.ErrNotExist)
		}) {
			b.Fatal("the record wasn't closed")
		}
		report := func(name string, n int64) { b.ReportMetric(float64(n)/1e6, name+"-MB") }
		report("whole", size(data))
		report("database", size(filepath.Join(data, "stepbox.db")))
		report("words", size(filepath.Join(data, "words.db")))
		report("bodies", size(filepath.Join(data, "bodies")))
		report("terminal", size(filepath.Join(data, "sessions", p.show("s").ID, "terminal")))
		p.do("rm", "s", "--force")
		p.do("gc")
	}
	if asciinema, err := exec.LookPath("asciinema"); err != nil {
		b.Log("asciinema isn't installed: nothing is compared with it")
	} else {
		file := filepath.Join(b.TempDir(), "cast")
		do(b, p.project, asciinema, "rec", "-q", "-c", "sh agent.sh", file)
		info, err := os.Stat(file)
		must.OK(b, err)
		b.ReportMetric(float64(info.Size())/1e6, "asciinema-MB")
	}
}
