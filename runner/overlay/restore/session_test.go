package restore

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
)

// session is an overlay in a helper with a scanner outside.
type session struct {
	t       testing.TB
	h       *helper
	q       request // its paths
	bodies  *memory
	lower   *lower.Lower
	scanner *scan.Scanner
	close   func()
}

const shm = "/dev/shm" // a tmpfs

// places are the file systems that the tests run on.
func places(t testing.TB) map[string]string {
	out := map[string]string{"disk": os.TempDir()}
	probe, err := os.MkdirTemp(shm, "stepbox-overlay-")
	if err != nil {
		t.Logf("no tmpfs here: %v", err)
		return out
	}
	defer os.RemoveAll(probe)
	if err := unix.Setxattr(probe, "user.x", []byte("x"), 0); err != nil {
		t.Logf("tmpfs has no user attributes on this kernel (before 6.6): %v", err)
		return out
	}
	out["tmpfs"] = shm
	return out
}

// newSession makes an overlay below place with what fill puts into the lower.
func newSession(t testing.TB, h *helper, place string, fill func(lower string)) *session {
	t.Helper()
	dir, err := os.MkdirTemp(place, "stepbox-overlay-")
	must(t, err)
	s := &session{t: t, h: h, bodies: newMemory(), q: request{
		Lower: filepath.Join(dir, "lower"), Upper: filepath.Join(dir, "upper"),
		Work: filepath.Join(dir, "work"), Merged: filepath.Join(dir, "merged"),
	}}
	for _, d := range []string{s.q.Lower, s.q.Upper, s.q.Work, s.q.Merged} {
		must(t, os.Mkdir(d, 0o755))
	}
	if fill != nil {
		fill(s.q.Lower)
	}
	s.start()
	s.close = func() {
		must(t, s.scanner.Close(), s.lower.Close())
		if _, err := s.h.call(s.with("unmount")); err != nil {
			t.Error(err)
		}
		if _, err := s.h.call(s.with("clean")); err != nil {
			t.Error(err)
		}
		must(t, os.RemoveAll(dir))
	}
	return s
}

// start mounts the overlay and opens the outside's view of it.
func (s *session) start() {
	s.t.Helper()
	s.do("mount")
	var err error
	s.scanner, err = scan.New(s.q.Upper, s.bodies, s.h.open(bg, s.q.Upper))
	must(s.t, err)
	s.lower, err = lower.Open(s.q.Lower, lower.Options{})
	must(s.t, err)
	s.lower.Ask(s.h.open(bg, s.q.Lower))
}

// crashed starts a new sandbox over the same upper after the helper died.
func (s *session) crashed() {
	s.t.Helper()
	s.h.stop()
	must(s.t, s.scanner.Close(), s.lower.Close())
	s.h = startHelper(s.t)
	s.start()
}

func (s *session) with(op string) request {
	q := s.q
	q.Op = op
	return q
}

func (s *session) do(op string) response {
	s.t.Helper()
	return s.h.must(s.with(op))
}

// mutate changes files as the agent; what was done and with which errors
// comes back.
func (s *session) mutate(muts ...mutation) ([]mutation, []string) {
	s.t.Helper()
	q := s.with("mutate")
	q.Muts = muts
	r := s.h.must(q)
	return r.Muts, r.Errs
}

// agent is mutate for what must succeed.
func (s *session) agent(muts ...mutation) {
	s.t.Helper()
	_, errs := s.mutate(muts...)
	for i, e := range errs {
		if e != "" {
			s.t.Fatalf("%s: %s", muts[i], e)
		}
	}
}

func (s *session) capture() map[string]seen {
	s.t.Helper()
	return s.do("capture").Tree
}

func (s *session) scan() *manifest.Manifest {
	s.t.Helper()
	m, _, err := s.scanner.Scan(bg, scan.Options{})
	must(s.t, err)
	return m
}

func (s *session) diff(from, to *manifest.Manifest) []diff.Change {
	s.t.Helper()
	d, err := diff.Compare(bg, s.lower, from, to, diff.Options{})
	must(s.t, err)
	return d.Changes
}

// troubled says whether something isn't restored but links to what the lower has.
func troubled(p *Plan) bool {
	return slices.ContainsFunc(p.Problems, func(problem manifest.Problem) bool { return problem.Text != apart })
}

// restore goes from what is there to target.
func (s *session) restore(target *manifest.Manifest, o Options) Report {
	s.t.Helper()
	p, err := NewPlan(bg, s.lower, s.scan(), target, o)
	must(s.t, err)
	if troubled(p) {
		s.t.Errorf("plan: %q", p.Problems)
	}
	rep, err := s.h.execute(bg, s.q, p, NewSource(s.lower, s.bodies))
	must(s.t, err)
	for _, f := range rep.Failed {
		s.t.Errorf("execute: %q: %s", f.Path, f.Text)
	}
	return rep
}

// quiet scans until nothing is read again, so that what a later scan opens is
// what moved since: without multigrain time stamps that takes a while.
func (s *session) quiet() *manifest.Manifest {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		m, st, err := s.scanner.Scan(bg, scan.Options{})
		must(s.t, err)
		if st.Opened == 0 {
			return m
		}
		if time.Now().After(deadline) {
			s.t.Fatal("files are read again and again")
		}
	}
}
