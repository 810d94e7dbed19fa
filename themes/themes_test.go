package themes

import (
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEmbeddedThemesAreWhole(t *testing.T) {
	names := Names()
	for _, want := range []string{"dark", "light", "contrast", "plain"} {
		if !strings.Contains(strings.Join(names, " "), want) {
			t.Errorf("theme %q isn't embedded: %v", want, names)
		}
	}
	for _, name := range names {
		if _, err := Load(name, ""); err != nil {
			t.Error(err)
		}
	}
}

func TestPlainHasNoColour(t *testing.T) {
	plain, err := Load("plain", "")
	if err != nil {
		t.Fatal(err)
	}
	if plain.Coloured() {
		t.Error("the plain theme uses a colour")
	}
}

// Text has to be legible on each background a theme is made for, and on its
// own surfaces: WCAG 2.2 asks 4.5:1 of text and 3:1 of what isn't read.
func TestContrast(t *testing.T) {
	least := map[Token]float64{
		Border: 1.5, Faint: 3, KeyOff: 3, // may be overlooked
	}
	onSurface := []Token{Surface, SurfaceMuted, SurfaceBorder, Key, Hint, OK, Fail, Denied, Held, Warn, Info, Undone, AddedWord, RemovedWord, Strong, Muted, Running}
	onDiff := []Token{Text, SyntaxKeyword, SyntaxString, SyntaxComment, SyntaxNumber, SyntaxName}
	onRow := []Token{OK, Fail, Denied, Held, Running, Undone, Muted, AddedWord, RemovedWord}
	for _, name := range Names() {
		th, err := Load(name, "")
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, fg, bg color.Color, want float64) {
			t.Helper()
			if fg == nil || bg == nil {
				return
			}
			if got := ratio(fg, bg); got < want {
				t.Errorf("theme %s: %s has a contrast of %.2f, want %.1f", name, what, got, want)
			}
		}
		for _, canvas := range th.Canvas {
			for k := Token(0); k < Count; k++ {
				s := th.Style(k)
				bg := s.Bg
				if bg == nil {
					bg = canvas
				}
				want := 4.5
				if w, ok := least[k]; ok {
					want = w
				}
				check(k.String(), s.Fg, bg, want)
			}
		}
		for _, k := range onSurface {
			check(k.String()+" on surface", th.Style(k).Fg, th.Style(Surface).Bg, 4.5)
			check(k.String()+" on inset", th.Style(k).Fg, th.Style(Inset).Bg, 4.5)
		}
		for _, k := range onDiff {
			check(k.String()+" on added", th.Style(k).Fg, th.Style(Added).Bg, 4.5)
			check(k.String()+" on removed", th.Style(k).Fg, th.Style(Removed).Bg, 4.5)
		}
		if name == "contrast" {
			continue // its rows are drawn in one colour
		}
		for _, k := range onRow {
			check(k.String()+" on selected", th.Style(k).Fg, th.Style(Selected).Bg, 3.9)
			check(k.String()+" on selected_idle", th.Style(k).Fg, th.Style(SelectedIdle).Bg, 4.5)
		}
	}
}

// ratio is the contrast of two colours as WCAG 2.2 defines it.
func ratio(a, b color.Color) float64 {
	la, lb := luminance(a), luminance(b)
	if la < lb {
		la, lb = lb, la
	}
	return (la + 0.05) / (lb + 0.05)
}

func luminance(c color.Color) float64 {
	r, g, b, _ := c.RGBA()
	lin := func(v uint32) float64 {
		s := float64(v) / 0xffff
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*lin(r) + 0.7152*lin(g) + 0.0722*lin(b)
}

func TestParseRefuses(t *testing.T) {
	good, err := embedded.ReadFile("dark.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, from, to, want string }{
		{"unknown key", "dark: true", "dark: true\nshade: 1", "shade"},
		{"unknown token", "  text: {fg: snow}", "  text: {fg: snow}\n  texture: {}", `no token "texture"`},
		{"missing token", "  text: {fg: snow}\n", "", `"text" is missing`},
		{"unknown colour", "  text: {fg: snow}", "  text: {fg: snowy}", "snowy"},
		{"short colour", `snow: "#e6e9ef"`, `snow: "#eee"`, "#eee"},
		{"no hex", `snow: "#e6e9ef"`, `snow: "#zzzzzz"`, "#zzzzzz"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			changed := strings.Replace(string(good), tt.from, tt.to, 1)
			if changed == string(good) {
				t.Fatal("nothing was changed")
			}
			_, err := Parse("x", []byte(changed))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error that names %q", err, tt.want)
			}
		})
	}
}

func TestLoadOwnThemeFirst(t *testing.T) {
	dir := t.TempDir()
	data, err := embedded.ReadFile("plain.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "dark.yaml"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	th, err := Load("dark", dir)
	if err != nil {
		t.Fatal(err)
	}
	if th.Coloured() {
		t.Error("the embedded theme was loaded instead of the person's own")
	}
	for _, name := range []string{"", "../dark", ".dark", "none"} {
		if _, err := Load(name, dir); err == nil {
			t.Errorf("theme %q was loaded", name)
		}
	}
}

func TestChoose(t *testing.T) {
	env := func(kv ...string) func(string) string {
		return func(k string) string {
			for i := 0; i+1 < len(kv); i += 2 {
				if kv[i] == k {
					return kv[i+1]
				}
			}
			return ""
		}
	}
	for _, tt := range []struct {
		name, wanted string
		dark, few    bool
		env          func(string) string
		want         string
	}{
		{"dark terminal", "", true, false, env(), "dark"},
		{"light terminal", "", false, false, env(), "light"},
		{"auto", "auto", false, false, env(), "light"},
		{"no colour", "", true, false, env("NO_COLOR", "1"), "plain"},
		{"empty NO_COLOR counts as unset", "", true, false, env("NO_COLOR", ""), "dark"},
		{"dumb terminal", "", true, false, env("TERM", "dumb"), "plain"},
		{"sixteen colours", "", true, true, env(), "plain"},
		{"a wish wins", "contrast", true, false, env("NO_COLOR", "1"), "contrast"},
	} {
		if got := Choose(tt.wanted, tt.dark, tt.few, tt.env); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range Names() {
		data, err := embedded.ReadFile(name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		if th, err := Parse("x", data); err == nil {
			th.Style(Text)
		}
	})
}

// Coloured says whether the theme uses any colour.
func (t *Theme) Coloured() bool {
	for _, s := range t.styles {
		if s.Fg != nil || s.Bg != nil {
			return true
		}
	}
	return false
}
