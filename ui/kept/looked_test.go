package kept

import (
	"os"
	"path/filepath"
	"testing"
)

func TestItIsRememberedPerSession(t *testing.T) {
	f := Looked(filepath.Join(t.TempDir(), "looked"))
	if n := f.At("one"); n != 0 {
		t.Errorf("nothing was looked at, and it is %d", n)
	}
	for _, n := range []int64{7, 12} {
		if err := f.Set("one", n); err != nil {
			t.Fatal(err)
		}
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
	if err := f.Set("one", 3); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "x", "-4", "99999999999999999999"} {
		if err := os.WriteFile(filepath.Join(string(f), "one"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if n := f.At("one"); n != 0 {
			t.Errorf("%q is read as %d", text, n)
		}
	}
}
