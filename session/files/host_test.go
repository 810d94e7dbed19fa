package files

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/diff"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// beside is what is said of each changed file's place in the project.
func (u *uppers) beside() map[string]string {
	u.Helper()
	m := u.look()
	out := make(map[string]string)
	_, err := u.Page(u.Context(), nil, m, api.Page{}, func(changes []diff.Change, listed []api.Change) {
		u.onHost(u.Context(), u.project, m, nil, changes, listed)
		for i, c := range listed {
			out[changes[i].Path] = c.Host
			if c.Applied {
				out[changes[i].Path] += "applied"
			}
		}
	})
	must.OK(u, err)
	return out
}

func (u *uppers) expect(want map[string]string) {
	u.Helper()
	got := u.beside()
	for path, words := range want {
		if got[path] != words {
			u.Errorf("of %s it is said %q, want %q", path, got[path], words)
		}
	}
}

// TestProjectMovesOn: whatever a person does in the project to a file that the
// session changed is said, and nothing else.
func TestProjectMovesOn(t *testing.T) {
	u := newUppers(t)
	for _, name := range []string{"edited", "gone", "touched", "applied", "link", "replaced", "deleted", "both gone", "still"} {
		u.write(u.project, name, "first "+name)
	}
	for _, name := range []string{"edited", "gone", "touched", "applied", "link", "replaced", "still", "new", "new too", "new applied", "in/a/new/folder"} {
		u.write(u.upper, name, "the agent's "+name)
	}
	for _, name := range []string{"deleted", "both gone"} {
		must.OK(t, unix.Mknod(filepath.Join(u.upper, name), unix.S_IFCHR, 0))
	}
	before := u.beside() // this is when the project's are first seen
	for path, words := range before {
		if words != "" {
			t.Errorf("nothing has moved, and of %s it is said %q", path, words)
		}
	}
	u.write(u.project, "edited", "other text")
	u.write(u.project, "applied", "the agent's applied")
	u.write(u.project, "new applied", "the agent's new applied")
	u.write(u.project, "new too", "a person's")
	later := time.Now().Add(time.Hour)
	for _, err := range []error{
		os.Remove(filepath.Join(u.project, "gone")), os.Remove(filepath.Join(u.project, "both gone")), os.Remove(filepath.Join(u.project, "link")),
		os.Symlink("/nowhere/at/all", filepath.Join(u.project, "link")), os.Chtimes(filepath.Join(u.project, "touched"), later, later),
		os.Remove(filepath.Join(u.project, "replaced")), os.Mkdir(filepath.Join(u.project, "replaced"), 0o755),
	} {
		must.OK(t, err)
	}
	want := map[string]string{
		"edited": "changed in the project meanwhile", "gone": "deleted in the project meanwhile", "touched": "", "applied": "applied",
		"link": "changed in the project meanwhile", "replaced": "changed in the project meanwhile", "deleted": "", "both gone": "applied",
		"still": "", "new": "", "new too": "made in the project, too", "new applied": "applied", "in/a/new/folder": "",
	}
	u.expect(want)
	u.expect(want) // remembered, it is the same
	// A project that isn't there any more says nothing.
	must.OK(t, os.Rename(u.project, u.project+".moved"))
	for path, words := range u.beside() {
		if words != "" {
			t.Errorf("without a project, of %s it is said %q", path, words)
		}
	}
}

// TestProjectIsWatched: who looks at changes is told to look again when the
// project moves where they are.
func TestProjectIsWatched(t *testing.T) {
	u := newUppers(t)
	u.write(u.project, "dir/a", "first")
	u.write(u.upper, "dir/a", "second")
	told := make(chan int64, 100)
	u.told = func(v int64) { told <- v }
	m := u.look()
	changed, err := u.Between(t.Context(), nil, m)
	must.OK(t, err)
	u.hosts.follow(u.project, changed, func() { u.Bump() })
	for len(told) > 0 {
		<-told
	}
	seen := u.AsOf()
	u.write(u.project, "dir/a", "third")
	for v := range told {
		if v > seen {
			return
		}
	}
}
