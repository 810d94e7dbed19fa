package restore

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
)

// variety is a bit of everything, and what it becomes.
func variety() (then, now []mutation) {
	then = []mutation{
		{Op: "mkdir", Path: "dir"}, {Op: "mkdir", Path: "dir/sub"}, {Op: "mkdir", Path: "gone"},
		{Op: "symlink", Path: "link", To: "dir/a"}, {Op: "fifo", Path: "fifo", N: 0o640}, {Op: "socket", Path: "gone/socket", N: 0o600},
		{Op: "write", Path: "dir/a", Data: []byte("a")}, {Op: "link", Path: "dir/a", To: "hard"}, {Op: "link", Path: "dir/a", To: "gone/hard"},
		{Op: "write", Path: "large", Data: bytes.Repeat([]byte("0123456789abcdef"), 400_000)},
		{Op: "setxattr", Path: "dir", To: "user.a", Data: []byte("v")}, {Op: "chmod", Path: "gone", N: 0o1711},
		{Op: "utimens", Path: "gone", N: 12345, M: 6789},
	}
	for i := range 25 {
		then = append(then, mutation{Op: "write", Path: fmt.Sprintf("dir/sub/f%d", i), Data: fmt.Appendf(nil, "%d", i)})
	}
	now = []mutation{
		{Op: "removeall", Path: "gone"}, {Op: "write", Path: "gone", Data: []byte("a file now")}, {Op: "remove", Path: "hard"},
		{Op: "write", Path: "hard", Data: []byte("apart")}, {Op: "remove", Path: "link"}, {Op: "mkdir", Path: "link"}, {Op: "write", Path: "link/x"},
		{Op: "append", Path: "large", Data: []byte("more")}, {Op: "chmod", Path: "fifo", N: 0o600}, {Op: "mkdir", Path: "new"},
		{Op: "write", Path: "new/x", Data: []byte("x")}, {Op: "rename", Path: "dir", To: "moved"},
	}
	for i := range 25 {
		now = append(now, mutation{Op: "write", Path: fmt.Sprintf("moved/sub/f%d", i), Data: []byte("changed")})
	}
	return then, now
}

// The process that restores is killed at every content it asks for, and at
// random moments. Afterwards the same target is reached.
func TestCrashWhileExecuting(t *testing.T) {
	then, now := variety()
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, startHelper(t), place, nil)
			defer func() { s.close() }()
			s.agent(then...)
			target, want := s.scan(), s.capture()
			rounds := 24
			if testing.Short() {
				rounds = 6
			}
			for round := range rounds {
				s.agent(now...)
				p, err := NewPlan(bg, s.lower, s.scan(), target, Options{})
				must(t, err)
				q := s.q
				if round%2 == 0 {
					q.Kill = 1 + round
				} else {
					pid, wait := s.h.pid, time.Duration(rand.IntN(12_000))*time.Microsecond
					timer := time.AfterFunc(wait, func() { _ = unix.Kill(pid, unix.SIGKILL) })
					defer timer.Stop()
				}
				_, _ = s.h.execute(bg, q, p, NewSource(s.lower, s.bodies))
				s.crashed()
				s.restore(target, Options{})
				if diff := compareTrees(want, s.capture()); diff != "" {
					t.Fatalf("round %d:\n%s", round, diff)
				}
			}
		})
	}
}

// A file that is written over when the process that restores is killed is left
// half-written. The next scan finds it, and both ways lead on from there.
func TestCrashWhileOverwriting(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer func() { s.close() }()
	then, now := bytes.Repeat([]byte("then"), 2<<20), bytes.Repeat([]byte("now!"), 2<<20)
	s.agent(mutation{Op: "write", Path: "large", Data: then}, mutation{Op: "write", Path: "small", Data: then[:100]})
	target, want := s.scan(), s.capture()
	s.agent(mutation{Op: "write", Path: "large", Data: now}, mutation{Op: "write", Path: "small", Data: now[:100]})
	changed, instead := s.scan(), s.capture()
	p, err := NewPlan(bg, s.lower, changed, target, Options{})
	must(t, err)
	q := s.q
	q.Kill, q.Half = 1, true
	if _, err := s.h.execute(bg, q, p, NewSource(s.lower, s.bodies)); err == nil {
		t.Fatal("it wasn't killed")
	}
	s.crashed()
	if e := s.scan().Lookup("large"); e.Hash == target.Lookup("large").Hash || e.Hash == changed.Lookup("large").Hash {
		t.Fatal("the file isn't half-written")
	}
	for _, to := range []struct {
		m    *manifest.Manifest
		want map[string]seen
	}{{target, want}, {changed, instead}} {
		s.restore(to.m, Options{})
		if diff := compareTrees(to.want, s.capture()); diff != "" {
			t.Fatal(diff)
		}
	}
}

// A log that a living process appends to goes on in the same file.
func TestInPlaceKeepsWriters(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	s.agent(mutation{Op: "write", Path: "log", Data: []byte("one\n")}, mutation{Op: "write", Path: "other", Data: []byte("one\n")},
		mutation{Op: "link", Path: "log", To: "log2"})
	target, want := s.scan(), s.capture()
	for _, path := range []string{"log", "other"} {
		q := s.with("hold")
		q.Path = path
		s.h.must(q)
		q.Op = "held write"
		s.h.must(q)
	}
	s.restore(target, Options{Replace: func(path string) bool { return path == "other" }})
	if diff := compareTrees(want, s.capture()); diff != "" {
		t.Fatal(diff)
	}
	read := func(path string) string {
		q := s.with("held write")
		q.Path = path
		s.h.must(q)
		q.Op = "held close"
		s.h.must(q)
		q.Op, q.Path = "read", filepath.Join(s.q.Merged, path)
		return string(s.h.must(q).Data)
	}
	if got := read("log"); got != "one\nlate" {
		t.Errorf("the log written in place holds %q", got)
	}
	if got := read("other"); got != "one\n" {
		t.Errorf("the log that was replaced holds %q", got)
	}
}

// A program that runs can't be written over; it is replaced instead.
func TestInPlaceRunningProgram(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	s.agent(mutation{Op: "write", Path: "prog", Data: []byte("#!/bin/sh\n")}, mutation{Op: "chmod", Path: "prog", N: 0o755})
	target, want := s.scan(), s.capture()
	q := s.with("run")
	q.Path = "prog"
	s.h.must(q)
	rep := s.restore(target, Options{})
	if diff := compareTrees(want, s.capture()); diff != "" {
		t.Errorf("%+v %s", rep, diff)
	}
	q.Op = "stop"
	s.h.must(q)
}

// A file that its holder's lease keeps from being opened is replaced, with all its names.
func TestInPlaceLeased(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	s.agent(mutation{Op: "write", Path: "file", Data: []byte("then")}, mutation{Op: "link", Path: "file", To: "second"})
	target, want := s.scan(), s.capture()
	s.agent(mutation{Op: "write", Path: "file", Data: []byte("now")})
	q := s.with("lease")
	q.Path = "file"
	s.h.must(q)
	s.restore(target, Options{})
	if diff := compareTrees(want, s.capture()); diff != "" {
		t.Error(diff)
	}
	q.Op = "held close"
	s.h.must(q)
}

// Directories and FIFOs stay the inodes that processes have open.
func TestRestoreKeepsInodes(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	s.agent(mutation{Op: "mkdir", Path: "dir"}, mutation{Op: "fifo", Path: "dir/fifo", N: 0o644}, mutation{Op: "socket", Path: "dir/socket", N: 0o644},
		mutation{Op: "write", Path: "dir/file", Data: []byte("x")})
	ino := func(p string) uint64 {
		var st unix.Stat_t
		must(t, unix.Lstat(filepath.Join(s.q.Upper, p), &st))
		return st.Ino
	}
	paths := []string{"dir", "dir/fifo", "dir/socket"}
	var before []uint64
	for _, p := range paths {
		before = append(before, ino(p))
	}
	target, want := s.scan(), s.capture()
	s.agent(mutation{Op: "chmod", Path: "dir", N: 0o700}, mutation{Op: "chmod", Path: "dir/fifo", N: 0o600}, mutation{Op: "utimens", Path: "dir/socket", N: 1},
		mutation{Op: "remove", Path: "dir/file"})
	s.restore(target, Options{})
	if diff := compareTrees(want, s.capture()); diff != "" {
		t.Error(diff)
	}
	for i, p := range paths {
		if ino(p) != before[i] {
			t.Errorf("%q is another inode", p)
		}
	}
}

// The plain lower is a target too, with everything the host has.
func TestRestoreToLower(t *testing.T) {
	then, now := variety()
	s := newSession(t, startHelper(t), os.TempDir(), func(lower string) {
		for _, m := range then {
			must(t, m.apply(lower))
		}
	})
	defer s.close()
	want := s.capture()
	for path, v := range want { // copying up breaks the host's hard links
		v.Group = ""
		want[path] = v
	}
	for i := range now { // a lower directory can't be renamed
		if now[i].Op == "rename" {
			now[i] = mutation{Op: "removeall", Path: now[i].Path}
			now = now[:i+1]
			break
		}
	}
	s.agent(now...)
	s.agent(mutation{Op: "remove", Path: "fifo"})
	s.agent(mutation{Op: "fifo", Path: "fifo", N: 0o640})
	s.restore(nil, Options{})
	got := s.capture()
	want[""] = got[""] // the folder itself is left alone
	if diff := compareTrees(want, got); diff != "" {
		t.Error(diff)
	}
	if d := s.diff(nil, s.scan()); len(d) > 0 {
		t.Errorf("what equals the lower counts as changed: %+v", d)
	}
}

// What the sandbox must not see isn't brought to light by a rollback.
func TestRestoreKeepsHidden(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), func(lower string) {
		must(t, os.WriteFile(filepath.Join(lower, "key"), []byte("TOP SECRET"), 0o600))
		must(t, os.Mkdir(filepath.Join(lower, "keys"), 0o700))
		must(t, os.WriteFile(filepath.Join(lower, "keys/one"), []byte("TOP SECRET"), 0o600))
		must(t, os.WriteFile(filepath.Join(lower, "plain"), []byte("plain"), 0o600))
	})
	defer s.close()
	front := t.TempDir()
	must(t, unix.Mknod(filepath.Join(front, "key"), unix.S_IFCHR, 0))
	must(t, unix.Mknod(filepath.Join(front, "keys"), unix.S_IFCHR, 0))
	for name, o := range map[string]lower.Options{"layer": {Above: []string{front}}, "list": {Hidden: []string{"key", "keys"}}} {
		t.Run(name, func(t *testing.T) {
			lower, err := lower.Open(s.q.Lower, o)
			must(t, err)
			defer lower.Close()
			for _, path := range []string{"key", "keys", "keys/one"} {
				if e, err := lower.Lookup(bg, path); e != nil || err != nil {
					t.Errorf("%q shows: %+v %v", path, e, err)
				}
				if _, _, err := lower.Open(bg, path); err == nil {
					t.Errorf("%q can be opened", path)
				}
			}
			if e, err := lower.Lookup(bg, "plain"); e == nil || err != nil {
				t.Errorf("the other file doesn't show: %v", err)
			}
			empty := s.scan()
			s.agent(mutation{Op: "remove", Path: "key"}, mutation{Op: "write", Path: "key", Data: []byte("mine")})
			now := s.scan()
			d, err := diff.Compare(bg, lower, nil, now, diff.Options{})
			must(t, err)
			if len(d.Changes) != 1 || d.Changes[0].Status != diff.Added {
				t.Errorf("diff %+v", d.Changes)
			}
			p, err := NewPlan(bg, lower, now, empty, Options{})
			must(t, err)
			for _, op := range p.Ops {
				if op.Kind == OpFile {
					t.Errorf("the hidden file would be restored: %+v", op)
				}
			}
		})
	}
}

func TestPlanRoundTrip(t *testing.T) {
	then, now := variety()
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	s.agent(append(then, mutation{Op: "write", Path: "\xff\n\x1b", Data: []byte("x")}, mutation{Op: "setxattr", Path: "\xff\n\x1b", To: "user.\xfe", Data: []byte{0, 255}})...)
	target := s.scan()
	s.agent(append(now, mutation{Op: "remove", Path: "\xff\n\x1b"})...)
	p, err := NewPlan(bg, s.lower, s.scan(), target, Options{})
	must(t, err)
	p.Problems = []manifest.Problem{{Path: "\xfe", Text: "text"}}
	var viaGob Plan
	var buf bytes.Buffer
	must(t, gob.NewEncoder(&buf).Encode(p), gob.NewDecoder(&buf).Decode(&viaGob))
	a, _ := p.MarshalBinary()
	b, _ := viaGob.MarshalBinary()
	if !bytes.Equal(a, b) || len(viaGob.Ops) != len(p.Ops) {
		t.Error("gob changed the plan")
	}
	rep := Report{Failed: []manifest.Problem{{Path: "\xff", Text: "why"}}}
	raw, err := json.Marshal(rep)
	must(t, err)
	var back Report
	must(t, json.Unmarshal(raw, &back))
	if !reflect.DeepEqual(rep, back) {
		t.Errorf("json changed the report: %+v", back)
	}
}

// A body that isn't what the checkpoint had must not be restored.
func TestRestoreChecksContents(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	s.agent(mutation{Op: "write", Path: "small", Data: []byte("good")}, mutation{Op: "write", Path: "large", Data: bytes.Repeat([]byte("good"), 2_000_000)},
		mutation{Op: "write", Path: "fine", Data: []byte("fine")})
	target := s.scan()
	fine := target.Lookup("fine").Hash
	s.agent(mutation{Op: "write", Path: "small", Data: []byte("keep")}, mutation{Op: "remove", Path: "large"}, mutation{Op: "remove", Path: "fine"})
	for h, b := range s.bodies.bodies {
		if h != fine && len(b) > 3 && !strings.HasPrefix(string(b), "sbc1") {
			b[0] = 'b'
		}
	}
	p, err := NewPlan(bg, s.lower, s.scan(), target, Options{})
	must(t, err)
	rep, err := s.h.execute(bg, s.q, p, NewSource(s.lower, s.bodies))
	must(t, err)
	if len(rep.Failed) != 2 {
		t.Fatalf("report %+v", rep)
	}
	tree := s.capture()
	if tree["small"].Hash != content.Sum([]byte("keep")) {
		t.Error("the file was replaced by a damaged one")
	}
	for path := range tree {
		if strings.HasPrefix(path, tempPrefix) {
			t.Errorf("%q is left over", path)
		}
	}
}
