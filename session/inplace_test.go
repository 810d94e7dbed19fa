package session_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// ordinary is a uid that needs no account.
const ordinary = 12345

const holds = `
import mmap
f = open("mapped", "r+b")
m = mmap.mmap(f.fileno(), 4)
m[3:4] = b"m"
open("/tmp/holds", "w").close()
open("/tmp/go").readline()
m[0:1] = b"Z"
m.flush()
open("/tmp/stored", "w").close()
`

const changes = `
import os
open("log", "a").write("two\n")
with open("mapped", "r+b") as f: f.write(b"bbbb")
for name in "none", "writeonly":
    os.chmod(name, 0o600)
    open(name, "w").write("changed")
    os.chmod(name, 0o644)
os.setxattr("marked", "user.mark", b"2")
os.setxattr("marked", "user.more", b"3")
open("link1", "w").write("changed")
`

// TestRollbackOfFilesThatAreHeld takes back, in step mode, what a command did to
// files that living processes hold open or mapped, that can't be read, that have
// attributes or that are hard links, as root and as an ordinary user.
func TestRollbackOfFilesThatAreHeld(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Run("ordinary", func(t *testing.T) { asOrdinary(t, "^TestRollbackOfFilesThatAreHeld$") })
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here")
	}
	marks := true
	w := startWith(t, api.ModeStep, `mkfifo /tmp/feed /tmp/go; exec 3>>log 4<>/tmp/feed 5<>/tmp/go; echo one >&3
		python3 holds.py & read -u 4 x; python3 changes.py; read -u 4 x; echo more >&3; read -u 4 x`, func(project string) {
		put := func(name, text string, mode os.FileMode) {
			path := filepath.Join(project, name)
			must.OK(t, os.WriteFile(path, []byte(text), 0o600))
			must.OK(t, os.Chmod(path, mode))
		}
		put("holds.py", holds, 0o644)
		put("changes.py", changes, 0o644)
		put("mapped", "aaaa", 0o644)
		put("none", "secret", 0)
		put("writeonly", "in", 0o200)
		put("marked", "x", 0o644)
		put("link1", "both", 0o644)
		must.OK(t, os.Link(filepath.Join(project, "link1"), filepath.Join(project, "link2")))
		marks = unix.Setxattr(filepath.Join(project, "marked"), "user.mark", []byte("1"), 0) == nil
	})
	if !marks {
		t.Skip("the file system has no user attributes")
	}
	tmp := filepath.Join(w.store.SessionDir(w.ID()), "tmp")
	upper := filepath.Join(w.store.SessionDir(w.ID()), "upper")
	until := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(patience); !is(); <-time.After(2 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s never came", what)
			}
		}
	}
	holdsNow := func(name, text string) func() bool {
		return func() bool {
			b, err := os.ReadFile(filepath.Join(upper, name))
			return err == nil && string(b) == text
		}
	}
	there := func(name string) func() bool {
		return func() bool { _, err := os.Lstat(filepath.Join(tmp, name)); return err == nil }
	}
	// answer answers what is held until the wanted question comes.
	var last int64
	answer := func(until func(api.Question) bool) api.Question {
		t.Helper()
		for {
			q := w.held(last)
			last = q.ID
			if until(q) {
				return q
			}
			a := api.AnswerApprove
			if q.Subject == api.SubjectEdit {
				a = api.AnswerKeep
			}
			w.must(w.decide(q, a))
		}
	}
	w.must(w.decide(answer(func(q api.Question) bool { return q.Title == "python3 holds.py" }), api.AnswerApprove))
	until("the mapping", there("holds"))
	agent := w.feed("feed")
	agent("go")
	review := answer(func(q api.Question) bool { return q.Subject == api.SubjectEdit && q.Title == "python3 changes.py" })
	w.must(w.decide(review, api.AnswerRollback))
	agent("go")
	until("what was appended", holdsNow("log", "one\nmore\n"))
	w.feed("go")("go")
	until("the store", func() bool {
		// What the agent appended may be asked about, and holds all up then.
		open, err := w.read.Questions(w.Context(), w.ID())
		w.must(err)
		for _, q := range open {
			_ = w.decide(q, api.AnswerKeep) // one that it doesn't answer stays, and so does the wait
		}
		return there("stored")()
	})
	until("what was stored", holdsNow("mapped", "Zaam"))
	for _, line := range w.changed(0) {
		if name := line[2:]; name != "log" && name != "mapped" {
			t.Errorf("after the roll back there is %q", line)
		}
	}
	for _, name := range []string{"link1", "link2"} {
		st, err := os.Stat(filepath.Join(w.project, name))
		w.must(err)
		if n := st.Sys().(*syscall.Stat_t).Nlink; n != 2 {
			t.Errorf("the project's %s has %d links", name, n)
		}
	}
}

// asOrdinary runs tests of this binary as a user without rights, and without cgroups.
func asOrdinary(t *testing.T, pattern string) {
	dir, err := os.MkdirTemp("", "ordinary")
	must.OK(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must.OK(t, os.Chown(dir, ordinary, ordinary))
	// Not by its path, which may lead through folders of root's alone.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", pattern)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "GORACE=" + os.Getenv("GORACE")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("no tests to run")) {
		t.Errorf("as uid %d: %v\n%s", ordinary, err, out)
	}
}
