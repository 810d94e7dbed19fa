package api

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"stepbox/session/e2e/must"
)

func TestEscape(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "go test ./... é 漢 🙂", "go test ./... é 漢 🙂"},
		{"tab hides what follows", "ls\t\t\trm", `ls\t\t\trm`},
		{"newline", "a\nb", `a\nb`},
		{"carriage return overwrites", "rm -rf /\rls", `rm -rf /\rls`},
		{"terminal escape", "\x1b[2Jx", `\x1b[2Jx`},
		{"C1 control", "\u009b2J", `\u009b2J`},
		{"right-to-left override", "a\u202eb", `a\u202eb`},
		{"zero width", "a\u200bb", `a\u200bb`},
		{"tag characters", "a\U000e0041b", `a\U000e0041b`},
		{"no-break space", "a\u00a0b", `a\u00a0b`},
		{"hangul filler", "a\u3164b", `a\u3164b`},
		{"combining mark", "e\u0301", `e\u0301`},
		{"not UTF-8", "a\xffb", `a\xffb`},
		{"a real replacement character", "\ufffd", "\ufffd"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Escape(tt.in); got != tt.want {
				t.Errorf("Escape(%q) = %q, want %q", tt.in, got, tt.want)
			}
			if got := Unclear(tt.in); got != (tt.in != tt.want) {
				t.Errorf("Unclear(%q) = %v", tt.in, got)
			}
		})
	}
}

// A command's line breaks can be told from what was typed.
func TestEscapeScript(t *testing.T) {
	for in, want := range map[string]string{
		"ls":                    "ls",
		"printf 'a\\n'\nls\x1b": `printf 'a\n'↵ls\x1b`,
		"a ↵ b":                 `a \u21b5 b`,
	} {
		if got := EscapeScript(in); got != want {
			t.Errorf("EscapeScript(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("ls\x1b[0m\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		e := Escape(s)
		if !utf8.ValidString(e) || strings.ContainsAny(e, "\n\r\t\x1b\x00") {
			t.Fatalf("Escape(%q) = %q", s, e)
		}
		if Escape(e) != e {
			t.Fatalf("escaping twice changes %q", e)
		}
	})
}

// Escaped JSON is the same value, and shows what it says.
func TestEscapeJSON(t *testing.T) {
	hostile := "a\u009b31m\u202eb\u200bc\u00add\U000e0041\u007f\u2028é漢\x1b]0;x\a \xff <&>\u3000"
	for _, v := range []any{hostile, map[string]any{hostile: []string{hostile}}, 1.5, nil, "plain"} {
		b, err := json.Marshal(v)
		must.OK(t, err)
		got := EscapeJSON(append(b, '\n'))
		if s := strings.TrimSuffix(string(got), "\n"); Unclear(s) {
			t.Errorf("it still has %s", Escape(s))
		}
		var was, is any
		if json.Unmarshal(b, &was) != nil || json.Unmarshal(got, &is) != nil || !reflect.DeepEqual(was, is) {
			t.Errorf("%s became %s", b, got)
		}
	}
}
