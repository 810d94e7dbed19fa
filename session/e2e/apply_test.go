package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/e2e/pairstest"
)

// tree is what a folder holds: files by name, links as → and where they lead.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	if err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p) // it is below
		switch {
		case d.IsDir():
			out[rel] = "/"
		case d.Type() == os.ModeSymlink:
			to, err := os.Readlink(p)
			out[rel] = "→" + to
			return err
		default:
			b, err := os.ReadFile(p)
			out[rel] = string(b)
			return err
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// applies are those that the record has of a session.
func (p *person) applies(name string) []api.Apply {
	p.t.Helper()
	var list []api.Apply
	for line := range strings.Lines(p.do("log", "--json", name)) {
		var e api.Event
		must.OK(p.t, json.Unmarshal([]byte(line), &e))
		if e.Apply == nil {
			continue
		}
		for len(list) < int(e.Apply.ID) {
			list = append(list, api.Apply{})
		}
		list[e.Apply.ID-1] = *e.Apply
	}
	return list
}

// A session that runs is applied, undone and applied again while its agent goes
// on writing: what is applied is one state, and the agent notices nothing.
func TestApplyLive(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("a", "one\n")
	p.write("pair1", "0\n")
	p.write("pair2", "0\n")
	before := tree(t, p.project)
	// The pair is written in one go, time and again, by a program of its own.
	p.do("run", "--mode", "watch", "--name", "s", "--detach", "--", "bash", "-c",
		`echo two >a; mkdir d; echo x >d/f; n=0; while :; do n=$((n+1)); for f in pair1 pair2; do echo $n >$f; done; done`)
	if !poll(func() bool { return strings.Contains(p.do("diff", "s"), "pair2") }) {
		t.Fatal("nothing was written")
	}
	for range 2 {
		out := p.do("apply", "s", "--yes", "--looked")
		if !strings.Contains(out, "applied:") {
			t.Fatalf("%s", out)
		}
		got := tree(t, p.project)
		if got["a"] != "two\n" || got["d/f"] != "x\n" || got["pair1"] == "0\n" {
			t.Errorf("it applied %q", got)
		}
		p.do("apply", "s", "--undo", "--yes")
		if got := tree(t, p.project); !maps.Equal(got, before) {
			t.Errorf("after the undo there is %q", got)
		}
	}
	if s := p.show("s"); !s.Live() {
		t.Errorf("the session is %s: %s", s.State, s.Reason)
	}
	out := p.do("apply", "s", "--yes", "--looked", "--check", "grep two a && test -e d/f")
	p.do("kill", "s")
	s := p.show("s")
	if s.Applies != 1 || s.State != api.SessionEnded || !strings.Contains(out, "exit 0") {
		t.Errorf("%s; %+v", out, s.Session)
	}
	// The agent has written the pair since, which is all that is left to be applied.
	if s.Unapplied > 2 {
		t.Errorf("%d changes are said not to be in the project", s.Unapplied)
	}
	if out := p.do("apply", "s", "--dry-run"); strings.Contains(out, "d/f\n") {
		t.Errorf("what was applied is planned again:\n%s", out)
	}
	if out := p.do("rm", "--force", "s"); !strings.Contains(out, "1 apply of it can't be undone") {
		t.Errorf("nothing is said of what goes with the session: %s", out)
	}
}

// half applies, and kills a process at some moment while the project is written.
// It says whether that came before the end.
func (p *person) half(after time.Duration, victim func(*exec.Cmd) int, args ...string) bool {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	journals := filepath.Join(p.dir, "data", "journals")
	before := open(journals)
	cmd := p.command(ctx, args...)
	must.OK(p.t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case <-ended:
			return false
		case <-time.After(100 * time.Microsecond): // there is nothing to wait on: the moment is to be any
		}
		if now := open(journals); now != "" && now != before {
			break
		}
	}
	<-time.After(after) // any moment is a good one
	pid := victim(cmd)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		p.t.Fatal(err)
	}
	<-ended
	return true
}

// open names the journals that something is at.
func open(dir string) string {
	entries, _ := os.ReadDir(dir) // it may not be there yet
	var out []string
	for _, e := range entries {
		switch filepath.Ext(e.Name()) {
		case ".making", ".moving", ".reversing", ".cleaning":
			out = append(out, e.Name())
		}
	}
	return strings.Join(out, " ")
}

// crashes applies and undoes with kills in the middle, each at another moment.
// After each the next command leaves all of it done, or nothing, and the record
// says which.
func crashes(t *testing.T, p *person, victim func(*exec.Cmd) int, restart func()) {
	before := tree(t, p.project)
	p.do("apply", "s", "--yes", "--looked", "--no-checks")
	after := tree(t, p.project)
	said := 0
	for i := range 24 {
		args := []string{"apply", "s", "--yes", "--looked", "--no-checks"}
		all := p.applies("s")
		if last := all[len(all)-1]; last.State == api.ApplyDone {
			args = []string{"apply", "s", "--yes", fmt.Sprintf("--undo=%d", last.ID)}
		}
		killed := p.half(time.Duration(i)*700*time.Microsecond, victim, args...)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		words, err := p.command(ctx, "ls").CombinedOutput()
		cancel()
		if err != nil {
			t.Fatalf("%v: %s", err, words)
		}
		if strings.Contains(string(words), "interrupted, ") {
			said++
		}
		got := tree(t, p.project)
		all = p.applies("s")
		last := all[len(all)-1]
		done := last.State == api.ApplyDone
		if want := map[bool]map[string]string{true: after, false: before}[done]; !maps.Equal(got, want) {
			t.Fatalf("round %d, killed %v: the record says %s, and the project has %d names instead of %d\n%s", i, killed, last.State, len(got), len(want), words)
		}
		if last.State == api.ApplyOpen || last.State == api.ApplyUndoing {
			t.Fatalf("round %d: the last apply is still %s\n%s", i, last.State, words)
		}
		if restart != nil {
			restart()
		}
	}
	if said == 0 {
		t.Error("no kill came in the middle")
	}
}

// writes is an agent that changes enough for a kill to come in the middle.
const writes = `mkdir -p d/e; for i in $(seq 300); do echo "new $i" >d/f$i; done; for i in $(seq 0 99); do echo changed >old$i; done; rm -rf gone; ln -s d link`

func (p *person) manyFiles() {
	p.t.Helper()
	for i := range 100 {
		p.write("old"+strconv.Itoa(i), "old\n")
	}
	must.OK(p.t, os.Mkdir(filepath.Join(p.project, "gone"), 0o755))
	for i := range 50 {
		p.write("gone/"+strconv.Itoa(i), "gone\n")
	}
}

// The command is killed while it writes what an ended session changed.
func TestApplyKilled(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.manyFiles()
	p.do("run", "--mode", "watch", "--name", "s", "--", "bash", "-c", writes)
	crashes(t, p, func(cmd *exec.Cmd) int { return cmd.Process.Pid }, nil)
}

// The supervisor is killed while it writes what its session changed; the next
// command takes over.
func TestApplySupervisorKilled(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.manyFiles()
	p.do("run", "--mode", "watch", "--name", "s", "--detach", "--", "bash", "-c", writes+"; sleep 1000")
	if !poll(func() bool { return strings.Contains(p.do("diff", "s"), "link") }) {
		t.Fatal("the agent didn't come to its end")
	}
	before := tree(t, p.project)
	if !p.half(3*time.Millisecond, func(*exec.Cmd) int { return p.supervisor() }, "apply", "s", "--yes", "--looked", "--no-checks") {
		t.Fatal("it was too late to kill the supervisor")
	}
	p.do("ls")
	all := p.applies("s")
	got := tree(t, p.project)
	switch last := all[len(all)-1]; last.State {
	case api.ApplyDone:
		if got["d/f300"] != "new 300\n" || got["gone"] != "" || got["link"] != "→d" {
			t.Error("it is done, and not all is there")
		}
		p.do("apply", "s", "--undo", "--yes")
	case api.ApplyFailed:
		if !maps.Equal(got, before) {
			t.Error("it failed, and the project isn't as it was")
		}
	default:
		t.Errorf("it is %s", last.State)
	}
	if s := p.show("s"); s.State != api.SessionInterrupted {
		t.Errorf("the session is %s", s.State)
	}
	// The interrupted session is applied by the command.
	out := p.do("apply", "s", "--yes", "--looked")
	if got := tree(t, p.project); got["d/f300"] != "new 300\n" {
		t.Errorf("an interrupted session wasn't applied:\n%s", out)
	}
}

// supervisor is the process of this person's only live session.
func (p *person) supervisor() int {
	p.t.Helper()
	notes, _ := filepath.Glob(filepath.Join(p.dir, "data", "live", "*.json")) // a pattern that is well-formed
	for _, file := range notes {
		var note struct{ PID int }
		b, err := os.ReadFile(file)
		if err == nil && json.Unmarshal(b, &note) == nil && note.PID > 1 {
			return note.PID
		}
	}
	p.t.Fatal("there is no supervisor")
	return 0
}

// BenchmarkApply measures the whole command that applies a session of 1,000 and of
// 10,000 changed files, beside rsync of the same files from a folder and git's
// checkout of them:
//
//	go test -run '^$' -bench Apply ./session/e2e
func BenchmarkApply(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) { benchmarkApply(b, n) })
	}
}

func benchmarkApply(b *testing.B, n int) {
	fill := func(dir, line string) {
		for i := range n {
			p := filepath.Join(dir, fmt.Sprintf("d%d", i/50), fmt.Sprintf("f%d", i))
			must.OK(b, os.MkdirAll(filepath.Dir(p), 0o755))
			must.OK(b, os.WriteFile(p, []byte(strings.Repeat(line+strconv.Itoa(i)+"\n", 20)), 0o644))
		}
	}
	timed := func(cmd *exec.Cmd) time.Duration {
		began := time.Now()
		out, err := cmd.CombinedOutput()
		took := time.Since(began)
		if err != nil {
			b.Fatalf("%v: %v\n%s", cmd.Args, err, out)
		}
		return took
	}
	p := newPerson(b)
	fill(p.project, "line ")
	p.do("run", "--mode", "watch", "--name", "s", "--", "sh", "-c", "sed -i 's/^/changed /' d*/f*")
	applied := false
	ways := []pairstest.Way{{Name: "stepbox", Run: func() time.Duration {
		if applied {
			p.do("apply", "s", "--undo", "--yes")
		}
		applied = true
		return timed(p.command(b.Context(), "apply", "s", "--yes", "--looked"))
	}}}
	if _, err := exec.LookPath("rsync"); err == nil {
		from, to := b.TempDir(), b.TempDir()
		fill(from, "changed line ")
		ways = append(ways, pairstest.Way{Name: "rsync", Run: func() time.Duration {
			fill(to, "line ")
			return timed(exec.CommandContext(b.Context(), "rsync", "-a", from+"/", to+"/"))
		}})
	}
	if _, err := exec.LookPath("git"); err == nil {
		dir := b.TempDir()
		git := func(args ...string) time.Duration {
			return timed(exec.CommandContext(b.Context(), "git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x"}, args...)...))
		}
		fill(dir, "line ")
		git("init", "-q", "-b", "one")
		git("add", "-A")
		git("commit", "-qm", "one")
		git("checkout", "-q", "-b", "two")
		fill(dir, "changed line ")
		git("commit", "-qam", "two")
		ways = append(ways, pairstest.Way{Name: "git", Run: func() time.Duration {
			git("checkout", "-q", "one")
			return git("checkout", "-q", "two")
		}})
	}
	pairstest.Compare(b, ways...)
}

// Ctrl-C while a check runs leaves everything as it was, and says so.
func TestApplyStopped(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("a", "one\n")
	p.do("run", "--mode", "watch", "--name", "s", "--", "sh", "-c", "echo two >a")
	before := tree(t, p.project)
	for _, live := range []bool{false, true} {
		name := "s"
		if live {
			name = "l"
			p.do("run", "--mode", "watch", "--name", name, "--detach", "--", "sh", "-c", "echo two >a; exec sleep 1000")
			if !poll(func() bool { return strings.Contains(p.do("diff", name), "a") }) {
				t.Fatal("nothing was written")
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		cmd := p.command(ctx, "apply", name, "--yes", "--looked", "--check", "sleep 1234")
		var said strings.Builder
		cmd.Stderr = &said
		must.OK(t, cmd.Start())
		runs := func() bool {
			found, _ := filepath.Glob("/proc/[0-9]*/cmdline") // a pattern that is well-formed
			for _, f := range found {
				env, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "environ")) // it may be gone
				b, _ := os.ReadFile(f)
				if string(b) == "sleep\x001234\x00" && strings.Contains(string(env), p.home) {
					return true
				}
			}
			return false
		}
		if !poll(runs) {
			t.Fatal("the check doesn't run")
		}
		must.OK(t, cmd.Process.Signal(syscall.SIGINT))
		_ = cmd.Wait() // its exit code says how
		cancel()
		if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(said.String(), "stopped; the project folder is as it was") {
			t.Errorf("live %v: exit %d: %s", live, code, said.String())
		}
		if !poll(func() bool { return !runs() }) {
			t.Error("the check goes on")
		}
		if got := tree(t, p.project); !maps.Equal(got, before) {
			t.Errorf("live %v: the project has %q", live, got)
		}
		p.do("apply", name, "--yes", "--looked")
		p.do("apply", name, "--yes", "--undo")
	}
}
