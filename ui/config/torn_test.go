package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A file of which an editor has just written a part is read once it is whole; one that
// doesn't come to rest isn't taken at all.
func TestReadWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil { // in place, as some editors do
			t.Fatal(err)
		}
	}
	changed := func() time.Time {
		_, at, _ := readOnce(file) // what there is needn't be right yet
		return at
	}
	const whole = "on-ask: deny # é\nlimits:\n  memory: 1G\n"
	for name, half := range map[string]string{"nothing of it": "", "a part": whole[:18], "a part of a letter": whole[:16], "a part of a line": whole[:7]} {
		t.Run(name, func(t *testing.T) {
			write(half)
			rest := time.Duration(0)
			data, err := read(file, func() time.Time { return changed().Add(rest) }, func(d time.Duration) {
				write(whole)
				rest = d
			})
			if err != nil || string(data) != whole {
				t.Errorf("read %q (%v)", data, err)
			}
		})
	}
	if data, err := read(file, changed, func(time.Duration) { write(whole) }); err == nil || data != nil {
		t.Errorf("never at rest, it is read as %q (%v)", data, err)
	}
	pauses := 0
	if data, err := read(file, func() time.Time { return changed().Add(-time.Hour) }, func(time.Duration) { pauses++ }); err != nil || string(data) != whole || pauses != 0 {
		t.Errorf("of the future, it is read as %q after %d pauses (%v)", data, pauses, err)
	}
}
