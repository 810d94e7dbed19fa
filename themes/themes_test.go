package themes

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"stepbox/session/e2e/must"
)

func TestEmbeddedThemesAreWhole(t *testing.T) {
	names := Names()
	for _, want := range []string{"dark", "light", "contrast", "deuteranopia", "tritanopia", "terminal", "plain"} {
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
	must.OK(t, err)
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
		must.OK(t, err)
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
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}

func linear(v uint32) float64 {
	s := float64(v) / 0xffff
	if s <= 0.04045 {
		return s / 12.92
	}
	return math.Pow((s+0.055)/1.055, 2.4)
}

func TestParseRefuses(t *testing.T) {
	good, err := embedded.ReadFile("dark.yaml")
	must.OK(t, err)
	for _, tt := range []struct{ name, from, to, want string }{
		{"unknown key", "dark: true", "dark: true\nshade: 1", "shade"},
		{"unknown token", "  text: {fg: snow}", "  text: {fg: snow}\n  texture: {}", `no token "texture"`},
		{"missing token", "  text: {fg: snow}\n", "", `"text" is missing`},
		{"unknown colour", "  text: {fg: snow}", "  text: {fg: snowy}", "snowy"},
		{"short colour", `snow: "#e6e9ef"`, `snow: "#eee"`, "#eee"},
		{"no hex", `snow: "#e6e9ef"`, `snow: "#zzzzzz"`, "#zzzzzz"},
		{"no such number", `snow: "#e6e9ef"`, `snow: "16"`, "16"},
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
	must.OK(t, err)
	must.OK(t, os.WriteFile(filepath.Join(dir, "dark.yaml"), data, 0o600))
	th, err := Load("dark", dir)
	must.OK(t, err)
	if th.Coloured() {
		t.Error("the embedded theme was loaded instead of the person's own")
	}
	for _, name := range []string{"", "../dark", ".dark", "none", "a/b", "a\x1b[2J", "a.b", strings.Repeat("a", 65)} {
		if _, err := Load(name, dir); err == nil {
			t.Errorf("theme %q was loaded", name)
		}
	}
}

func TestDark(t *testing.T) {
	for set, want := range map[string]bool{
		"": true, "garbage": true, "15": true, // says nothing
		"15;0": true, "7;8": true, "15;default;0": true, "15;default": true, "12;-1": true, "0;99": true,
		"0;15": false, "0;7": false, "0;default;15": false, "8;11": false,
	} {
		if got := Dark(func(string) string { return set }); got != want {
			t.Errorf("with COLORFGBG=%s the background is dark: %v", set, got)
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
		on           Screen
		env          func(string) string
		want         string
	}{
		{"dark terminal", "", Screen{Dark: true}, env(), "dark"},
		{"light terminal", "", Screen{}, env(), "light"},
		{"auto", "auto", Screen{}, env(), "light"},
		{"no colour", "", Screen{Dark: true}, env("NO_COLOR", "1"), "plain"},
		{"empty NO_COLOR counts as unset", "", Screen{Dark: true}, env("NO_COLOR", ""), "dark"},
		{"dumb terminal", "", Screen{Dark: true}, env("TERM", "dumb"), "plain"},
		{"a terminal without colours", "", Screen{Dark: true, None: true}, env(), "plain"},
		{"sixteen colours", "", Screen{Sixteen: true, Dark: true}, env(), "terminal"},
		{"sixteen on a light background", "", Screen{Sixteen: true}, env(), "terminal-light"},
		{"no theme of the name", "mine", Screen{}, env(), "mine"},
		{"a wish wins", "contrast", Screen{None: true}, env("NO_COLOR", "1"), "contrast"},
		{"a wish with two forms", "tritanopia", Screen{Dark: true}, env(), "tritanopia"},
		{"the one for light backgrounds", "tritanopia", Screen{}, env(), "tritanopia-light"},
	} {
		if got := Choose(tt.wanted, tt.on, tt.env); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// Whatever lies in the folder of themes, it is an error that can be shown, and soon.
func TestGarbage(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name+".yaml") }
	bomb := "colors:\n  a0: &a0 [x, x]\n"
	for i := range 40 {
		bomb += fmt.Sprintf("  a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	for name, data := range map[string]string{
		"binary": "\x00\xff\xfe", "large": strings.Repeat("dark: true # \n", 1<<19), "deep": strings.Repeat("[", 60<<10),
		"maps": strings.Repeat("{a: ", 10<<10), "bomb": bomb, "escapes": "dark: \"\\e[2J\"\n", "empty": "", "tabs": "\t\t:", "self": "a: &a [*a]",
		"dashes": strings.Repeat("- ", 30<<10),
	} {
		must.OK(t, os.WriteFile(at(name), []byte(data), 0o600))
	}
	for name, err := range map[string]error{
		"pipe": syscall.Mkfifo(at("pipe"), 0o600), "folder": os.Mkdir(at("folder"), 0o700), "loop": os.Symlink(at("loop"), at("loop")),
		"zero": os.Symlink("/dev/zero", at("zero")),
	} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	must.OK(t, os.WriteFile(at("a\x1b[2J"), nil, 0o600))
	for _, name := range All(dir) {
		if _, err := Load(name, dir); err == nil && !slices.Contains(Names(), name) {
			t.Errorf("%s was taken for a theme", name)
		} else if strings.Contains(name, "\x1b") {
			t.Errorf("%q is listed", name)
		}
	}
}

// States have to be told apart by their colours alone by those for whom a theme is made.
func TestColourBlind(t *testing.T) {
	// Machado, Oliveira and Fernandes (2009), at full severity, on linear light.
	deficits := map[string][9]float64{
		"protanopia":   {0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998},
		"deuteranopia": {0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881},
		"tritanopia":   {1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900},
	}
	states := []Token{OK, Fail, Held, Undone}
	for name, eyes := range map[string][]string{
		"deuteranopia": {"protanopia", "deuteranopia"}, "deuteranopia-light": {"protanopia", "deuteranopia"},
		"tritanopia": {"tritanopia"}, "tritanopia-light": {"tritanopia"},
	} {
		th, err := Load(name, "")
		must.OK(t, err)
		for _, eye := range eyes {
			check := func(what string, a, b color.Color, least float64) {
				if got := apart(a, b, deficits[eye]); got < least {
					t.Errorf("theme %s, %s: %s are %.0f apart, want %.0f", name, eye, what, got, least)
				}
			}
			for i, a := range states {
				for _, b := range states[:i] {
					check(fmt.Sprint(a, " and ", b), th.Style(a).Fg, th.Style(b).Fg, 20)
				}
			}
			check("added and removed lines", th.Style(Added).Bg, th.Style(Removed).Bg, 12)
			check("added and removed marks", th.Style(AddedMark).Bg, th.Style(RemovedMark).Bg, 20)
		}
	}
}

// apart is how far two colours are from each other in CIELAB, as such eyes see them.
func apart(a, b color.Color, deficit [9]float64) float64 {
	x, y := lab(a, deficit), lab(b, deficit)
	return math.Hypot(math.Hypot(x[0]-y[0], x[1]-y[1]), x[2]-y[2])
}

func lab(c color.Color, m [9]float64) [3]float64 {
	r, g, b, _ := c.RGBA()
	l := [3]float64{linear(r), linear(g), linear(b)}
	var s [3]float64
	for i := range s {
		s[i] = max(0, min(1, m[3*i]*l[0]+m[3*i+1]*l[1]+m[3*i+2]*l[2]))
	}
	f := func(t float64) float64 {
		if t > 0.008856 {
			return math.Cbrt(t)
		}
		return 7.787*t + 16.0/116
	}
	x, y, z := f((0.4124*s[0]+0.3576*s[1]+0.1805*s[2])/0.95047), f(0.2126*s[0]+0.7152*s[1]+0.0722*s[2]), f((0.0193*s[0]+0.1192*s[1]+0.9505*s[2])/1.08883)
	return [3]float64{116*y - 16, 500 * (x - y), 200 * (y - z)}
}

func FuzzParse(f *testing.F) {
	for _, name := range Names() {
		data, err := embedded.ReadFile(name + ".yaml")
		must.OK(f, err)
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
