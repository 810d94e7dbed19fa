package restore

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
)

// keeping is a second scanner of a session's upper, one that keeps the lower.
func keeping(t *testing.T, s *session, k scan.Keep) *scan.Scanner {
	t.Helper()
	sc, err := scan.New(s.q.Upper, s.bodies, s.h.open(bg, s.q.Upper))
	must(t, err)
	t.Cleanup(func() { must(t, sc.Close()) })
	k.Lower = s.lower
	sc.Keep(k)
	return sc
}

func scanned(t *testing.T, sc *scan.Scanner) *manifest.Manifest {
	t.Helper()
	m, _, err := sc.Scan(bg, scan.Options{})
	must(t, err)
	return m
}

// told is a difference whole: what changed, and both contents of each.
func told(lower *lower.Lower, b content.Bodies, from, to *manifest.Manifest) (string, error) {
	d, err := diff.Compare(bg, lower, from, to, diff.Options{})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, c := range d.Changes {
		fmt.Fprintf(&out, "%s %s %s from %q, content %v mode %v owner %v attributes %v\n", c.Status, c.Path, c.Kind(), c.From, c.Content, c.Mode, c.Owner, c.Xattrs)
		for _, f := range []*diff.File{c.Old, c.New} {
			r, n, err := diff.Open(bg, lower, b, f)
			if err != nil {
				return "", err
			}
			text, err := io.ReadAll(r)
			if err = cmp.Or(err, r.Close()); err != nil {
				return "", err
			}
			fmt.Fprintf(&out, "  %d %s\n", n, shown(text))
		}
	}
	return out.String(), nil
}

// shown is a content for a message: all of it only when it is short.
func shown(text []byte) string {
	if len(text) <= 20 {
		return fmt.Sprintf("%q", text)
	}
	return content.Sum(text).String()[:12]
}

// Whatever the sandbox did: compared from the record alone, two states differ as
// they did while the project folder was there.
func TestRecordStandsAloneProperty(t *testing.T) {
	h := startHelper(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := newSession(t, h, os.TempDir(), func(lower string) { fillLower(rt, lower) })
		defer s.close()
		sc, err := scan.New(s.q.Upper, s.bodies, s.h.open(bg, s.q.Upper))
		must(t, err)
		defer sc.Close()
		sc.Keep(scan.Keep{Lower: s.lower})
		type mark struct{ plain, kept *manifest.Manifest }
		var marks []mark
		var roots []content.Hash
		for range rapid.IntRange(1, 5).Draw(rt, "rounds") {
			s.mutate(rapid.SliceOfN(genMutation, 1, 20).Draw(rt, "muts")...)
			marks = append(marks, mark{s.scan(), scanned(t, sc)})
			root, err := marks[len(marks)-1].kept.Save(bg, s.bodies)
			must(t, err)
			roots = append(roots, root)
		}
		type pair struct{ from, to int }
		want := map[pair]string{}
		for to := range marks {
			for from := -1; from < to; from++ {
				var a, b *manifest.Manifest
				if from >= 0 {
					a, b = marks[from].plain, marks[from].kept
				}
				live, err := told(s.lower, s.bodies, a, marks[to].plain)
				if err != nil {
					rt.Fatalf("compare with the folder: %v", err)
				}
				kept, err := told(nil, s.bodies, b, marks[to].kept)
				if err != nil {
					rt.Fatalf("compare from the record: %v", err)
				}
				if live != kept {
					rt.Fatalf("from %d to %d the folder says\n%s\nthe record says\n%s", from, to, live, kept)
				}
				want[pair{from, to}] = kept
			}
		}
		// The person goes on working: everything is gone from the folder.
		entries, err := os.ReadDir(s.q.Lower)
		must(t, err)
		for _, e := range entries {
			p := filepath.Join(s.q.Lower, e.Name())
			must(t, filepath.WalkDir(p, func(p string, d fs.DirEntry, err error) error {
				if d != nil && d.IsDir() && err == nil {
					return os.Chmod(p, 0o700) // else only root could empty it
				}
				return err
			}))
			must(t, os.RemoveAll(p))
		}
		for p, text := range want {
			var from *manifest.Manifest
			if p.from >= 0 {
				if from, err = manifest.Load(bg, s.bodies, roots[p.from]); err != nil {
					rt.Fatal(err)
				}
			}
			to, err := manifest.Load(bg, s.bodies, roots[p.to])
			if err != nil {
				rt.Fatal(err)
			}
			if got, err := told(nil, s.bodies, from, to); err != nil || got != text {
				rt.Fatalf("from %d to %d, read back (%v):\n%s\nwant\n%s", p.from, p.to, err, got, text)
			}
		}
	})
}

// What a session first saw stays: what the person does afterwards isn't taken
// for the agent's doing.
func TestBaseIsWhatWasFirstSeen(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), project(t))
	defer s.close()
	sc := keeping(t, s, scan.Keep{})
	scanned(t, sc)
	s.agent(mutation{Op: "write", Path: "a", Data: []byte("agent a")}, mutation{Op: "removeall", Path: "tree"})
	first := scanned(t, sc)
	host := func(name, text string) {
		t.Helper()
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(s.q.Lower, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(s.q.Lower, name), []byte(text), 0o644))
	}
	host("a", "person a")
	host("tree/1", "person one")
	host("tree/new", "person new")
	host("untouched", "person")
	s.agent(mutation{Op: "write", Path: "b", Data: []byte("agent b")})
	line := func(what, before, after string) string {
		return fmt.Sprintf("%s file from \"\", content true mode false owner false attributes false\n  %d %q\n  %d %q\n", what, len(before), before, len(after), after)
	}
	want := line("M a", "content a", "agent a")
	gone := line("D tree/1", "one", "") + line("D tree/deep/2", "two", "")
	for what, tt := range map[string]struct {
		m    *manifest.Manifest
		want string
	}{
		"before": {first, want + gone},
		"after":  {scanned(t, sc), want + line("M b", "content b", "agent b") + gone},
	} {
		if got, err := told(nil, s.bodies, nil, tt.m); err != nil || got != tt.want {
			t.Errorf("%s (%v):\n%s\nwant\n%s", what, err, got, tt.want)
		}
	}
}

// A roll back to before a file was touched gives the file as it was first seen,
// whatever a person has made of it: that is no change of the agent's then.
func TestRestoredHostFileIsNoChange(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), project(t))
	defer s.close()
	sc := keeping(t, s, scan.Keep{})
	start := scanned(t, sc)
	s.agent(mutation{Op: "write", Path: "a", Data: []byte("agent a")})
	changed := scanned(t, sc)
	must(t, os.WriteFile(filepath.Join(s.q.Lower, "a"), []byte("the person's new a"), 0o644))
	if want, got := content.Sum([]byte("content a")), s.backTo(sc, start, nil)["a"].Hash; got != want {
		t.Errorf("a is %s, want %s", got, want)
	}
	now := scanned(t, sc)
	if got, err := told(nil, s.bodies, nil, now); err != nil || got != "" {
		t.Errorf("after the roll back there differs (%v):\n%s", err, got)
	}
	// What the agent had done is still told as it was.
	if got, err := told(nil, s.bodies, nil, changed); err != nil || !strings.Contains(got, `"content a"`) {
		t.Errorf("before it there differed (%v):\n%s", err, got)
	}
}

// backTo rolls back, with a scan after it as a session's, and gives what the sandbox
// sees then.
func (s *session) backTo(sc *scan.Scanner, target *manifest.Manifest, only func(string) bool) map[string]seen {
	s.t.Helper()
	p, err := NewPlan(bg, s.lower, scanned(s.t.(*testing.T), sc), target, Options{Only: only})
	must(s.t, err)
	if troubled(p) {
		s.t.Fatalf("plan: %v", p.Problems)
	}
	rep, err := s.h.execute(bg, s.q, p, NewSource(s.lower, s.bodies))
	if err != nil || len(rep.Failed) > 0 {
		s.t.Fatalf("execute: %v %v", err, rep.Failed)
	}
	_, _, err = sc.Scan(bg, scan.Options{Back: true})
	must(s.t, err)
	return s.capture()
}

// takeOver has the host get all that a state changed.
func (s *session) takeOver(m *manifest.Manifest) {
	s.t.Helper()
	must(s.t, filepath.WalkDir(s.q.Lower, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && err == nil {
			return os.Chmod(p, 0o700) // else only root could write to it
		}
		return err
	}))
	d, err := diff.Compare(bg, s.lower, nil, m, diff.Options{})
	must(s.t, err)
	for _, c := range d.Changes {
		if c.From != "" {
			_ = os.RemoveAll(filepath.Join(s.q.Lower, c.From)) // what was above it may have gone
		}
		at := filepath.Join(s.q.Lower, c.Path)
		if c.New == nil || c.New.Kind != manifest.KindDir || c.Old == nil || c.Old.Kind != manifest.KindDir {
			_ = os.RemoveAll(at)
		}
		if c.New == nil {
			continue
		}
		must(s.t, os.MkdirAll(filepath.Dir(at), 0o700))
		switch c.New.Kind {
		case manifest.KindDir:
			must(s.t, os.MkdirAll(at, 0o700))
		case manifest.KindSymlink:
			must(s.t, os.Symlink(c.New.Target, at))
		case manifest.KindFile:
			r, _, err := diff.Open(bg, s.lower, s.bodies, c.New)
			must(s.t, err)
			text, err := io.ReadAll(r)
			must(s.t, err, r.Close(), os.WriteFile(at, text, os.FileMode(c.New.Mode&0o777|0o600)))
		}
	}
}

// showsMore says whether a new mount shows something of the host's in a folder that the one
// before showed as the sandbox's alone, as m says. Between two mounts there is always a
// Release, whose state says what is seen then.
func (s *session) showsMore(m *manifest.Manifest, before map[string]seen) bool {
	s.t.Helper()
	for path := range s.capture() {
		if _, ok := before[path]; ok {
			continue
		}
		for dir, _ := manifest.Split(path); dir != ""; dir, _ = manifest.Split(dir) {
			if n := m.Lookup(dir); n != nil && n.Opaque {
				return true
			}
		}
	}
	return false
}

// Wherever the sandbox wrote, a roll back gives what was there, also when the host has
// got all of the session's changes since, was changed by a person, and they were rolled
// back before. Nothing else changes for the sandbox.
//
// That is so in a session that let go of nothing, and is asked of that one alone. One that
// did asks the project anew for what shows through, and so may a scan in the midst of a
// roll back: from then on an earlier state has there what the project has by now, not what
// was seen in it. TestRollBackWhereAPersonMadeAFile has one, and showsMore says which new
// mounts are left out.
func TestRollBackOfWhatTheHostHasProperty(t *testing.T) {
	h := startHelper(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := newSession(t, h, os.TempDir(), func(lower string) { fillLower(rt, lower) })
		defer s.close()
		sc, err := scan.New(s.q.Upper, s.bodies, s.h.open(bg, s.q.Upper))
		must(t, err)
		defer sc.Close()
		sc.Keep(scan.Keep{Lower: s.lower})
		type mark struct {
			m    *manifest.Manifest
			tree map[string]seen
		}
		marks := []mark{{scanned(t, sc), s.capture()}}
		for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			s.mutate(rapid.SliceOfN(genMutation, 1, 20).Draw(rt, "muts")...)
			marks = append(marks, mark{scanned(t, sc), s.capture()})
		}
		live := rapid.Bool().Draw(rt, "live")
		applied := len(marks) - 1
		if !live {
			applied = rapid.IntRange(0, len(marks)-1).Draw(rt, "applied")
		}
		s.takeOver(marks[applied].m)
		if !live { // else it shows what it did, but for what nothing hid
			for _, m := range rapid.SliceOfN(genMutation, 0, 6).Draw(rt, "the person's") {
				if !strings.Contains(m.To, "user.") && !strings.Contains(m.To, "posix_acl") && m.To != manifest.Capability {
					_ = m.apply(s.q.Lower)
				}
			}
			s.do("unmount") // an overlay needn't see what is done below it
			s.do("mount")
			if s.showsMore(marks[len(marks)-1].m, marks[len(marks)-1].tree) {
				return
			}
		}
		for range rapid.IntRange(1, 4).Draw(rt, "roll backs") {
			cur := scanned(t, sc)
			n := rapid.IntRange(0, len(marks)-1).Draw(rt, "to")
			target, want := marks[n].m, marks[n].tree
			d, err := diff.Compare(bg, nil, cur, target, diff.Options{})
			must(t, err)
			meant, leads := map[string]bool{}, map[string]bool{"": true}
			for _, c := range d.Changes {
				for _, path := range c.Paths() {
					meant[path] = true
					for at := path; !leads[at]; at, _ = manifest.Split(at) {
						leads[at] = true
					}
				}
			}
			before := s.capture()
			got := s.backTo(sc, target, func(path string) bool { return leads[path] })
			same := func(a, b seen) bool {
				a.MTime, b.MTime, a.Group, b.Group = manifest.Time{}, manifest.Time{}, "", ""
				return a == b
			}
			for path, b := range before {
				if dir, _ := manifest.Split(path); !leads[path] && !same(b, got[path]) && got[dir].Kind == manifest.KindDir {
					rt.Fatalf("%d was applied, and a roll back to %d made of %q\n%+v what wasn't meant\n%+v", applied, n, path, b, got[path])
				}
			}
			for _, c := range d.Changes {
				for _, path := range c.Paths() {
					if g, w := got[path], want[path]; !same(g, w) {
						rt.Fatalf("%d was applied, and after a roll back to %d %q is\n%+v, want\n%+v", applied, n, path, g, w)
					}
				}
			}
			cur = scanned(t, sc)
			if left, err := told(nil, s.bodies, target, cur); err != nil || left != "" {
				rt.Fatalf("%d was applied, and after a roll back to %d there differs (%v):\n%s", applied, n, err, left)
			}
			again, err := NewPlan(bg, s.lower, cur, target, Options{})
			must(t, err)
			for _, op := range again.Ops {
				if meant[op.Path] && op.Kind != OpMeta {
					rt.Fatalf("%d was applied, and after a roll back to %d there is left to do %+v", applied, n, op)
				}
			}
		}
	})
}

// What a folder of the sandbox's own lost stays lost when the host has got the folder,
// and what was found once isn't found anew by every scan.
func TestFolderOfItsOwnComesToRest(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), project(t))
	defer s.close()
	sc := keeping(t, s, scan.Keep{})
	s.agent(mutation{Op: "mkdir", Path: "own"}, mutation{Op: "write", Path: "own/a", Data: []byte("a")}, mutation{Op: "write", Path: "own/b", Data: []byte("b")})
	s.takeOver(scanned(t, sc))
	s.agent(mutation{Op: "remove", Path: "own/a"})
	m := scanned(t, sc)
	if n := m.Lookup("own/a"); n == nil || n.Kind != manifest.KindWhiteout {
		t.Errorf("own/a is %+v", n)
	}
	for end := time.Now().Add(patience); ; {
		again := scanned(t, sc)
		moved, err := sc.Moved(bg, scan.Options{})
		must(t, err)
		if again == m && !moved {
			break
		}
		if m = again; time.Now().After(end) {
			t.Fatal("each scan finds something")
		}
	}
	s.do("unmount")
	s.do("mount")
	if _, ok := s.capture()["own/a"]; ok {
		t.Error("own/a is there again")
	}
}
