// Package themes provides what the terminal interface looks like: named tokens,
// each with colours and weight, read from theme files.
//
// Some are embedded; files of the same form in a person's own folder are read on
// request. A theme must set every token and nothing else, so that a file that reads
// without error is whole.
//
// Nothing happens when the package is initialised: the same binary is executed
// several times for each sandbox, and those executions would pay for it. Values
// are read-only once made and safe to share between goroutines. Theme files come from
// the person, or from whoever gave them one: what isn't a small file of text is refused.
package themes

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/goccy/go-yaml"
)

//go:embed *.yaml
var embedded embed.FS

// Style is how one token is drawn. A nil colour is the terminal's own.
type Style struct {
	Fg, Bg                         color.Color
	Fg256, Bg256                   uint8 // the 256-colour palette's entry to use instead; 0 for the nearest
	Bold, Faint, Italic, Underline bool
	Reverse, Strike                bool
}

// Theme is a whole set of styles.
type Theme struct {
	Name   string
	Dark   bool          // made for dark backgrounds
	Canvas []color.Color // backgrounds that it has to be legible on; never painted
	styles [Count]Style
}

// Style returns a token's style; an unknown token has the style of Text.
func (t *Theme) Style(k Token) Style {
	if k < 0 || k >= Count {
		k = Text
	}
	return t.styles[k]
}

// Names lists the embedded themes.
func Names() []string {
	entries, err := embedded.ReadDir(".")
	if err != nil {
		return nil // an embedded folder can always be read
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return out
}

// All lists the embedded themes and those in a folder of the person's own, by name.
func All(dir string) []string {
	out := Names()
	files, _ := filepath.Glob(filepath.Join(dir, "*.yaml")) // none where there is no such folder
	for _, f := range files[:min(len(files), mostFiles)] {
		if name := strings.TrimSuffix(filepath.Base(f), ".yaml"); IsName(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// IsName says whether a theme can have that name: one that is safe in a path and on a screen.
func IsName(s string) bool {
	return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}

// Dir is the folder of a person's own themes, or "" when there is no home.
func Dir() string {
	config, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(config, "stepbox", "themes")
}

// Load reads the theme with that name: from dir when it is there (and dir isn't
// empty), else one of the embedded ones.
func Load(name, dir string) (*Theme, error) {
	if !IsName(name) {
		return nil, fmt.Errorf("cannot load theme %.80q: a theme's name has letters, digits, - and _ alone", name)
	}
	if dir != "" {
		data, err := read(filepath.Join(dir, name+".yaml"))
		if err == nil {
			return Parse(name, data)
		}
		if !os.IsNotExist(err) {
			return nil, fmt.Errorf("cannot read theme %q: %w", name, err)
		}
	}
	data, err := embedded.ReadFile(name + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("cannot find theme %q: there are %s", name, strings.Join(Names(), ", "))
	}
	return Parse(name, data)
}

// Bounds of a folder of themes, and of a file there.
const (
	mostFiles = 200
	mostBytes = 64 << 10
)

// read reads a small file of text. What else has its name, as a pipe, has nobody wait.
func read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.New("it isn't a file that can be read")
	}
	data, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > mostBytes:
		return nil, fmt.Errorf("it has more than %d KiB, which no theme has", mostBytes>>10)
	case !utf8.Valid(data):
		return nil, errors.New("it isn't text in UTF-8")
	}
	return data, nil
}

// Screen is what a theme is chosen for.
type Screen struct {
	Dark    bool // its background is
	Sixteen bool // it has few colours
	None    bool // it has no colours
}

// Dark guesses whether the background of a terminal that doesn't tell is dark, from
// COLORFGBG, as rxvt and Konsole set it: the colours of text and background, 0 to 15.
func Dark(getenv func(string) string) bool {
	_, ground, _ := strings.Cut(getenv("COLORFGBG"), ";")
	ground = ground[strings.LastIndexByte(ground, ';')+1:] // rxvt has an image's in between
	n, err := strconv.Atoi(ground)
	return err != nil || n != 7 && (n < 9 || n > 15)
}

// Choose names the theme to use: what the person wants when that isn't empty, in its
// form for light backgrounds where there is one; plain when NO_COLOR is set (see
// no-color.org: any value but the empty one) or there are no colours; the terminal's own
// sixteen when it has no more, in their form for its background; else the one for the terminal's background.
func Choose(wanted string, s Screen, getenv func(string) string) string {
	switch {
	case wanted != "" && wanted != "auto":
	case s.None || getenv("NO_COLOR") != "" || getenv("TERM") == "dumb":
		return "plain"
	case s.Sixteen:
		wanted = "terminal"
	case s.Dark:
		return "dark"
	default:
		return "light"
	}
	if light := wanted + "-light"; !s.Dark && slices.Contains(Names(), light) {
		return light
	}
	return wanted
}

// file is the form of a theme file.
type file struct {
	Dark   bool                 `yaml:"dark"`
	Canvas []string             `yaml:"canvas"`
	Colors map[string]string    `yaml:"colors"`
	Tokens map[string]fileStyle `yaml:"tokens"`
}

type fileStyle struct {
	Fg        string `yaml:"fg"`
	Bg        string `yaml:"bg"`
	Fg256     uint8  `yaml:"fg256"`
	Bg256     uint8  `yaml:"bg256"`
	Bold      bool   `yaml:"bold"`
	Faint     bool   `yaml:"faint"`
	Italic    bool   `yaml:"italic"`
	Underline bool   `yaml:"underline"`
	Reverse   bool   `yaml:"reverse"`
	Strike    bool   `yaml:"strike"`
}

// Parse reads a theme file. Unknown keys, unknown tokens, missing tokens and colours
// that aren't #rrggbb, 0 to 15 or a name of the file's own colors are errors.
func Parse(name string, data []byte) (_ *Theme, err error) {
	defer func() { // the library may panic on what nobody writes
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot read theme %q: it can't be read as YAML", name)
		}
	}()
	if err := simple(data); err != nil {
		return nil, fmt.Errorf("cannot read theme %q: %w", name, err)
	}
	var f file
	dec := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf("cannot read theme %q: %w", name, err)
	}
	t := &Theme{Name: name, Dark: f.Dark}
	for _, c := range f.Canvas {
		parsed, err := f.color(c)
		if err != nil || parsed == nil {
			return nil, fmt.Errorf("cannot read theme %q: canvas %q is no colour", name, c)
		}
		t.Canvas = append(t.Canvas, parsed)
	}
	known := make(map[string]Token, Count)
	for k := Token(0); k < Count; k++ {
		known[k.String()] = k
		if _, ok := f.Tokens[k.String()]; !ok {
			return nil, fmt.Errorf("cannot read theme %q: token %q is missing", name, k)
		}
	}
	for token, s := range f.Tokens {
		k, ok := known[token]
		if !ok {
			return nil, fmt.Errorf("cannot read theme %q: there is no token %q", name, token)
		}
		fg, err := f.color(s.Fg)
		if err != nil {
			return nil, fmt.Errorf("cannot read theme %q: token %q: %w", name, token, err)
		}
		bg, err := f.color(s.Bg)
		if err != nil {
			return nil, fmt.Errorf("cannot read theme %q: token %q: %w", name, token, err)
		}
		t.styles[k] = Style{
			Fg: fg, Bg: bg, Fg256: s.Fg256, Bg256: s.Bg256, Bold: s.Bold, Faint: s.Faint, Italic: s.Italic,
			Underline: s.Underline, Reverse: s.Reverse, Strike: s.Strike,
		}
	}
	return t, nil
}

// simple says whether a file is written as themes are, without what can make the
// library read for hours: anchors, and brackets or dashes deep in each other.
func simple(data []byte) error {
	depth := 0
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte("#")) {
			continue
		}
		for _, c := range line {
			switch c {
			case '&', '*', '!', '?', '|', '>':
				return fmt.Errorf("%q isn't taken in a theme", c)
			case '[', '{':
				depth++
			case ']', '}':
				depth--
			}
			if depth > deepest {
				return errors.New("its brackets are too deep")
			}
		}
		if bytes.Contains(line, []byte("- -")) || bytes.Contains(line, []byte("-\t")) {
			return errors.New("a list in a list isn't taken in a theme")
		}
	}
	return nil
}

// deepest is how deep brackets are in each other in a theme.
const deepest = 4

// color resolves a colour's name, #rrggbb, or one of the terminal's own sixteen by its
// number; the empty string is the terminal's own.
func (f *file) color(s string) (color.Color, error) {
	if s == "" {
		return nil, nil
	}
	if named, ok := f.Colors[s]; ok {
		s = named
	}
	if n, err := strconv.ParseUint(s, 10, 4); err == nil {
		return ansi.BasicColor(n), nil
	}
	v, err := strconv.ParseUint(strings.TrimPrefix(s, "#"), 16, 32)
	if err != nil || len(s) != 7 || s[0] != '#' {
		return nil, fmt.Errorf("%.40q is none of #rrggbb, 0 to 15 and the file's colors", s)
	}
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}, nil
}
