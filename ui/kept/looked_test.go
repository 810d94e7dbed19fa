package kept

import (
	"os"
	"path/filepath"
	"testing"

	"stepbox/session/e2e/must"
)

func TestItIsRememberedPerSession(t *testing.T) {
	f := Looked(filepath.Join(t.TempDir(), "looked"))
	if n := f.At("one"); n != 0 {
		t.Errorf("nothing was looked at, and it is %d", n)
	}
	for _, n := range []int64{7, 12} {
		must.OK(t, f.Set("one", n))
		if got := Looked(string(f)).At("one"); got != n {
			t.Errorf("%d is remembered, want %d", got, n)
		}
	}
	if n := f.At("two"); n != 0 {
		t.Errorf("another session's is %d", n)
	}
	left, err := os.ReadDir(string(f))
	if err != nil || len(left) != 1 {
		t.Errorf("the folder has %d files (%v), want 1", len(left), err)
	}
}

func TestBadNamesAndFiles(t *testing.T) {
	dir := t.TempDir()
	f := Looked(filepath.Join(dir, "looked"))
	for _, id := range []string{"", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden"} {
		if err := f.Set(id, 3); err == nil {
			t.Errorf("%q was taken for a session", id)
		}
		if n := f.At(id); n != 0 {
			t.Errorf("%q has %d", id, n)
		}
	}
	must.OK(t, f.Set("one", 3))
	for _, text := range []string{"", "x", "-4", "99999999999999999999"} {
		must.OK(t, os.WriteFile(filepath.Join(string(f), "one"), []byte(text), 0o600))
		if n := f.At("one"); n != 0 {
			t.Errorf("%q is read as %d", text, n)
		}
	}
}
