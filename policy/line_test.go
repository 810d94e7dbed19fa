package policy

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
	"pgregory.net/rapid"

	"stepbox/session/e2e/must"
)

func TestLine(t *testing.T) {
	for _, c := range []struct {
		argv []string
		want string
	}{
		{nil, ""},
		{[]string{""}, "''"},
		{[]string{"go", "test", "./..."}, "go test ./..."},
		{[]string{"git", "commit", "-m", "it's done"}, `git commit -m 'it'\''s done'`},
		{[]string{"echo", "$HOME", "*", "~", "a;b", "#x", "{a,b}", "!1"}, `echo '$HOME' '*' '~' 'a;b' '#x' '{a,b}' '!1'`},
		{[]string{"find", ".", "-exec", "rm", "{}", ";"}, `find . -exec rm {} ';'`},
		{[]string{"A=b", "A=b"}, `'A=b' A=b`},
		{[]string{"if", "if"}, `'if' if`},
		{[]string{"=ls"}, `'=ls'`},
		{[]string{"ls", "grün", "日本"}, "ls grün 日本"},
		{[]string{"ls", "a\tb\nc"}, `ls $'a\tb\nc'`},
		{[]string{"ls", "a\u202eb"}, `ls $'a\xe2\x80\xaeb'`},                     // reads backwards
		{[]string{"ls", "a\u200bb"}, `ls $'a\xe2\x80\x8bb'`},                     // takes no space
		{[]string{"rm", "-rf\u00a0."}, `rm $'-rf\xc2\xa0.'`},                     // looks like two words
		{[]string{"ls", "a\xff\x1b[2Jb"}, `ls $'a\xff\x1b[2Jb'`},                 // isn't UTF-8; clears the screen
		{[]string{"ls", "\x01f'\\"}, `ls $'\x01f\'\\'`},                          // not \x1f
		{[]string{"ls", "e\u0301", "\u3164"}, `ls $'e\xcc\x81' $'\xe3\x85\xa4'`}, // combining; blank letter
	} {
		if got := Line(c.argv); got != c.want {
			t.Errorf("Line(%q) = %s, want %s", c.argv, got, c.want)
		}
	}
}

var argument = rapid.Custom(func(t *rapid.T) string {
	var s string
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		s = rapid.String().Draw(t, "text")
	case 1:
		s = string(rapid.SliceOfN(rapid.ByteRange(1, 255), 0, 12).Draw(t, "bytes"))
	case 2:
		s = rapid.StringOfN(rapid.RuneFrom([]rune("abx1=+'\"\\$`*?[]{}~!#&|;<>()^%@ \t\n\r-\u202e\u200b\u00a0é")), 0, 8, -1).Draw(t, "signs")
	default:
		s = rapid.SampledFrom([]string{"if", "time", "export", "declare", "[[", "{", "}", "!", "coproc", "function", "let", "a=b", "a[1]=2", "-x", "--", "@test", "case", "esac", "foo()", "<(x)", "select", "a+=b"}).Draw(t, "word")
	}
	return strings.ReplaceAll(s, "\x00", "") // no argument has one
})

// parsed reads a line as a shell does, and fails unless it is one plain command.
func parsed(line string) ([]string, bool) {
	f, err := syntax.NewParser().Parse(strings.NewReader(line), "")
	if err != nil || len(f.Stmts) != 1 {
		return nil, false
	}
	st := f.Stmts[0]
	c, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(c.Assigns) > 0 || len(st.Redirs) > 0 || st.Negated || st.Background {
		return nil, false
	}
	var out []string
	for _, w := range c.Args {
		fields, err := expand.Fields(&expand.Config{}, w)
		if err != nil || len(fields) != 1 {
			return nil, false
		}
		out = append(out, fields[0])
	}
	return out, true
}

func TestLineRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		argv := rapid.SliceOfN(argument, 1, 5).Draw(t, "argv")
		l := Line(argv)
		if got, ok := parsed(l); !ok || !slices.Equal(got, argv) {
			t.Fatalf("%q became %q", argv, got)
		}
		// Our own reading of a script agrees.
		f, err := syntax.NewParser().Parse(strings.NewReader(l), "")
		must.OK(t, err)
		r := reader{home: "/home/me"}
		for i, w := range f.Stmts[0].Cmd.(*syntax.CallExpr).Args {
			if got := r.word(w); !got.known() || got.text != argv[i] {
				t.Fatalf("%q was read as %+v", argv[i], got)
			}
		}
		for _, c := range l {
			if !seen(c) {
				t.Fatalf("%q shows %U", l, c)
			}
		}
	})
}

// The real shell has the last word.
func TestLineInBash(t *testing.T) {
	var want [][]byte
	var script strings.Builder
	rapid.Check(t, func(t *rapid.T) {
		argv := rapid.SliceOfN(argument, 0, 4).Draw(t, "argv")
		script.WriteString(Line(append([]string{"printf", `%s\0`, "|"}, argv...)) + "\n")
		for _, a := range append([]string{"|"}, argv...) {
			want = append(want, []byte(a))
		}
	})
	cmd := exec.CommandContext(t.Context(), "bash", "--norc", "-s")
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot run bash: %v", err)
	}
	got := bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0})
	if !slices.EqualFunc(got, want, bytes.Equal) {
		for i := range want {
			if i >= len(got) || !bytes.Equal(got[i], want[i]) {
				t.Fatalf("bash read %q as %q", want[i], got[min(i, len(got)-1)])
			}
		}
		t.Fatalf("%d words became %d", len(want), len(got))
	}
}

func FuzzLine(f *testing.F) {
	f.Add("rm", "-rf \u202e .")
	f.Add("a=b", "\xff'\\")
	f.Fuzz(func(t *testing.T, a, b string) {
		argv := []string{strings.ReplaceAll(a, "\x00", ""), strings.ReplaceAll(b, "\x00", "")}
		if got, ok := parsed(Line(argv)); !ok || !slices.Equal(got, argv) {
			t.Fatalf("%q became %q", argv, got)
		}
	})
}
