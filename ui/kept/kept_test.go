package kept

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"stepbox/session/e2e/must"
	"stepbox/ui/intent"
	"stepbox/ui/layout"
)

func TestLayoutIsKeptPerKind(t *testing.T) {
	l := Layout(filepath.Join(t.TempDir(), "layout"))
	if got := l.Shapes(); got != (layout.Shapes{}) {
		t.Errorf("nothing was kept, and it is %+v", got)
	}
	wide := layout.Shape{Left: 550, Flat: true}
	narrow := layout.Shape{Preset: intent.Deciding, Strip: 400}
	for kind, s := range map[layout.Kind]layout.Shape{layout.Wide: wide, layout.Narrow: narrow} {
		must.OK(t, l.Keep(kind, s))
	}
	if got, want := Layout(string(l)).Shapes(), (layout.Shapes{layout.Wide: wide, layout.Narrow: narrow}); got != want {
		t.Errorf("kept is %+v, want %+v", got, want)
	}
	left, err := os.ReadDir(string(l))
	if err != nil || len(left) != 2 {
		t.Errorf("the folder has %d files (%v), want 2", len(left), err)
	}
}

func TestGarbageIsAsAtFirst(t *testing.T) {
	l := Layout(t.TempDir())
	for _, tt := range []struct {
		text string
		want layout.Shape
	}{
		{"", layout.Shape{}},
		{"\x00\xff{", layout.Shape{}},
		{`["left"]`, layout.Shape{}},
		{`{"left":"much"}`, layout.Shape{}},
		{`{"left":-7,"strip":99999999,"preset":"upside down"}`, layout.Shape{Left: 300, Strip: 700}},
		{`{"left":99999999999999999999}`, layout.Shape{}},
		{strings.Repeat(" ", 1<<20) + `{"left":400}`, layout.Shape{}},
	} {
		must.OK(t, os.WriteFile(filepath.Join(string(l), "wide"), []byte(tt.text), 0o600))
		if got := l.Shapes()[layout.Wide]; got != tt.want {
			t.Errorf("%.40q is %+v, want %+v", tt.text, got, tt.want)
		}
	}
	must.OK(t, os.Remove(filepath.Join(string(l), "wide")))
	must.OK(t, os.Mkdir(filepath.Join(string(l), "wide"), 0o700))
	if got := l.Shapes()[layout.Wide]; got != (layout.Shape{}) {
		t.Errorf("a folder is %+v", got)
	}
	if err := l.Keep(layout.Wide, layout.Shape{Left: 400}); err == nil {
		t.Error("a folder was written over")
	}
}

// Whoever reads while others write has one of their texts whole.
func TestWritersAtOnce(t *testing.T) {
	f := Folder(t.TempDir())
	var writers sync.WaitGroup
	texts := []string{strings.Repeat("a", 3000), strings.Repeat("b", 2000)}
	for _, text := range texts {
		writers.Go(func() {
			for range 100 {
				if err := f.Write("x", text); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 200 {
		if got := f.Read("x"); got != "" && got != texts[0] && got != texts[1] {
			t.Fatalf("read %d bytes of neither", len(got))
		}
	}
	writers.Wait()
}

func TestNamesThatLeaveTheFolder(t *testing.T) {
	f := Folder(t.TempDir())
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden"} {
		if err := f.Write(name, "x"); err == nil {
			t.Errorf("%q was written", name)
		}
		if got := f.Read(name); got != "" {
			t.Errorf("%q is read as %q", name, got)
		}
	}
}

// What isn't a file is nothing, and has nobody wait.
func TestOnlyFilesAreRead(t *testing.T) {
	f := Folder(t.TempDir())
	pipe := filepath.Join(string(f), "pipe")
	must.OK(t, syscall.Mkfifo(pipe, 0o600), os.Mkdir(filepath.Join(string(f), "folder"), 0o700))
	w, err := os.OpenFile(pipe, os.O_RDWR, 0)
	must.OK(t, err)
	defer w.Close()
	if _, err := w.WriteString(strings.Repeat("x", most)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "folder"} {
		if got := f.Read(name); got != "" {
			t.Errorf("the %s has %q", name, got[:1])
		}
	}
}
