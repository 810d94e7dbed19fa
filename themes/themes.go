// Package themes provides what the terminal interface looks like: named tokens,
// each with colours and weight, read from theme files.
//
// Four themes are embedded (dark, light, contrast and plain); files of the same
// form in a person's own folder are read on request. A theme must set every
// token and nothing else, so that a file that reads without error is whole.
//
// Nothing happens when the package is initialised: the same binary is executed
// several times for each sandbox, and those executions would pay for it. Values
// are read-only once made and safe to share between goroutines. Theme files are
// trusted to be clumsy, not hostile: they come from the person.
package themes

import (
	"bytes"
	"embed"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

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
	sort.Strings(out)
	return out
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
	if name == "" || strings.ContainsAny(name, `/\`) || strings.HasPrefix(name, ".") {
		return nil, fmt.Errorf("cannot load theme %q: a theme's name is a file name without its ending", name)
	}
	if dir != "" {
		file := filepath.Join(dir, name+".yaml")
		data, err := os.ReadFile(file)
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

// Choose names the theme to use: what the person wants when that isn't empty,
// plain when NO_COLOR is set (see no-color.org: any value but the empty one) or
// the terminal has few colours, else the one for the terminal's background.
func Choose(wanted string, dark, few bool, getenv func(string) string) string {
	switch {
	case wanted != "" && wanted != "auto":
		return wanted
	case few || getenv("NO_COLOR") != "" || getenv("TERM") == "dumb":
		return "plain"
	case dark:
		return "dark"
	}
	return "light"
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

// Parse reads a theme file. Unknown keys, unknown tokens, missing tokens and
// colours that aren't #rrggbb or a name of the file's own colors are errors.
func Parse(name string, data []byte) (*Theme, error) {
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

// color resolves a colour's name or #rrggbb; the empty string is the terminal's own.
func (f *file) color(s string) (color.Color, error) {
	if s == "" {
		return nil, nil
	}
	if named, ok := f.Colors[s]; ok {
		s = named
	}
	if len(s) != 7 || s[0] != '#' {
		return nil, fmt.Errorf("%q is neither #rrggbb nor one of the file's colors", s)
	}
	v, err := strconv.ParseUint(s[1:], 16, 32)
	if err != nil {
		return nil, fmt.Errorf("%q is neither #rrggbb nor one of the file's colors", s)
	}
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}, nil
}
