package main

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"
)

// faulty is a record that something is done to.
type faulty struct{ killed }

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	f := &faulty{killed{T: t, work: t.TempDir()}}
	f.prepare()
	t.Cleanup(func() {
		if left := leftovers(f.work); len(left) > 0 {
			t.Errorf("it left behind:\n  %s", strings.Join(left, "\n  "))
		}
	})
	return f
}

func (f *faulty) db() string { return filepath.Join(f.data(), "stepbox.db") }

// says runs a command that is to end with a code and words, and without more than those.
func (f *faulty) says(code int, words []string, args ...string) {
	f.Helper()
	out, err := f.stepbox(args...).CombinedOutput()
	var ended *exec.ExitError
	if got := 0; err != nil && !errors.As(err, &ended) || ended != nil && ended.ExitCode() != code || ended == nil && got != code {
		f.Errorf("%q: %v, want exit code %d", args, err, code)
	}
	for _, w := range words {
		if !strings.Contains(string(out), w) {
			f.Errorf("%q doesn't say %q: %s", args, w, out)
		}
	}
	if strings.Contains(string(out), "goroutine ") || bytes.Count(out, []byte("\n")) > 1 && code != 0 {
		f.Errorf("%q says too much: %s", args, out)
	}
}

// every is a command of each sort: one that reads, writes, starts, removes, exports.
var every = [][]string{
	{"ls"}, {"show", "it"}, {"log", "it"}, {"diff", "it"}, {"verify", "--all"}, {"gc"}, {"rm", "--force", "it"}, {"label", "it", "--pin"},
	{"key"}, {"export", "it"}, {"apply", "it", "--yes"}, {"replay", "it"}, {"run", "--mode", "watch", "--", "true"},
}

// A database that can't be read is told of by every command in the same words, which
// help: what they say makes a new record, and the old one stays as it was.
func TestDamagedRecord(t *testing.T) {
	for name, damage := range map[string]func(b []byte){
		"not a database": func(b []byte) { _, _ = rand.Read(b[:4096]) }, // it never fails
		"damaged pages": func(b []byte) {
			for i := 4096; i < len(b)-4096; i++ {
				b[i] ^= 0x5a
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFaulty(t)
			f.says(0, nil, "run", "--mode", "watch", "--name", "it", "--", "true")
			for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
				if _, err := os.Stat(f.db() + "-wal"); err != nil { // the supervisor has let go of it
					break
				}
			}
			b, err := os.ReadFile(f.db())
			if err != nil {
				t.Fatal(err)
			}
			damage(b)
			if err := os.WriteFile(f.db(), b, 0o600); err != nil {
				t.Fatal(err)
			}
			words := []string{"the record is damaged", "mv " + f.db() + "* "}
			for _, args := range every {
				code := 1
				if args[0] == "run" {
					code = 125
				}
				f.says(code, words, args...)
			}
			if now, err := os.ReadFile(f.db()); err != nil || !bytes.Equal(now, b) {
				t.Errorf("the database was changed, %v", err)
			}
			out, _ := f.stepbox("ls").CombinedOutput() // it says what helps
			_, advice, _ := strings.Cut(string(out), "for inspection: ")
			advice, _, _ = strings.Cut(advice, ": ")
			if out, err := exec.CommandContext(t.Context(), "sh", "-c", advice).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", advice, err, out)
			}
			f.says(0, nil, "run", "--mode", "watch", "--name", "new", "--", "true")
			f.says(0, []string{"new"}, "ls")
			if now, err := os.ReadFile(filepath.Join(f.data(), "damaged", "stepbox.db")); err != nil || !bytes.Equal(now, b) {
				t.Errorf("what was kept isn't what there was, %v", err)
			}
		})
	}
}

// A live session whose record can't be written any more ends, says why, and lets nothing
// happen that isn't recorded; what was recorded can be read, where there still is a record.
func TestRecordFailsUnderSession(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(t *testing.T, f *faulty, supervisor int) error
		words []string // that stepbox run says, any of them
		whole bool     // the record is there and whole
	}{
		"no room": {func(t *testing.T, f *faulty, supervisor int) error {
			st, err := os.Stat(f.db() + "-wal")
			if err != nil {
				return err
			}
			return unix.Prlimit(supervisor, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(st.Size()), Max: unix.RLIM_INFINITY}, nil)
		}, []string{"see whether the disk is full", "the disk is full"}, true},
		"removed": {func(t *testing.T, f *faulty, _ int) error {
			return os.Remove(f.db())
		}, []string{"the record is gone", "could not record", "not in the record"}, false},
		"overwritten": {func(t *testing.T, f *faulty, _ int) error {
			for _, p := range []string{f.db(), f.db() + "-wal"} {
				st, err := os.Stat(p)
				if err != nil {
					return err
				}
				junk := make([]byte, st.Size())
				_, _ = rand.Read(junk) // it never fails
				w, err := os.OpenFile(p, os.O_WRONLY, 0)
				if err == nil {
					_, err = w.Write(junk)
					err = errors.Join(err, w.Close())
				}
				if err != nil {
					return err
				}
			}
			return nil
		}, []string{"the record is damaged"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFaulty(t)
			start := f.stepbox("run", "--mode", "watch", "--name", "it", "--", "sh", "-c", busy)
			var out, said bytes.Buffer
			start.Stdout, start.Stderr = &out, &said
			if err := start.Start(); err != nil {
				t.Fatal(err)
			}
			fd, pid := f.supervisor(start)
			defer unix.Close(fd)
			f.until("running", "ls")
			if err := c.fault(t, f, pid); err != nil {
				t.Fatal(err)
			}
			err := start.Wait()
			words := 0
			for _, w := range c.words {
				if strings.Contains(said.String(), w) {
					words++
				}
			}
			if err == nil || words == 0 {
				t.Errorf("run: %v: %s", err, &said)
			}
			if c.whole {
				f.says(0, []string{"it (1): whole"}, "verify", "it")
			}
		})
	}
}

// While another program keeps the database locked, what is asked for waits, and a session
// goes on afterwards as if nothing had been.
func TestLockedRecord(t *testing.T) {
	f := newFaulty(t)
	f.says(0, nil, "run", "--mode", "watch", "--name", "before", "--", "true")
	db, err := sql.Open("sqlite3", "file:"+f.db()+"?_busy_timeout=30000")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	start := f.stepbox("run", "--mode", "watch", "--name", "it", "--", "sh", "-c", "cat; for i in 1 2 3; do cat /dev/null; done; echo through")
	in, err := start.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	start.Stdout = &out
	if err := start.Start(); err != nil {
		t.Fatal(err)
	}
	f.until("running", "ls")
	if _, err := db.Exec(`BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	f.says(0, []string{"before"}, "ls") // reading needs no lock
	f.says(0, []string{"whole"}, "verify", "before")
	if _, err := db.Exec(`ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if err := start.Wait(); err != nil || !strings.Contains(out.String(), "through") {
		t.Errorf("run: %v: %s", err, &out)
	}
	f.says(0, []string{"it (2): whole"}, "verify", "it")
}

// until runs a command until it says something.
func (f *faulty) until(word string, args ...string) {
	f.Helper()
	var out []byte
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if out, _ = f.stepbox(args...).CombinedOutput(); strings.Contains(string(out), word) { // it may say something else before
			return
		}
	}
	f.Fatalf("%q didn't say %q: %s", args, word, out)
}

// A session that is removed while others read it, and by two at once, is gone once, and
// whoever was reading ends with all of it or an error. Other sessions don't notice.
func TestRemovedWhileRead(t *testing.T) {
	f := newFaulty(t)
	f.says(0, nil, "run", "--mode", "watch", "--name", "other", "--", "true")
	f.says(0, nil, "run", "--mode", "watch", "--name", "it", "--", "sh", "-c", "seq 200000; for i in 1 2 3 4 5 6 7 8 9; do echo $i > f$i; cat f$i; done; rm f*")
	type ended struct {
		what string
		out  string
		err  error
	}
	commands := [][]string{{"replay", "it", "--speed", "1000"}, {"export", "it", "--format", "cast", "-o", filepath.Join(f.work, "cast")}, {"log", "it"}, {"verify", "it"}, {"rm", "it"}, {"rm", "it"}, {"ls"}}
	all := make(chan ended)
	for _, args := range commands {
		cmd := f.stepbox(args...)
		go func() {
			out, err := cmd.CombinedOutput()
			all <- ended{args[0], string(out), err}
		}()
	}
	removed, said := 0, ""
	for range commands {
		e := <-all
		var exit *exec.ExitError
		if e.err != nil && (!errors.As(e.err, &exit) || exit.ExitCode() != 1 && exit.ExitCode() != 3) || strings.Contains(e.out, "goroutine ") {
			t.Errorf("%s: %v: %s", e.what, e.err, e.out[max(0, len(e.out)-2000):])
		}
		if e.what == "rm" {
			said += e.out
		}
		if e.what == "rm" && e.err == nil {
			removed++
		}
	}
	if removed != 1 {
		t.Errorf("it was removed %d times: %q", removed, said)
	}
	f.says(1, []string{"there is no session"}, "show", "it")
	f.says(0, []string{"other (1): whole"}, "verify", "--all")
}
