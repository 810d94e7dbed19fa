package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/e2e/pairstest"
)

// modifying is an agent that has a command modify all files whenever they are as
// they were. It looks by itself, so that nothing else is an action.
const modifying = `mkfifo /tmp/never; exec 3<>/tmp/never
while :; do
	read -rt 0.3 -u 3
	read -r line <d0/f0
	case $line in changed*) ;; *) sed -i 's/^/changed /' d*/f*;; esac
done
`

// BenchmarkRollback measures the whole command that rolls 1,000 modified files
// back in a live session, beside git's checkout of the same:
//
//	go test -run '^$' -bench Rollback ./session/e2e
func BenchmarkRollback(b *testing.B) {
	const files = 1000
	fill := func(dir, prefix string) {
		for i := range files {
			p := filepath.Join(dir, fmt.Sprintf("d%d", i/50), fmt.Sprintf("f%d", i))
			must.OK(b, os.MkdirAll(filepath.Dir(p), 0o755))
			line := prefix + "line of file " + strconv.Itoa(i) + "\n"
			must.OK(b, os.WriteFile(p, []byte(strings.Repeat(line, 20)), 0o644))
		}
	}
	p := newPerson(b)
	fill(p.project, "")
	p.write("agent.sh", modifying)
	p.do("run", "--mode", "watch", "--name", "r", "--detach", "--", "bash", "agent.sh")
	last := 0
	ways := []pairstest.Way{{Name: "stepbox", Run: func() time.Duration {
		if !poll(func() bool {
			for _, a := range p.show("r").List {
				if a.N > last && a.State == api.ActionEnded && a.Files >= files {
					last = a.N
					return true
				}
			}
			return false
		}) {
			b.Fatalf("nothing was modified: %+v", p.show("r").List)
		}
		began := time.Now()
		out := p.do("rollback", "r", "--to-before", strconv.Itoa(last))
		took := time.Since(began)
		if !strings.Contains(out, strconv.Itoa(files)) {
			b.Fatalf("it rolled back something else: %s", out)
		}
		return took
	}}}
	if git, err := exec.LookPath("git"); err != nil {
		b.Log("git isn't installed: nothing is compared with it")
	} else {
		dir := b.TempDir()
		fill(dir, "")
		run := func(args ...string) time.Duration {
			cmd := exec.CommandContext(b.Context(), git, append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
			began := time.Now()
			out, err := cmd.CombinedOutput()
			took := time.Since(began)
			if err != nil {
				b.Fatalf("git %v: %v\n%s", args, err, out)
			}
			return took
		}
		run("init", "-q")
		run("add", "-A")
		run("commit", "-qm", "one")
		ways = append(ways, pairstest.Way{Name: "git", Run: func() time.Duration {
			fill(dir, "changed ")
			return run("checkout", "-q", "--", ".")
		}})
	}
	pairstest.Compare(b, ways...)
}
