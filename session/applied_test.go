package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"stepbox/session/api"
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
	for name, resumed := range map[string]bool{"live": false, "resumed": true} {
		for way, target := range map[string]func(n int) api.RollbackTarget{
			"the action":   func(n int) api.RollbackTarget { return only(n) },
			"to before it": api.Before,
		} {
			t.Run(name+" "+way, func(t *testing.T) {
				d := drive(t, api.ModePolicy, func(project string) {
					for name, text := range map[string]string{"file": "a\n", "gone": "gone\n"} {
						if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o600); err != nil {
							t.Fatal(err)
						}
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
			})
		}
	}
}
