package restore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
)

// swapper keeps exchanging two names of the merged view until stop is called,
// and says how often it did.
func swapper(a, b string) (stop func() int) {
	var wg sync.WaitGroup
	var done atomic.Bool
	n := 0
	wg.Go(func() {
		for !done.Load() {
			if unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) == nil {
				n++
			}
		}
	})
	return func() int {
		done.Store(true)
		wg.Wait()
		return n
	}
}

// attack is what the helper does while Execute runs there.
func attack(q request) (stop func()) {
	if q.Swap == "" {
		return func() {}
	}
	end := swapper(filepath.Join(q.Merged, q.Swap), filepath.Join(q.Merged, "evil"))
	return func() { end() }
}

// host makes a folder outside the sandbox that an attack aims at, and a check
// that nobody touched it.
func host(t *testing.T) (dir string, untouched func()) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	for _, name := range []string{"secret", "sub/file", "file0", "file1"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("TOP SECRET "+name), 0o600))
	}
	return aimedAt(t, dir)
}

func aimedAt(t *testing.T, dir string) (_ string, untouched func()) {
	t.Helper()
	before, err := capture(dir, "/nonexistent")
	must(t, err)
	return dir, func() {
		t.Helper()
		after, err := capture(dir, "/nonexistent")
		must(t, err)
		if diff := compareTrees(before, after); diff != "" {
			t.Fatalf("the host's files were touched:\n%s", diff)
		}
	}
}

// An agent that escaped the freeze swaps a directory for a link to the host's
// files while they are restored through it.
func TestAttackSwapWhileExecuting(t *testing.T) {
	target, _ := host(t)
	h := startHelper(t)
	s := newSession(t, h, os.TempDir(), nil)
	defer s.close()
	// Many directories, so that the swapped one is walked through many times.
	muts := []mutation{{Op: "mkdir", Path: "dir"}}
	var writes []mutation
	for i := range 60 {
		d := fmt.Sprintf("d%d", i)
		must(t, os.Mkdir(filepath.Join(target, d), 0o755))
		must(t, os.WriteFile(filepath.Join(target, d, "file"), []byte("TOP SECRET"), 0o600))
		muts = append(muts, mutation{Op: "mkdir", Path: "dir/" + d})
		writes = append(writes, mutation{Op: "write", Path: "dir/" + d + "/file", Data: []byte("then")})
	}
	target, untouched := aimedAt(t, target)
	// The link is there then and now, or the plan would begin by removing it.
	s.agent(append(append(muts, writes...), mutation{Op: "symlink", Path: "evil", To: target})...)
	then := s.scan()
	for i := range writes {
		writes[i].Data = []byte("now!")
	}
	s.agent(append(writes, mutation{Op: "write", Path: "dir/secret", Data: []byte("x")})...)
	now := s.scan()
	for range 20 {
		p, err := NewPlan(bg, s.lower, now, then, Options{})
		must(t, err)
		q := s.q
		q.Swap = "dir"
		// Steps may fail; what counts is where they happen.
		_, err = h.execute(bg, q, p, NewSource(s.lower, s.bodies))
		must(t, err)
		untouched()
	}
}

// The same while a tree is removed: what is swapped in must not be emptied.
func TestAttackSwapWhileRemoving(t *testing.T) {
	target, untouched := host(t)
	h := startHelper(t)
	s := newSession(t, h, os.TempDir(), nil)
	defer s.close()
	empty := s.scan()
	muts := []mutation{{Op: "symlink", Path: "evil", To: target}, {Op: "mkdir", Path: "top"}}
	for i := range 30 {
		d := fmt.Sprintf("top/dir%d", i)
		muts = append(muts, mutation{Op: "mkdir", Path: d}, mutation{Op: "mkdir", Path: d + "/sub"}, mutation{Op: "write", Path: d + "/sub/file"},
			mutation{Op: "symlink", Path: d + "/link", To: target}, mutation{Op: "symlink", Path: d + "/sub/link", To: target + "/sub"})
	}
	for round := range 20 {
		s.agent(muts...)
		p, err := NewPlan(bg, s.lower, s.scan(), empty, Options{})
		must(t, err)
		q := s.q
		q.Swap = fmt.Sprintf("top/dir%d", round)
		_, err = h.execute(bg, q, p, NewSource(s.lower, s.bodies))
		must(t, err)
		untouched()
		s.restore(empty, Options{}) // and without the attack it gets there
	}
	if n := s.scan().Len(); n != 0 {
		t.Fatalf("%d entries are left", n)
	}
}

// A plan that names paths outside must not be carried out, wherever it came from.
func TestAttackPlanPaths(t *testing.T) {
	target, untouched := host(t)
	h := startHelper(t)
	s := newSession(t, h, os.TempDir(), nil)
	defer s.close()
	s.agent(mutation{Op: "symlink", Path: "out", To: target})
	rel, err := filepath.Rel(s.q.Merged, target)
	must(t, err)
	for _, path := range []string{"../x", rel + "/secret", "/" + target + "/secret", "..", ".", "a/../../x", "out/../x", "a//b", "a/", "a\x00b"} {
		bad := Plan{Ops: []Op{{Kind: OpRemove, Path: path}}}
		raw, err := bad.MarshalBinary()
		must(t, err)
		if err := new(Plan).UnmarshalBinary(raw); err == nil {
			t.Errorf("a plan for %q was read", path)
		}
	}
	// These are well formed, and lead through a link.
	p := &Plan{Ops: []Op{
		{Kind: OpRemove, Path: "out/secret"},
		{Kind: OpFile, Path: "out/new", What: manifest.KindFile, Meta: manifest.Meta{Mode: 0o644, UID: manifest.NoID, GID: manifest.NoID}},
		{Kind: OpMkdir, Path: "out/newdir", What: manifest.KindDir, Meta: manifest.Meta{Mode: 0o755, UID: manifest.NoID, GID: manifest.NoID}},
		{Kind: OpLink, Path: "here", Source: "out/secret", What: manifest.KindFile},
		{Kind: OpMeta, Path: "out/secret", What: manifest.KindFile, Meta: manifest.Meta{Mode: 0o777, UID: manifest.NoID, GID: manifest.NoID}},
		{Kind: OpMeta, Path: "out", What: manifest.KindDir, Meta: manifest.Meta{Mode: 0o777, UID: manifest.NoID, GID: manifest.NoID}},
	}}
	rep, err := h.execute(bg, s.q, p, NewSource(s.lower, s.bodies))
	must(t, err)
	if len(rep.Failed) != len(p.Ops)-1 { // nothing to be removed counts as removed
		t.Errorf("%d of %d steps failed: %q", len(rep.Failed), len(p.Ops), rep.Failed)
	}
	untouched()
}

// A mount below the project isn't the overlay, and nothing is restored into it.
func TestAttackSubmount(t *testing.T) {
	h := startHelper(t)
	s := newSession(t, h, os.TempDir(), nil)
	defer s.close()
	s.agent(mutation{Op: "mkdir", Path: "mnt"})
	q := s.with("cover")
	q.Path = "mnt"
	h.must(q)
	p := &Plan{Ops: []Op{
		{Kind: OpFile, Path: "mnt/x", What: manifest.KindFile, Meta: manifest.Meta{Mode: 0o644, UID: manifest.NoID, GID: manifest.NoID}},
		{Kind: OpMeta, Path: "mnt", What: manifest.KindDir, Meta: manifest.Meta{Mode: 0o711, UID: manifest.NoID, GID: manifest.NoID}},
	}}
	rep, err := h.execute(bg, s.q, p, NewSource(s.lower, s.bodies))
	must(t, err)
	if len(rep.Failed) != 2 || !strings.Contains(rep.Failed[0].Text, unix.EXDEV.Error()) {
		t.Errorf("it was restored into another mount: %q", rep.Failed)
	}
	q.Op = "uncover"
	h.must(q)
}

func TestExecuteNeedsOverlay(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	must(t, err)
	defer dir.Close()
	_, err = Execute(bg, dir, &Plan{Ops: []Op{{Kind: OpFile, Path: "x", What: manifest.KindFile}}}, nil)
	if !errors.Is(err, ErrNotOverlay) {
		t.Fatalf("got %v", err)
	}
	if left, _ := os.ReadDir(dir.Name()); len(left) > 0 {
		t.Fatalf("it wrote %v", left)
	}
}

// holdsSecret says whether any stored body has the host's bytes.
func holdsSecret(m *memory) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.bodies {
		if bytes.Contains(b, []byte("TOP SECRET")) {
			return true
		}
	}
	return false
}

// An agent makes the supervisor read the host's files through links in the
// upper, at rest and swapped in while the scan runs.
func TestAttackUpperLinks(t *testing.T) {
	target, _ := host(t)
	h := startHelper(t)
	s := newSession(t, h, os.TempDir(), nil)
	defer s.close()
	s.agent(
		mutation{Op: "symlink", Path: "link", To: filepath.Join(target, "secret")}, mutation{Op: "symlink", Path: "evil", To: target},
		mutation{Op: "mkdir", Path: "dir"}, mutation{Op: "write", Path: "dir/secret", Data: []byte("mine")},
		mutation{Op: "write", Path: "file", Data: []byte("mine")}, mutation{Op: "mkdir", Path: "dir/sub"}, mutation{Op: "write", Path: "dir/sub/file"},
	)
	m := s.scan()
	if e := m.Lookup("link"); e.Kind != manifest.KindSymlink || e.Target != filepath.Join(target, "secret") {
		t.Fatalf("the link is %+v", e)
	}
	for _, pair := range [][2]string{{"dir", "evil"}, {"file", "link"}} {
		q := s.with("swap")
		q.Swap, q.Path = pair[0], pair[1]
		h.must(q)
		deadline := time.Now().Add(700 * time.Millisecond)
		for time.Now().Before(deadline) {
			sc, err := scan.New(s.q.Upper, s.bodies, h.open(bg, s.q.Upper))
			must(t, err)
			_, _, err = sc.Scan(bg, scan.Options{})
			must(t, err, sc.Close())
		}
		q.Op = "unswap"
		if r := h.must(q); len(r.Data) == 0 {
			t.Error("nothing was swapped")
		}
	}
	if holdsSecret(s.bodies) {
		t.Fatal("the host's file was read")
	}
}

// FIFOs, sockets and devices must not be opened, swapped in or not.
func TestAttackFIFO(t *testing.T) {
	h := startHelper(t)
	s := newSession(t, h, os.TempDir(), nil)
	defer s.close()
	s.agent(mutation{Op: "fifo", Path: "fifo", N: 0o644}, mutation{Op: "socket", Path: "socket", N: 0o644}, mutation{Op: "write", Path: "file", Data: []byte("x")})
	q := s.with("swap")
	q.Swap, q.Path = "file", "fifo"
	h.must(q)
	deadline := time.Now().Add(500 * time.Millisecond)
	for time.Now().Before(deadline) {
		sc, err := scan.New(s.q.Upper, s.bodies, nil)
		must(t, err)
		_, _, err = sc.Scan(bg, scan.Options{})
		must(t, err, sc.Close())
	}
	q.Op = "unswap"
	h.must(q)
	m := s.scan()
	kinds := []manifest.Kind{m.Lookup("file").Kind, m.Lookup("fifo").Kind, m.Lookup("socket").Kind}
	if kinds[2] != manifest.KindSocket || kinds[0]+kinds[1] != manifest.KindFile+manifest.KindFIFO {
		t.Fatalf("kinds %v", kinds)
	}
}

// A file that claims to be huge costs neither time nor space, and stays sparse.
func TestAttackSparse(t *testing.T) {
	const size = 4 << 40
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, startHelper(t), place, nil)
			defer s.close()
			empty := s.scan()
			s.agent(mutation{Op: "write", Path: "sparse", Data: []byte("begin")}, mutation{Op: "truncate", Path: "sparse", N: size, M: size})
			m, st, err := s.scanner.Scan(bg, scan.Options{}) // to read it all would take hours
			must(t, err)
			if st.StoredBytes > 2<<20 {
				t.Fatalf("it took %d bytes", st.StoredBytes)
			}
			want := s.capture()
			s.restore(empty, Options{})
			s.restore(m, Options{})
			if diff := compareTrees(want, s.capture()); diff != "" {
				t.Fatal(diff)
			}
			var fst unix.Stat_t
			must(t, unix.Lstat(filepath.Join(s.q.Upper, "sparse"), &fst))
			if fst.Size != size || fst.Blocks*512 > 4<<20 {
				t.Fatalf("%d bytes take %d blocks", fst.Size, fst.Blocks)
			}
		})
	}
}

// What can't be saved can't be restored, and that is said; what is too deep for
// a checkpoint can be taken away all the same.
func TestRestoreFromUnsaved(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	empty := s.scan()
	deep := make([]string, 0, 600)
	muts := []mutation{{Op: "write", Path: "odd", Data: []byte("x")}, {Op: "write", Path: "small", Data: []byte("x")}}
	for len(deep) < 600 {
		deep = append(deep, "d")
		muts = append(muts, mutation{Op: "mkdir", Path: strings.Join(deep, "/")})
	}
	s.agent(muts...)
	must(t, unix.Setxattr(filepath.Join(s.q.Upper, "odd"), "user.overlay.metacopy", nil, 0))
	m, st := scanWith(t, s.scanner, scan.Options{})
	if e := m.Lookup("odd"); e.Unsaved == "" || m.Lookup("small").Unsaved != "" || len(st.Problems) != 2 {
		t.Errorf("%+v, problems %q", e, st.Problems)
	}
	s.agent(mutation{Op: "remove", Path: "odd"})
	p, err := NewPlan(bg, s.lower, s.scan(), m, Options{})
	must(t, err)
	if len(p.Problems) == 0 || p.Problems[0].Path != "odd" {
		t.Errorf("plan problems %q", p.Problems)
	}
	s.restore(empty, Options{})
	if n := s.scan().Len(); n != 0 {
		t.Errorf("%d entries are left", n)
	}
}
