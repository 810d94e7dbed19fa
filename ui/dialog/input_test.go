package dialog

import (
	"strings"
	"testing"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/e2e/must"
	"stepbox/themes"
	"stepbox/ui/internal/cellstest"
	"stepbox/ui/paint"
)

func typed(l *Line, text string) {
	for _, r := range text {
		l.Type(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

func TestLineIsEdited(t *testing.T) {
	l := NewLine(100)
	typed(&l, "use the tool")
	for _, tt := range []struct {
		key  tea.KeyPressMsg
		want string
	}{
		{tea.KeyPressMsg{Code: 'w', Mod: tea.ModCtrl}, "use the "},
		{tea.KeyPressMsg{Code: tea.KeyBackspace}, "use the"},
		{tea.KeyPressMsg{Code: tea.KeyHome}, "use the"},
		{tea.KeyPressMsg{Code: tea.KeyDelete}, "se the"},
		{tea.KeyPressMsg{Code: 'U', Text: "U", Mod: tea.ModShift}, "Use the"},
		{tea.KeyPressMsg{Code: 'x', Text: "x", Mod: tea.ModAlt}, "Use the"},
		{tea.KeyPressMsg{Code: 'v', Mod: tea.ModCtrl}, "Use the"},
		{tea.KeyPressMsg{Code: 'e', Mod: tea.ModCtrl}, "Use the"},
		{tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl}, ""},
	} {
		if l.Type(tt.key); l.Value() != tt.want {
			t.Errorf("after %s: %q, want %q", tt.key, l.Value(), tt.want)
		}
	}
}

// The server takes so many bytes of a reason, and no half of a character; what
// could deceive is in the line as the escape that is seen of it.
func TestLineIsBoundedAndClean(t *testing.T) {
	l := NewLine(20)
	l.Insert("a\r\nb\tc\x1b[2J\u202e")
	if got, want := l.Value(), `a b c\x1b[2J\u202e`; got != want {
		t.Errorf("pasted %q, want %q", got, want)
	}
	l = NewLine(10)
	l.Insert(strings.Repeat("ü", 100))
	typed(&l, "ü")
	l.Type(tea.KeyPressMsg{Code: tea.KeyHome})
	l.Insert("xyz")
	if v := l.Value(); len(v) != 10 || !utf8.ValidString(v) {
		t.Errorf("the line has %d bytes: %q", len(v), v)
	}
}

// Whatever is typed or pasted, the line stays in its row and its cursor in sight.
func FuzzLine(f *testing.F) {
	f.Add("a 日本\x1b]0;x\a", 3, 12)
	f.Add(strings.Repeat("e\u0301👩‍👩‍👧", 30), 2, 40)
	th, err := themes.Load("plain", "")
	must.OK(f, err)
	f.Fuzz(func(t *testing.T, text string, back, width int) {
		width = 4 + max(0, width%100)
		l := NewLine(200)
		l.Insert(text)
		for range back % 50 {
			l.Type(tea.KeyPressMsg{Code: tea.KeyLeft})
		}
		b := uv.NewScreenBuffer(width, 1)
		c := l.Draw(paint.Frame{Screen: b, P: paint.NewPalette(th, 0)}, 0, 0, width, "empty")
		if c.X < 1 || c.X >= width || c.Y != 0 {
			t.Errorf("the cursor is at %d of %d", c.X, width)
		}
		cellstest.Check(t, b, uv.Rect(0, 0, width, 1))
	})
}
