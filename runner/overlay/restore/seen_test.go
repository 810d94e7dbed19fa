package restore

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/runner/overlay/content"
	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
)

// host changes the project as a person does.
func (s *session) host(muts ...mutation) {
	s.t.Helper()
	for _, m := range muts {
		must(s.t, m.apply(s.q.Lower))
	}
}

// A roll back to an empty folder gives an empty one, which is recorded as such, also when
// the project has the session's deletion of that folder by then.
func TestRollBackToEmptiedFolderThatTheHostLost(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), project(t))
	defer s.close()
	sc := keeping(t, s, scan.Keep{})
	s.agent(mutation{Op: "recreate", Path: "tree", N: 0o755})
	emptied := scanned(t, sc)
	s.agent(mutation{Op: "remove", Path: "tree"}, mutation{Op: "socket", Path: "tree", N: 0o644})
	s.takeOver(scanned(t, sc)) // the deletion: no project gets a socket
	if tree := s.backTo(sc, emptied, nil); tree["tree"].Kind != manifest.KindDir || tree["tree/1"].Kind != 0 {
		t.Errorf("there is %+v with %+v", tree["tree"], tree["tree/1"])
	}
	now := scanned(t, sc)
	if got, err := told(nil, s.bodies, emptied, now); err != nil || got != "" {
		t.Errorf("after the roll back there differs (%v):\n%s", err, got)
	}
	if p, err := NewPlan(bg, s.lower, now, emptied, Options{}); err != nil || len(p.Ops) > 0 {
		t.Errorf("there is left to do %+v, %v", p, err)
	}
}

// A folder that the sandbox makes where the project has lost one shows nothing of it,
// though the upper hides nothing there. So it is recorded, and so it stays when the
// project has the lost one again.
func TestFolderInPlaceOfLostOne(t *testing.T) {
	lost := mutation{Op: "removeall", Path: "tree"}
	empty := mutation{Op: "recreate", Path: "tree"}                      // of mode 000: an ordinary user has to mark it all the same
	for name, tt := range map[string]struct{ before, after []mutation }{ // the project loses it in between
		"instead of a socket":          {[]mutation{lost, {Op: "socket", Path: "tree", N: 0o644}}, []mutation{empty}},
		"instead of a file":            {[]mutation{lost, {Op: "write", Path: "tree"}}, []mutation{empty}},
		"instead of an emptied folder": {[]mutation{empty}, []mutation{empty}},
		"after a file that went":       {[]mutation{lost, {Op: "write", Path: "tree"}}, []mutation{{Op: "remove", Path: "tree"}, {Op: "mkdir", Path: "tree"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, startHelper(t), os.TempDir(), project(t))
			defer s.close()
			sc := keeping(t, s, scan.Keep{})
			s.agent(tt.before...)
			scanned(t, sc)
			s.host(lost)
			for _, m := range tt.after {
				s.agent(m)
				scanned(t, sc)
			}
			s.agent(mutation{Op: "write", Path: "tree/new"}, mutation{Op: "chmod", Path: "tree"})
			check := func(when string) {
				t.Helper()
				s.emptyBut(sc, when, "tree/new", []string{"M tree dir mode", "D tree/1 file", "D tree/deep/2 file", "A tree/new file"})
			}
			check("at once")
			s.host(mutation{Op: "mkdir", Path: "tree"}, mutation{Op: "write", Path: "tree/1", Data: []byte("back")})
			check("when the project has it again")
			s.comesToRest(sc)
			s.do("unmount")
			s.do("mount")
			check("in the next mount")
		})
	}
}

// The same in a folder that the sandbox made and the project has got since: of that one,
// the mount shows nothing of the project's.
func TestFolderInPlaceOfAppliedOne(t *testing.T) {
	empty := mutation{Op: "recreate", Path: "own/tree", N: 0o755}
	for name, between := range map[string][]mutation{
		"instead of a socket":          {{Op: "removeall", Path: "own/tree"}, {Op: "socket", Path: "own/tree", N: 0o644}},
		"instead of an emptied folder": {empty},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, startHelper(t), os.TempDir(), project(t))
			defer s.close()
			sc := keeping(t, s, scan.Keep{})
			s.agent(mutation{Op: "mkdir", Path: "own"}, mutation{Op: "mkdir", Path: "own/tree"}, mutation{Op: "write", Path: "own/tree/1"})
			s.takeOver(scanned(t, sc))
			s.agent(between...)
			scanned(t, sc)
			s.agent(empty, mutation{Op: "write", Path: "own/tree/new"})
			s.emptyBut(sc, "at once", "own/tree/new", []string{"A own/tree/new file"})
			s.comesToRest(sc)
			s.do("unmount")
			s.do("mount")
			s.emptyBut(sc, "in the next mount", "own/tree/new", []string{"A own/tree/new file"})
		})
	}
}

// What is the project's again before the sandbox makes anything there shows through.
func TestFolderThatTheHostHasAgain(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), project(t))
	defer s.close()
	sc := keeping(t, s, scan.Keep{})
	s.agent(mutation{Op: "removeall", Path: "tree"}, mutation{Op: "socket", Path: "tree", N: 0o644})
	scanned(t, sc)
	s.host(mutation{Op: "removeall", Path: "tree"})
	s.agent(mutation{Op: "remove", Path: "tree"})
	s.host(mutation{Op: "mkdir", Path: "tree"}, mutation{Op: "write", Path: "tree/1", Data: []byte("one")})
	s.do("unmount") // else it isn't seen
	s.do("mount")
	s.agent(mutation{Op: "write", Path: "tree/new"})
	s.do("unmount")
	s.do("mount")
	if _, ok := s.capture()["tree/1"]; !ok {
		t.Fatal("tree/1 isn't seen")
	}
	d, err := diff.Compare(bg, nil, nil, scanned(t, sc), diff.Options{})
	must(t, err)
	if got := brief(d.Changes); slices.ContainsFunc(got, func(line string) bool { return strings.Contains(line, "tree/1") }) {
		t.Errorf("there differs %q", got)
	}
}

// What comes to be in the lost folder after the sandbox made its own was never deleted.
func TestFolderOfItsOwnDeletesNothingNew(t *testing.T) {
	s := newSession(t, startHelper(t), os.TempDir(), project(t))
	defer s.close()
	sc := keeping(t, s, scan.Keep{})
	s.agent(mutation{Op: "write", Path: "tree/1"})
	scanned(t, sc)
	s.host(mutation{Op: "removeall", Path: "tree"})
	s.do("unmount") // else tree can't be listed
	s.do("mount")
	s.agent(mutation{Op: "removeall", Path: "tree"})
	scanned(t, sc)
	s.agent(mutation{Op: "mkdir", Path: "tree"}, mutation{Op: "write", Path: "tree/new"})
	s.host(mutation{Op: "mkdir", Path: "tree"}, mutation{Op: "write", Path: "tree/person's"})
	for range 2 { // the second one sees the folder as the first one left it
		s.emptyBut(sc, "then", "tree/new", []string{"D tree/1 file", "A tree/new file"})
	}
}

// A person makes a file where the sandbox had one and has none any more, and the session
// is resumed. However often it is rolled back to before it had one, and from wherever, that
// gives the same: nothing, or the person's file if the project was asked anew.
func TestRollBackWhereAPersonMadeAFile(t *testing.T) {
	for name, asked := range map[string]bool{"not asked": false, "asked": true} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, startHelper(t), os.TempDir(), project(t))
			defer s.close()
			sc := keeping(t, s, scan.Keep{})
			states := []*manifest.Manifest{scanned(t, sc)}
			for _, muts := range [][]mutation{
				{{Op: "write", Path: "new", Data: []byte("1")}, {Op: "write", Path: "other"}},
				{{Op: "remove", Path: "new"}, {Op: "mkdir", Path: "new"}, {Op: "write", Path: "new/2"}},
				{{Op: "removeall", Path: "new"}, {Op: "remove", Path: "other"}},
			} {
				s.agent(muts...)
				states = append(states, scanned(t, sc))
			}
			person := []byte("person's")
			s.host(mutation{Op: "write", Path: "new", Data: person})
			s.do("unmount")
			sc = s.resumed(sc)
			s.do("mount")

			var turned []*manifest.Manifest
			back := func(n int) seen {
				t.Helper()
				if last := sc.Last(); asked {
					now, _, err := sc.Scan(bg, scan.Options{Again: true})
					must(t, err)
					if now.Base.Turns != last.Base.Turns {
						turned = append(turned, last)
					}
				}
				target := states[n]
				for _, before := range turned {
					target = manifest.Pin(target, before)
				}
				return s.backTo(sc, target, nil)["new"]
			}
			before := seen{}.Hash
			if asked {
				before = content.Sum(person)
			}
			if got := back(2); got.Kind != manifest.KindDir {
				t.Fatalf("there is %+v, not the folder", got)
			}
			if got := back(0); got.Hash != before {
				t.Errorf("before there was one there is %+v", got)
			}
			if asked { // now the sandbox's own hides the person's file
				s.host(mutation{Op: "write", Path: "other", Data: person})
			}
			if got := back(1); got.Hash != content.Sum([]byte("1")) {
				t.Errorf("there is %+v, not the sandbox's", got)
			}
			if got := back(0); got.Hash != before {
				t.Errorf("before there was one there is %+v the second time", got)
			}
			if asked && len(turned) < 2 {
				t.Errorf("what shows through changed %d times", len(turned))
			}
		})
	}
}

// resumed has a new scanner go on from another, and let go of what the project has, as
// before each mount of a session but the first.
func (s *session) resumed(was *scan.Scanner) *scan.Scanner {
	s.t.Helper()
	sc := keeping(s.t.(*testing.T), s, scan.Keep{})
	sc.GoOn(was.Last())
	scanned(s.t.(*testing.T), sc)
	_, err := sc.Release(bg, nil, func(*manifest.Manifest) error { return nil })
	must(s.t, err)
	return sc
}

// emptyBut checks that the folder of a file has nothing else, and what a state of now
// changed all in all.
func (s *session) emptyBut(sc *scan.Scanner, when, file string, changed []string) {
	s.t.Helper()
	dir := file[:strings.LastIndexByte(file, '/')+1]
	for path := range s.capture() {
		if strings.HasPrefix(path, dir) && path != file {
			s.t.Errorf("%s the sandbox sees %q", when, path)
		}
	}
	m, _, err := sc.Scan(bg, scan.Options{})
	must(s.t, err)
	d, err := diff.Compare(bg, nil, nil, m, diff.Options{})
	must(s.t, err)
	if got := brief(d.Changes); !slices.Equal(got, changed) {
		s.t.Errorf("%s there differs %q, want %q", when, got, changed)
	}
}

// comesToRest waits until a scan finds nothing new.
func (s *session) comesToRest(sc *scan.Scanner) {
	s.t.Helper()
	for end := time.Now().Add(patience); ; {
		was := sc.Last()
		m, _, err := sc.Scan(bg, scan.Options{})
		must(s.t, err)
		moved, err := sc.Moved(bg, scan.Options{})
		must(s.t, err)
		if m == was && !moved {
			return
		}
		if time.Now().After(end) {
			s.t.Fatal("each scan finds something")
		}
	}
}
