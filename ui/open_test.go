package ui

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
	"stepbox/ui/config"
)

// The file that the cursor is on, or a diff, is laid ready for the person's own editor or
// pager, as it was in what is shown; of a deleted file only its diff is.
func TestOpenOutside(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	d := drive(t, sceneWorkbench(), 120, 35, Options{Session: sceneSession().ID, Config: &config.Config{Theme: "plain", Editor: "vim", Pager: "less"}})
	d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() })
	files := newScene().Changes.Files
	lies := func(name, text string, keys ...string) {
		t.Helper()
		d.press(keys...)
		var got []byte
		d.until("a copy lies there", func() bool {
			found, _ := filepath.Glob(filepath.Join(tmp, "*", name))
			if len(found) != 1 {
				return false
			}
			got, _ = os.ReadFile(found[0])
			return len(got) > 0
		})
		d.idle()
		if string(got) != text {
			t.Errorf("%q: there is %q, want %q", keys, got, text)
		}
		must.OK(t, os.RemoveAll(tmp))
		must.OK(t, os.Mkdir(tmp, 0o700))
	}
	lies("parse.go", "file "+files[0].Key+" at ", leader, "2", "e")
	lies("changes.diff", "patch of {\"files\":[{\"key\":\""+files[0].Key+"\"}]}\n", "E")
	lies("changes.diff", "patch of {\"action\":5}\n", "4", "g", "j", "E")
	d.press("enter")
	d.shows("E opens the diff in your pager")
	lies("changes.diff", "patch of {\"action\":5}\n", "E")
	d.press("esc", "G", "enter", "E")
	d.shows("no file was changed: there is no diff")
	d.press("esc", "2", "j", "j")
	d.press("e")
	d.shows("the file was deleted: E opens its diff")
}

// What a terminal would obey in a diff is shown as escapes.
func TestEscaped(t *testing.T) {
	t.Parallel()
	got, err := io.ReadAll(escaped(strings.NewReader("a\tb\n\x1b]52;c;x\a\r\n\u202e\nend")))
	if want := "a\tb\n\\x1b]52;c;x\\x07\\r\n\\u202e\nend"; err != nil || string(got) != want {
		t.Errorf("it is %q (%v), want %q", got, err, want)
	}
}

// A diff that is longer than what is opened leaves nobody behind who would go on with it.
func TestEscapedIsLeft(t *testing.T) {
	t.Parallel()
	r := escaped(strings.NewReader(strings.Repeat("a line\n", 1000)))
	if _, err := io.ReadFull(r, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil { // the goroutines that are left at the end are this package's failure
		t.Fatal(err)
	}
}
