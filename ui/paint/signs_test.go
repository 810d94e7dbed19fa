package paint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/e2e/must"
)

// Each sign that the screens draw has its counterpart: it is found in the program's own
// text, comments apart.
func TestEverySignHasACounterpart(t *testing.T) {
	comment := regexp.MustCompile(`(?m)//.*$`)
	known := "▁▂▃▄▅▆▇╭╮╰╯┏┓┗┛┃" // by what draws them
	for _, s := range plainly {
		known += s[0]
	}
	err := filepath.WalkDir("..", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() && e.Name() == "cli" {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, r := range comment.ReplaceAllString(string(text), "") {
			if r > 0x7e && !strings.ContainsRune(known, r) {
				t.Errorf("%s has %q, for which ASCII has nothing", path, r)
			}
		}
		return nil
	})
	must.OK(t, err)
	for _, s := range plainly {
		if !ascii(s[ASCII]) || !ascii(s[Words]) || s[ASCII] == "" {
			t.Errorf("%q is %q and %q", s[0], s[ASCII], s[Words])
		}
	}
}

func TestSigns(t *testing.T) {
	for _, tt := range []struct{ text, ascii, words string }{
		{"✗", "x", ""}, {"✗ x", "x x", "x"}, {"◆ 2 held", "* 2 held", "2 held"}, {"a · b", "a - b", "a, b"},
		{"✓ approved", "+ approved", "approved"}, {"⚠ 2 warnings", "! 2 warnings", "warning: 2 warnings"}, {"⠋ wait", "* wait", "* wait"}, {"none", "none", "none"},
	} {
		for way, want := range map[Signs]string{Unicode: tt.text, ASCII: tt.ascii, Words: tt.words} {
			dst := Screen{ScreenBuffer: uv.NewScreenBuffer(30, 1), Signs: way}
			end := Text(dst, 0, 0, 30, tt.text, uv.Style{})
			if got := strings.TrimRight(dst.Render(), " "); got != want {
				t.Errorf("%q is %q, want %q", tt.text, got, want)
			} else if w := Width(dst, tt.text); w != end {
				t.Errorf("%q takes %d columns, measured as %d", tt.text, end, w)
			}
		}
	}
}

// What the agent wrote isn't drawn as a sign of ours, nor as what stands for one.
func TestSpelled(t *testing.T) {
	dst := Screen{ScreenBuffer: uv.NewScreenBuffer(60, 1), Signs: ASCII}
	if got, want := shown(dst, Clean(Spelled(dst, "git push —force › é"))), `git push \u2014force \u203a é`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
