package scan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/lower"
)

func TestKeepIsBounded(t *testing.T) {
	upper, sc := upperByHand(t)
	host := t.TempDir()
	put := func(dir, name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	big := strings.Repeat("x", 5<<20)
	for name, text := range map[string]string{"large": big, "small": "small", "ignored/f": "f", "many/1": "1", "many/2": "2", "many/3": "3", "heavy/1": big[:900], "heavy/2": big[:200]} {
		put(host, name, text)
	}
	low, err := lower.Open(host, lower.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, low.Close()) })
	set(t, &keptFile, 1<<20)
	set(t, &keptTree, 1000)
	set(t, &keptNames, 2)
	sc.Keep(Keep{Lower: low, Ignored: func(p string, _ bool) bool { return strings.HasPrefix(p, "ignored/") }})
	scanWith(t, sc, Options{})
	for _, name := range []string{"large", "small", "ignored", "many", "heavy"} {
		must(t, unix.Mknod(filepath.Join(upper, name), unix.S_IFCHR, 0)) // deleted
	}
	changes := func() []diff.Change {
		t.Helper()
		m, _ := scanWith(t, sc, Options{})
		d, err := diff.Compare(bg, nil, nil, m, diff.Options{})
		must(t, err)
		return d.Changes
	}
	var got []string
	for _, c := range changes() {
		got = append(got, fmt.Sprintf("%s %s %d %s", c.Status, c.Path, c.Old.Size, c.Old.Unsaved))
	}
	want := []string{
		"D heavy/1 900 ", "D heavy/2 200 not kept: its folder had more than 0 MiB", "D ignored/f 1 not kept: git ignores it",
		"D large 5242880 not kept: it is larger than 1 MiB", "D many 0 not kept: there were more than 2 files", "D many/1 1 ", "D many/2 1 ", "D small 5 ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// Put back as it was, what wasn't kept is known to be the same.
	must(t, os.Remove(filepath.Join(upper, "ignored")), os.Remove(filepath.Join(upper, "large")))
	put(upper, "ignored/f", "f")
	must(t, unix.Setxattr(filepath.Join(upper, "ignored"), "user.overlay.opaque", []byte("y"), 0))
	put(upper, "large", big)
	for _, c := range changes() {
		if c.Path == "large" || strings.HasPrefix(c.Path, "ignored") {
			t.Errorf("%s is listed as %s", c.Path, c.Status)
		}
	}
}
