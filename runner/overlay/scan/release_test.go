package scan

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/lower"
	"stepbox/runner/overlay/manifest"
)

// What the project has as well goes, and nothing else; what that changes is no
// change of the session's, and what the project becomes then is what it had.
func TestRelease(t *testing.T) {
	upper, sc := upperByHand(t)
	host := t.TempDir()
	put := func(dir, name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	list := func() (out []string) {
		t.Helper()
		must(t, filepath.WalkDir(upper, func(path string, d os.DirEntry, err error) error {
			if rel, _ := filepath.Rel(upper, path); err == nil && rel != "." { // it is below
				out = append(out, rel)
			}
			return err
		}))
		return out
	}
	for _, name := range []string{"same", "other", "mode", "gone", "there", "swap", "d/e/same", "half/same", "half/other", "opaque/same", ".git/HEAD", "secret"} {
		put(host, name, "old")
	}
	low, err := lower.Open(host, lower.Options{Hidden: []string{"secret"}})
	must(t, err)
	t.Cleanup(func() { must(t, low.Close()) })
	sc.Keep(Keep{Lower: low})
	scanWith(t, sc, Options{})
	for _, name := range []string{"same", "other", "mode", "swap", "d/e/same", "half/same", "half/other", "opaque/same", ".git/HEAD", "secret", "made"} {
		put(upper, name, "new")
	}
	must(t, unix.Setxattr(filepath.Join(upper, "opaque"), "user.overlay.opaque", []byte("y"), 0))
	must(t, os.Symlink("made", filepath.Join(upper, "link")), os.Chmod(filepath.Join(upper, "mode"), 0o755))
	for _, name := range []string{"gone", "there"} {
		must(t, unix.Mknod(filepath.Join(upper, name), unix.S_IFCHR, 0))
	}
	before, _ := scanWith(t, sc, Options{})
	// The project gets most of it.
	for _, name := range []string{"same", "mode", "swap", "d/e/same", "half/same", "opaque/same", ".git/HEAD", "secret", "made"} {
		put(host, name, "new")
	}
	must(t, os.Symlink("made", filepath.Join(host, "link")), os.Remove(filepath.Join(host, "gone")))
	must(t, os.Remove(filepath.Join(host, "swap")), os.Symlink("new", filepath.Join(host, "swap")))

	all := list()
	refused := errors.New("refused")
	if _, err := sc.Release(bg, nil, func(*manifest.Manifest) error { return refused }); !errors.Is(err, refused) || !slices.Equal(list(), all) {
		t.Fatalf("what wasn't kept is %q, %v", list(), err)
	}
	var left *manifest.Manifest
	paths, err := sc.Release(bg, nil, func(m *manifest.Manifest) error { left = m; return nil })
	must(t, err)
	if want := []string{"d/e/same", "d/e", "d", "gone", "half/same", "link", "made", "same"}; !slices.Equal(paths, want) {
		t.Errorf("gone are %q, want %q", paths, want)
	}
	want := []string{".git", ".git/HEAD", "half", "half/other", "mode", "opaque", "opaque/same", "other", "secret", "swap", "there"}
	if got := list(); !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
	changed := func(from, to *manifest.Manifest) (out []string) {
		t.Helper()
		d, err := diff.Compare(bg, nil, from, to, diff.Options{})
		must(t, err)
		for _, c := range d.Changes {
			out = append(out, string(c.Status)+" "+c.Path)
		}
		return out
	}
	if got := changed(before, left); len(got) > 0 {
		t.Errorf("letting go changed %q", got)
	}
	now, _ := scanWith(t, sc, Options{})
	if got := changed(left, now); len(got) > 0 {
		t.Errorf("what is left isn't what was said: %q", got)
	}
	// The person goes on, and then the agent.
	for _, name := range []string{"same", "d/e/same", "gone"} {
		put(host, name, "newer")
		put(upper, name, "newest")
	}
	later, _ := scanWith(t, sc, Options{})
	for _, name := range []string{"same", "d/e/same", "gone"} {
		v := later.Base.Root
		for part := range strings.SplitSeq(name, "/") {
			v = v.Sub.Find(part)
		}
		if v == nil || v.Size != int64(len("newer")) {
			t.Errorf("%s was %+v when it was touched again", name, v)
		}
	}
	if got := changed(now, later); !slices.Equal(got, []string{"M d/e/same", "M gone", "M same"}) {
		t.Errorf("the agent changed %q", got)
	}
}

// What is said to be settled goes where the project went on from it, and of a repository's
// own folder what is named, however deep.
func TestReleaseWhatIsSuperseded(t *testing.T) {
	upper, sc := upperByHand(t)
	host := t.TempDir()
	put := func(dir string, text string, names ...string) {
		t.Helper()
		for _, name := range names {
			path := filepath.Join(dir, name)
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	put(host, "old", "on", "own", "back", "gone", "d/on", ".git/HEAD", ".git/refs/heads/main")
	low, err := lower.Open(host, lower.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, low.Close()) })
	sc.Keep(Keep{Lower: low})
	scanWith(t, sc, Options{})
	put(upper, "new", "on", "own", "back", "gone", "d/on", "made", "made back", ".git/HEAD", ".git/refs/heads/main", ".git/refs/heads/other")
	scanWith(t, sc, Options{})
	put(host, "newer", "on", "own", "d/on", "made", ".git/refs/heads/main")
	must(t, os.Remove(filepath.Join(host, "gone")))
	var asked []string
	paths, err := sc.Release(bg, func(path string, e *manifest.Entry, moved bool) bool {
		if !moved {
			return false
		}
		asked = append(asked, path)
		return path != "own" && path != ".git/HEAD"
	}, func(*manifest.Manifest) error { return nil })
	must(t, err)
	if want := []string{".git/refs/heads/main", ".git/refs/heads/other", "d/on", "d", "gone", "made", "on"}; !slices.Equal(paths, want) {
		t.Errorf("gone are %q, want %q", paths, want)
	}
	if slices.Contains(asked, "back") || slices.Contains(asked, "made back") {
		t.Errorf("moved is said to be what the project has as it was: %q", asked)
	}
	now, _ := scanWith(t, sc, Options{})
	d, err := diff.Compare(bg, nil, nil, now, diff.Options{})
	must(t, err)
	var changed []string
	for _, c := range d.Changes {
		changed = append(changed, string(c.Status)+" "+c.Path)
	}
	if want := []string{"M .git/HEAD", "M back", "A made back", "M own"}; !slices.Equal(changed, want) {
		t.Errorf("changed are %q, want %q", changed, want)
	}
}
