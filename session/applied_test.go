package session_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// apply has the project get what the upper has at some paths, as an apply does; what
// the upper hasn't goes.
func (w *world) apply(names ...string) {
	w.Helper()
	for _, name := range names {
		at := filepath.Join(w.project, name)
		info, err := os.Lstat(filepath.Join(w.store.SessionDir(w.ID()), "upper", name))
		switch {
		case err != nil || info.Mode()&os.ModeCharDevice != 0:
			w.must(os.RemoveAll(at))
		case info.IsDir():
			w.must(os.MkdirAll(at, 0o755))
		default:
			w.must(os.MkdirAll(filepath.Dir(at), 0o755))
			w.must(os.WriteFile(at, []byte(w.has(name)), info.Mode().Perm()))
		}
	}
}

// sees is what a program of the agent's finds under some names, with "-" for nothing.
func (d *driven) sees(want string, names string) {
	d.Helper()
	d.do("for f in " + names + "; do if [ -d $f ]; then echo $f/; elif [ -e $f ]; then cat $f; else echo -; fi; done >/tmp/seen; touch /tmp/looked")
	tmp := filepath.Join(d.store.SessionDir(d.ID()), "tmp")
	d.happened("a look", func(api.Event) bool {
		_, err := os.Lstat(filepath.Join(tmp, "looked"))
		return err == nil
	})
	got, err := os.ReadFile(filepath.Join(tmp, "seen"))
	d.must(err)
	d.must(os.Remove(filepath.Join(tmp, "looked")))
	if string(got) != want {
		d.Errorf("the agent sees %q under %s, want %q", got, names, want)
	}
}

const (
	original = "a\ngone\n-\n-\n"
	changed  = "b\n-\nmade\nin a folder\n"
	theNames = "file gone made folder/in"
)

// TestTakeBackWhatWasApplied: what is in the project by now is taken back in the
// session all the same, and comes again; the project stays as it is.
func TestTakeBackWhatWasApplied(t *testing.T) {
	t.Parallel()
	for name, resumed := range map[string]bool{"live": false, "resumed": true} {
		for way, target := range map[string]func(n int) api.RollbackTarget{
			"the action":   func(n int) api.RollbackTarget { return only(n) },
			"to before it": api.Before,
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				d := drive(t, api.ModePolicy, func(project string) {
					for name, text := range map[string]string{"file": "a\n", "gone": "gone\n"} {
						must.OK(t, os.WriteFile(filepath.Join(project, name), []byte(text), 0o600))
					}
				})
				n := d.run("echo b >file; rm gone; echo made >made; mkdir folder; echo in a folder >folder/in")
				d.apply("file", "gone", "made", "folder", "folder/in")
				if resumed {
					d.again(func(string) {})
					d.do = d.feed("feed")
				}
				_, done := d.take(target(n))
				d.sees(original, theNames)
				if got := d.review(n); got != api.ReviewRolledBack {
					t.Errorf("the action is %q", got)
				}
				for name, want := range map[string]string{"file": "b\n", "made": "made\n", "folder/in": "in a folder\n"} {
					if got, err := os.ReadFile(filepath.Join(d.project, name)); err != nil || string(got) != want {
						t.Errorf("the project's %s is %q, %v", name, got, err)
					}
				}
				_, again := d.take(api.RollbackTarget{Redo: done.ID})
				d.sees(changed, theNames)
				if got := d.review(n); got != api.ReviewOpen {
					t.Errorf("the action that came again is %q", got)
				}
				d.take(api.RollbackTarget{Redo: again.ID}) // and away again
				d.sees(original, theNames)
				if got := d.review(n); got != api.ReviewRolledBack {
					t.Errorf("the action that went again is %q", got)
				}
			})
		}
	}
}

// TestTakeBackInAFolderOfItsOwn: a folder that the session made goes on being what the
// session made of it when the project has got it, in the running session and, where
// something went from it, in one that is resumed.
func TestTakeBackInAFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	d := drive(t, api.ModePolicy, nil)
	d.run("mkdir own; echo 1 >own/one")
	second := d.run("mkdir own/deep; echo 2 >own/deep/two; echo 3 >own/three")
	d.apply("own", "own/one", "own/deep", "own/deep/two", "own/three")
	third := d.run("rm own/one")
	const names = "own/one own/deep/two own/three own/theirs"
	d.sees("-\n2\n3\n-\n", names)
	d.take(only(third))
	d.sees("1\n2\n3\n-\n", names)
	_, done := d.take(only(second))
	d.sees("1\n-\n-\n-\n", names)
	_, again := d.take(api.RollbackTarget{Redo: done.ID})
	d.sees("1\n2\n3\n-\n", names)
	d.take(api.RollbackTarget{Redo: again.ID})
	d.sees("1\n-\n-\n-\n", names)
	d.again(func(string) {
		d.must(os.WriteFile(filepath.Join(d.project, "own/theirs"), []byte("4\n"), 0o600))
	})
	d.do = d.feed("feed")
	d.sees("1\n-\n-\n-\n", names)
	if got, want := d.changed(0), []string{"A own/one"}; !slices.Equal(got, want) {
		t.Errorf("after the resume the changes are %q, want %q", got, want)
	}
	fourth := d.run("echo 5 >own/one")
	d.take(only(fourth))
	d.sees("1\n-\n-\n-\n", names)
}

// TestDeletionOfWhatIsGone: a deletion that the project has as well comes again, and is
// one for as long as the project hasn't got the file again.
func TestDeletionOfWhatIsGone(t *testing.T) {
	t.Parallel()
	d := drive(t, api.ModePolicy, func(project string) {
		must.OK(t, os.WriteFile(filepath.Join(project, "gone"), []byte("gone\n"), 0o600))
	})
	n := d.run("rm gone")
	d.apply("gone")
	_, done := d.take(only(n))
	d.take(api.RollbackTarget{Redo: done.ID})
	if got, want := d.changed(0), []string{"D gone"}; !slices.Equal(got, want) {
		t.Errorf("the changes are %q, want %q", got, want)
	}
	d.again(func(string) { // undone in the project meanwhile
		d.must(os.WriteFile(filepath.Join(d.project, "gone"), []byte("gone\n"), 0o600))
	})
	d.do = d.feed("feed")
	d.sees("-\n", "gone")
	if got, want := d.changed(0), []string{"D gone"}; !slices.Equal(got, want) {
		t.Errorf("after a resume the changes are %q, want %q", got, want)
	}
	d.take(only(n))
	d.sees("gone\n", "gone")
}

// TestTheirsInAFolderOfItsOwn: what a person put into a folder of the session's, or wrote
// there, is theirs when the session is resumed, and stays when the folder is taken back.
func TestTheirsInAFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	for way, target := range map[string]func(n int) api.RollbackTarget{
		"the action":   func(n int) api.RollbackTarget { return only(n) },
		"to before it": api.Before,
	} {
		t.Run(way, func(t *testing.T) {
			d := drive(t, api.ModePolicy, nil)
			n := d.run("mkdir own; echo 1 >own/one; echo 2 >own/two")
			d.apply("own", "own/one", "own/two")
			d.again(func(string) {
				for name, text := range map[string]string{"two": "2\nand more\n", "theirs": "3\n"} {
					d.must(os.WriteFile(filepath.Join(d.project, "own", name), []byte(text), 0o600))
				}
			})
			d.do = d.feed("feed")
			d.take(only(d.run("echo more >>own/theirs")))
			d.sees("3\n", "own/theirs")
			d.run(": >other")
			if got, want := d.changed(0), []string{"A other", "A own/two"}; !slices.Equal(got, want) {
				t.Errorf("the changes are %q, want %q", got, want)
			}
			d.take(target(n))
			d.sees("-\n-\n3\n", "own/one own/two own/theirs")
			for _, c := range d.changed(0) {
				if strings.Contains(c, "theirs") {
					t.Errorf("a change of the session's is %q", c)
				}
			}
		})
	}
}

// TestRollBackPastOthersWork: what others had made of an applied file when the session was
// resumed stays, whatever it is rolled back to, and what the session made of it since goes.
func TestRollBackPastOthersWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent, then string
		touched     []string // by then
	}{
		"untouched since":   {"sed -i s/7/seven/ a; echo made >made; rm gone", ":", nil},
		"changed since":     {"sed -i s/7/seven/ a; echo made >made; rm gone", "echo 8 >>a; echo more >made; rm gone", []string{"a", "made", "gone"}},
		"under other names": {"mv a b; rm gone; echo made >made", "rm made gone", []string{"made", "gone"}},
	} {
		for again, twice := range map[string]bool{"": false, ", and resumed twice": true} {
			t.Run(name+again, func(t *testing.T) {
				d := drive(t, api.ModePolicy, func(project string) {
					must.OK(t, os.WriteFile(filepath.Join(project, "a"), []byte("1\n7\n"), 0o600))
					must.OK(t, os.WriteFile(filepath.Join(project, "gone"), []byte("gone\n"), 0o600))
				})
				d.config.Applied = func(context.Context, string, *manifest.Manifest) (scan.Drop, error) {
					return func(string, *manifest.Entry, bool) bool { return true }, nil
				}
				n := d.run(c.agent)
				at := "a"
				if d.has("b") != "" {
					at = "b"
				}
				d.apply("a", "b", "made", "gone")
				d.again(func(string) {
					for name, text := range map[string]string{at: "3\n", "made": "other\n", "gone": "back\n"} {
						d.must(os.WriteFile(filepath.Join(d.project, name), []byte(text), 0o600))
					}
				})
				d.do = d.feed("feed")
				d.run(c.then)
				if twice {
					d.apply(c.touched...)
					d.again(func(string) {})
					d.do = d.feed("feed")
				}
				plan, _ := d.take(api.Before(n))
				d.sees("3\nother\nback\n", at+" made gone")
				for _, name := range []string{at, "made", "gone"} {
					if !slices.ContainsFunc(plan.Problems, func(p api.Trouble) bool { return p.Path == name }) {
						t.Errorf("the plan doesn't say that %s goes back no further: %v", name, plan.Problems)
					}
				}
				if got := d.review(n); got != api.ReviewOpen {
					t.Errorf("the action, whose work stands, is %q", got)
				}
			})
		}
	}
}
