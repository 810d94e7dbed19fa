package syntax

import (
	"strings"
	"testing"

	"stepbox/themes"
)

func TestLines(t *testing.T) {
	const k, s, c, n, w, p = themes.SyntaxKeyword, themes.SyntaxString, themes.SyntaxComment, themes.SyntaxNumber, themes.SyntaxName, themes.Text
	for _, tt := range []struct {
		file  string
		lines []string
		want  []themes.Token // of the last line
	}{
		{"a.go", []string{`return f(1) // x`}, []themes.Token{k, p, w, p, n, p, c}},
		{"a.go", []string{`/* one`, `two */ x`}, []themes.Token{c, p}},
		{"a.go", []string{"`raw", "end` + 1"}, []themes.Token{s, p, n}},
		{"a.py", []string{`"""doc`, `more`}, []themes.Token{s}},
		{"a.sh", []string{`if test "$x" # y`}, []themes.Token{k, p, k, p, s, p, c}},
		{"a.yaml", []string{`key: true # c`}, []themes.Token{w, p, k, p, c}},
		{"a.json", []string{`{"a": null}`}, []themes.Token{p, s, p, k, p}},
		{"Makefile", []string{`all: x`}, []themes.Token{w, p}},
		{"a.unknown", []string{`return`}, []themes.Token{p}},
		{"a.go", []string{`"a\"b" + 'c`}, []themes.Token{s, p, s}},
	} {
		sc := For(tt.file)
		var got []Span
		for _, l := range tt.lines {
			got = sc.Line(l)
		}
		var kinds []themes.Token
		for _, g := range got {
			kinds = append(kinds, g.Kind)
		}
		if len(kinds) != len(tt.want) {
			t.Errorf("%s %q: %q is %v, want %v", tt.file, tt.lines, got, kinds, tt.want)
			continue
		}
		for i := range kinds {
			if kinds[i] != tt.want[i] {
				t.Errorf("%s %q: %q is %v, want %v", tt.file, tt.lines, got, kinds, tt.want)
				break
			}
		}
	}
}

func TestEveryLanguageExists(t *testing.T) {
	for ending, name := range endings {
		if languages()[name] == nil {
			t.Errorf(".%s is %s, which isn't there", ending, name)
		}
	}
	for _, f := range []string{"Dockerfile", "Makefile", "go.mod", "x/y/Dockerfile.dev"} {
		if !For(f).Known() {
			t.Errorf("%s isn't known", f)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a.go", "/* \"x ` ' // \xff\x00\n\tfunc Ab1(")
	f.Add("b.py", `'''"""#`)
	f.Fuzz(func(t *testing.T, name, text string) {
		s := For(name)
		for l := range strings.SplitSeq(text, "\n") {
			joined := ""
			for _, sp := range s.Line(l) {
				joined += sp.Text
			}
			if joined != l {
				t.Fatalf("%q became %q", l, joined)
			}
		}
	})
}
