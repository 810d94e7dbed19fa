package restore

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
)

func scanWith(t *testing.T, s *scan.Scanner, o scan.Options) (*manifest.Manifest, scan.Stats) {
	t.Helper()
	m, st, err := s.Scan(bg, o)
	must(t, err)
	return m, st
}

func moved(t *testing.T, s *scan.Scanner) bool {
	t.Helper()
	yes, err := s.Moved(bg, scan.Options{})
	must(t, err)
	return yes
}

// When nothing moved, no file is opened and the manifest is the same object.
func TestScanNoChange(t *testing.T) {
	then, _ := variety()
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, startHelper(t), place, nil)
			defer s.close()
			s.agent(then...)
			_, st := scanWith(t, s.scanner, scan.Options{})
			if st.Opened == 0 || st.Stored == 0 || len(st.Problems) > 0 {
				t.Errorf("the first scan: %+v", st)
			}
			first := s.quiet()
			root, err := first.Save(bg, s.bodies)
			must(t, err)
			for range 3 {
				m, st := scanWith(t, s.scanner, scan.Options{})
				if m != first || st.Opened != 0 || st.Stored != 0 || st.Read != 0 {
					t.Fatalf("another manifest (%v) or reads: %+v", m != first, st)
				}
				again, err := m.Save(bg, s.bodies)
				must(t, err)
				if again != root {
					t.Fatal("another root")
				}
			}
			if moved(t, s.scanner) {
				t.Error("something moved")
			}
		})
	}
}

func TestScanReadsWhatMoved(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	muts := []mutation{{Op: "mkdir", Path: "a"}, {Op: "mkdir", Path: "b"}}
	for i := range 50 {
		muts = append(muts, mutation{Op: "write", Path: fmt.Sprintf("a/%d", i), Data: []byte("same")}, mutation{Op: "write", Path: fmt.Sprintf("b/%d", i)})
	}
	s.agent(muts...)
	first := s.scan()
	for _, c := range []struct {
		mut    mutation
		opened int
	}{
		{mutation{Op: "rewrite", Path: "a/7"}, 1},
		{mutation{Op: "write", Path: "a/new", Data: []byte("n")}, 1},
		{mutation{Op: "remove", Path: "a/9"}, 0},
		{mutation{Op: "chmod", Path: "a/8", N: 0o600}, 1},
		{mutation{Op: "rename", Path: "a/10", To: "b/moved"}, 1},
		{mutation{Op: "mkdir", Path: "c"}, 0},
		{mutation{Op: "utimens", Path: "a/11", N: 1}, 1},
	} {
		before := s.quiet()
		s.agent(c.mut)
		if !moved(t, s.scanner) {
			t.Errorf("%s isn't noticed", c.mut)
		}
		m, st := scanWith(t, s.scanner, scan.Options{})
		if m == before || st.Opened != c.opened {
			t.Errorf("%s: %d files opened instead of %d", c.mut, st.Opened, c.opened)
		}
	}
	// What didn't move is shared.
	if m := s.scan(); m.Lookup("b") == first.Lookup("b") || m.Lookup("a/1") != first.Lookup("a/1") {
		t.Error("an untouched entry was made anew")
	}
}

// Deletions are hard links of one device in the upper: a further one moves the
// inode of the others, which means nothing.
func TestScanWhiteouts(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), func(lower string) {
		for i := range 10 {
			must(t, os.WriteFile(filepath.Join(lower, fmt.Sprint(i)), nil, 0o600))
		}
		must(t, os.MkdirAll(filepath.Join(lower, "dir/sub"), 0o700))
	})
	defer s.close()
	s.agent(mutation{Op: "remove", Path: "0"}, mutation{Op: "remove", Path: "1"}, mutation{Op: "recreate", Path: "dir", N: 0o755})
	m := s.scan()
	if e := m.Lookup("0"); e.Kind != manifest.KindWhiteout || !e.Absent() || !m.Lookup("0").Absent() || !m.Lookup("5").Absent() || !m.Lookup("5/5").Absent() || m.Lookup("dir").Absent() {
		t.Errorf("deleted: %+v", e)
	}
	if e := m.Lookup("dir"); !e.Opaque {
		t.Errorf("recreated: %+v", e)
	}
	s.quiet()
	s.agent(mutation{Op: "remove", Path: "2"})
	_, st := scanWith(t, s.scanner, scan.Options{})
	if st.Opened != 0 {
		t.Errorf("%d files opened", st.Opened)
	}
	if got := len(s.diff(nil, s.scan())); got != 5 { // three files, a mode, what the recreated one held
		t.Errorf("%d changes", got)
	}
}

// Files and directories that only the sandbox's root can open are read through
// the Opener, and without one they are said to be missing.
func TestScanUnreadable(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	s.agent(mutation{Op: "write", Path: "file", Data: []byte("locked")}, mutation{Op: "setxattr", Path: "file", To: "user.x", Data: []byte("v")},
		mutation{Op: "chmod", Path: "file", N: 0},
		mutation{Op: "mkdir", Path: "dir"}, mutation{Op: "write", Path: "dir/inner", Data: []byte("inner")}, mutation{Op: "symlink", Path: "dir/link", To: "x"},
		mutation{Op: "fifo", Path: "dir/fifo", N: 0}, mutation{Op: "mkdir", Path: "dir/sub"}, mutation{Op: "write", Path: "dir/sub/deep"},
		mutation{Op: "setxattr", Path: "dir", To: "user.y", Data: []byte("y")},
		mutation{Op: "chmod", Path: "dir/sub", N: 0}, mutation{Op: "chmod", Path: "dir", N: 0})
	m, st := scanWith(t, s.scanner, scan.Options{})
	if len(st.Problems) > 0 || m.Len() != 7 {
		t.Fatalf("%d entries, %q", m.Len(), st.Problems)
	}
	if h := m.Lookup("dir/inner").Hash; h != content.Sum([]byte("inner")) || m.Lookup("dir/link").Target != "x" || m.Lookup("dir/fifo").Kind != manifest.KindFIFO {
		t.Error("what is below a locked directory was read wrongly")
	}
	if x, y := m.Lookup("file").Xattrs, m.Lookup("dir").Xattrs; len(x) != 1 || string(x[0].Value) != "v" || len(y) != 1 || y[0].Name != "user.y" {
		t.Errorf("attributes %q %q", x, y)
	}
	if s.quiet() != m {
		t.Error("a second scan gives another manifest")
	}
	want := s.capture()
	s.agent(mutation{Op: "removeall", Path: "dir"}, mutation{Op: "chmod", Path: "file", N: 0o600})
	s.restore(m, Options{})
	if diff := compareTrees(want, s.capture()); diff != "" {
		t.Error(diff)
	}
	// The project's own folder can be locked too.
	s.agent(mutation{Op: "chmod", Path: ".", N: 0})
	if m := s.scan(); m.Lookup("").Mode != 0 || m.Len() != 7 {
		t.Errorf("behind a locked root: %d entries", m.Len())
	}
	s.agent(mutation{Op: "chmod", Path: ".", N: 0o755})
	if os.Geteuid() == 0 {
		return // root needs no opener
	}
	alone, err := scan.New(s.q.Upper, newMemory(), nil)
	must(t, err)
	defer alone.Close()
	m, st = scanWith(t, alone, scan.Options{})
	if len(st.Problems) != 2 || m.Lookup("file").Unsaved == "" || m.Lookup("dir").Unsaved == "" {
		t.Errorf("without an opener: %q", st.Problems)
	}
	p, err := NewPlan(bg, s.lower, m, nil, Options{})
	must(t, err)
	if len(p.Problems) != 0 { // what isn't known can be taken away
		t.Errorf("plan: %q", p.Problems)
	}
}

// Only the directories that are named, and new ones below, are looked at.
func TestScanDirty(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	s.agent(mutation{Op: "mkdir", Path: "a"}, mutation{Op: "mkdir", Path: "a/b"}, mutation{Op: "mkdir", Path: "c"},
		mutation{Op: "write", Path: "a/b/x"}, mutation{Op: "write", Path: "c/x"}, mutation{Op: "write", Path: "x"})
	s.quiet()
	s.agent(mutation{Op: "write", Path: "a/b/x", Data: []byte("1")}, mutation{Op: "write", Path: "c/x", Data: []byte("1")}, mutation{Op: "mkdir", Path: "a/b/new"},
		mutation{Op: "mkdir", Path: "a/b/new/deep"}, mutation{Op: "write", Path: "a/b/new/deep/y"})
	m, st := scanWith(t, s.scanner, scan.Options{Dirty: []string{"a/b"}})
	if m.Lookup("a/b/x").Size != 1 || m.Lookup("a/b/new/deep/y").Absent() {
		t.Error("a dirty directory wasn't looked at")
	}
	if m.Lookup("c/x").Size != 0 || st.Opened != 2 {
		t.Errorf("another directory was looked at: %+v", st)
	}
	if m, _ := scanWith(t, s.scanner, scan.Options{Dirty: []string{}}); m != s.scanner.Last() {
		t.Error("no dirty directory, and something else")
	}
	full := s.scan()
	if full.Lookup("c/x").Size != 1 || full.Lookup("a/b/x") != m.Lookup("a/b/x") {
		t.Error("the full scan afterwards is off")
	}
	s.agent(mutation{Op: "removeall", Path: "a"}, mutation{Op: "write", Path: "a", Data: []byte("file now")})
	m, _ = scanWith(t, s.scanner, scan.Options{Dirty: []string{"a/b", "", "missing/dir"}})
	if m.Lookup("a").Kind != manifest.KindFile {
		t.Error("the directory that became a file wasn't seen")
	}
	if _, _, err := s.scanner.Scan(bg, scan.Options{Dirty: []string{"../x"}}); err == nil {
		t.Error("a path outside was taken")
	}
}

// Stores through a shared mapping move no time stamp once a page is dirty.
func TestScanMapped(t *testing.T) {
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, startHelper(t), place, nil)
			defer s.close()
			s.agent(mutation{Op: "mkdir", Path: "d"}, mutation{Op: "write", Path: "d/file", Data: make([]byte, 4096)})
			q := s.with("map")
			q.Path = "d/file"
			s.h.must(q)
			q.Op = "store"
			s.h.must(q)
			o := scan.Options{Mapped: []string{"d/file"}}
			last, _ := scanWith(t, s.scanner, o)
			for i := range 20 {
				s.h.must(q)
				m, _ := scanWith(t, s.scanner, o)
				if m.Lookup("d/file").Hash == last.Lookup("d/file").Hash {
					t.Fatalf("store %d was missed", i)
				}
				last = m
			}
			// The last store before the mapping ends is found by the scan after it.
			s.h.must(q)
			q.Op = "unmap"
			s.h.must(q)
			m, _ := scanWith(t, s.scanner, scan.Options{})
			if m.Lookup("d/file").Hash == last.Lookup("d/file").Hash {
				t.Fatal("the last store was missed")
			}
		})
	}
}

// An edit of one byte in a large file stores one chunk and a list.
func TestScanChunks(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	data := make([]byte, 9<<20+123)
	for i := range data {
		data[i] = byte(i*7 + i>>20)
	}
	s.agent(mutation{Op: "write", Path: "large", Data: data})
	first, st := scanWith(t, s.scanner, scan.Options{})
	if st.Stored != 10+1 || st.Read != int64(len(data)) {
		t.Errorf("the first scan stored %d bodies of %d bytes", st.Stored, st.StoredBytes)
	}
	data[5<<20]++
	s.agent(mutation{Op: "write", Path: "large", Data: data})
	second, st := scanWith(t, s.scanner, scan.Options{})
	if st.Stored != 2 || st.StoredBytes > 1<<20+1000 {
		t.Errorf("an edit stored %d bodies of %d bytes", st.Stored, st.StoredBytes)
	}
	if first.Lookup("large").Hash == second.Lookup("large").Hash {
		t.Error("the edit was missed")
	}
	for _, c := range s.diff(first, second) {
		for _, f := range []*diff.File{c.Old, c.New} {
			r, n, err := diff.Open(bg, s.lower, s.bodies, f)
			must(t, err)
			var buf bytes.Buffer
			_, err = buf.ReadFrom(r)
			must(t, err, r.Close())
			if n != int64(len(data)) || buf.Len() != len(data) {
				t.Errorf("%d bytes of %d", buf.Len(), n)
			}
		}
	}
	// Zeros are the same, written or not.
	s.agent(mutation{Op: "write", Path: "zeros", Data: make([]byte, 6<<20)}, mutation{Op: "write", Path: "hole"},
		mutation{Op: "truncate", Path: "hole", N: 6 << 20, M: 6 << 20})
	m := s.scan()
	if m.Lookup("zeros").Hash != m.Lookup("hole").Hash {
		t.Error("a hole isn't zeros")
	}
}
