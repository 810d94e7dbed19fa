package lower

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"stepbox/runner/overlay/content"
)

// The host may edit its own files; hashes that were remembered don't last.
func TestLowerChanges(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	must(t, os.WriteFile(path, []byte("one"), 0o600))
	old := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(path, old, old))
	l, err := Open(dir, Options{})
	must(t, err)
	defer l.Close()
	look := func() content.Hash {
		e, err := l.Lookup(t.Context(), "file")
		must(t, err)
		return e.Hash
	}
	first := look()
	eventually(t, "the hash is remembered", func() bool {
		look()
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.hashes) > 0
	})
	for i, text := range []string{"two", "six", "ten"} {
		must(t, os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, old, old))
		if look() != content.Sum([]byte(text)) {
			t.Fatalf("edit %d was missed", i)
		}
	}
	if first != content.Sum([]byte("one")) {
		t.Error("the first hash is wrong")
	}
}
