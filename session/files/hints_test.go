package files

import (
	"testing"
	"time"
)

// A viewer's look goes where the hints lead, and everywhere where they are in
// doubt; a checkpoint's goes everywhere.
func TestHints(t *testing.T) {
	from, every := hintedFrom, fullLook
	t.Cleanup(func() { hintedFrom, fullLook = from, every })
	hintedFrom, fullLook = 0, time.Hour
	u := newUppers(t)
	u.write(u.upper, "a/f", "1")
	u.write(u.upper, "b/f", "1")
	var dirs []string
	sure := true
	u.Hint(func() ([]string, bool) { return dirs, sure })
	sees := func(what, path string, want bool) {
		t.Helper()
		m, _, err := u.ScanSince(t.Context(), 0)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := m.Lookup(path) != nil; got != want {
			t.Errorf("%s: %q was found: %v, want %v", what, path, got, want)
		}
	}
	sees("the first look", "a/f", true)
	u.write(u.upper, "a/g", "1")
	u.write(u.upper, "b/g", "1")
	sees("no hint", "a/g", false)
	dirs = []string{"a"}
	sees("a hint", "a/g", true)
	sees("no hint there", "b/g", false)
	if m, err := u.Scan(t.Context()); err != nil || m.Lookup("b/g") == nil {
		t.Errorf("a checkpoint relies on hints: %v", err)
	}
	u.write(u.upper, "b/h", "1")
	sure = false
	sees("a doubt", "b/h", true)
	sure = true
	u.write(u.upper, "b/i", "1")
	sees("sure again", "b/i", false)
	fullLook = 0
	u.hints.took = 0
	sees("after a while", "b/i", true)
	fullLook = time.Hour
	u.write(u.upper, "b/j", "1")
	dirs = []string{"/"} // no scan takes that
	if _, _, err := u.ScanSince(t.Context(), 0); err == nil {
		t.Error("the scan should have failed")
	}
	dirs = nil
	sees("after a failure", "b/j", true)
	hintedFrom = 1000
	u.write(u.upper, "b/k", "1")
	sees("few files", "b/k", true)
}
