package rules

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stepbox/policy"
	"stepbox/session/api"
)

// allowed says whether a rule alone allows a command, as one that nothing else would.
func allowed(t interface{ Fatalf(string, ...any) }, text string, argv []string) bool {
	l, err := Layer("made", []api.Rule{command(api.Allow, text)})
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return (&policy.Policy{}).With(l).Command(policy.Command{Argv: argv}).Layer == "made"
}

// The rule for exactly a command is about no other.
func TestExactly(t *testing.T) {
	for _, words := range [][]string{
		{"prog", "host", "echo rm -rf /srv/data"}, {"prog", "a|b", "*", "**", "?", "[a]", "<secret>", `\`, `it's "x"`}, {"a b|c", "é ü"},
	} {
		text, ok := Exactly(words)
		if !ok || !allowed(t, text, words) {
			t.Errorf("%q is no rule for %q", text, words)
		}
	}
	text, _ := Exactly([]string{"prog", "host", "echo rm -rf /srv/data"})
	for _, other := range []string{"echo;rm -rf /srv/data", "echo\nrm -rf /srv/data", "echo&rm -rf /srv/data", "echo|rm -rf /srv/data", "echo\trm -rf /srv/data"} {
		if allowed(t, text, []string{"prog", "host", other}) {
			t.Errorf("%q is also about %q", text, other)
		}
	}
	for _, words := range [][]string{{"prog", ""}, {"prog", "a\nb"}, {"prog", "a\x00"}, {"prog", "a\xff"}, {"prog", "a\u00a0b"}, {"prog", "a\u200bb"}} {
		if text, ok := Exactly(words); ok {
			t.Errorf("%q is offered for %q", text, words)
		}
	}
}

// Whatever the words, the rule is about them and about nothing that differs.
func TestExactlyIsExact(t *testing.T) {
	char := rapid.OneOf(rapid.SampledFrom([]rune(` |\\*?[]!^-<>'"$;&~#=x`)), rapid.SampledFrom([]rune("a\n\t\r\x7f\u00a0é漢")), rapid.Rune().Filter(func(r rune) bool { return r != 0 }))
	word := rapid.StringOfN(char, 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		argv := append([]string{"prog"}, rapid.SliceOfN(word, 0, 4).Draw(t, "arguments")...)
		text, ok := Exactly(argv)
		if !ok {
			if !slices.ContainsFunc(argv, func(w string) bool { return w == "" || CheckText(w) != nil }) {
				t.Fatalf("none for %q", argv)
			}
			return
		}
		checked, err := Checked(command(api.Allow, text))
		if err != nil || checked.Command != text || !allowed(t, text, argv) {
			t.Fatalf("%q isn't about %q: %+v, %v", text, argv, checked, err)
		}
		if e := example(text); !slices.Equal(e, argv) {
			t.Fatalf("the example of %q is %q", text, e)
		}
		other := slices.Clone(argv)
		i := rapid.IntRange(0, len(other)).Draw(t, "at")
		switch w := word.Draw(t, "other"); {
		case i == len(other):
			other = append(other, w)
		case i == 0:
			other = slices.Insert(other, 1, w)
		case rapid.Bool().Draw(t, "one character"):
			rs := []rune(other[i])
			rs[rapid.IntRange(0, len(rs)-1).Draw(t, "of")] = char.Draw(t, "to")
			other[i] = string(rs)
		case strings.Contains(other[i], " "): // as a shell would have it without quotes
			other = slices.Concat(other[:i], strings.Split(other[i], " "), other[i+1:])
		default:
			other[i] = w
		}
		if !slices.Equal(other, argv) && allowed(t, text, other) {
			t.Fatalf("%q, for %q, is also about %q", text, argv, other)
		}
	})
}

// A denial of exactly a command is about it, whatever its words are.
func TestDeniedExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		program := rapid.SampledFrom([]string{"tool", "./tool", "/usr/bin/tool", "git", "curl", "npm", "kubectl", "env", "tool-x", "git-push", "bash", "find", "python3"})
		word := rapid.SampledFrom([]string{"a", "push", "-x", "-xy", "-X", "-XPOST", "-C", "--to", "--to=a", "--to=", "--", "-", "-=", "--=", "-n5", "*", "?", "[a]", "a|b", "<wide>", "a b", `\`, "=", "x=y", "+x", "/", ".", "..", "./a", "-a=b", "~", "{}", ";", "$x", "'", "#", "é", "-é", "!", "-c", "-m", "exec", "-exec", "http://x/?a=b&c"})
		words := append([]string{program.Draw(t, "program")}, rapid.SliceOfN(word, 0, 6).Draw(t, "words")...)
		text, ok := Exactly(words)
		if !ok {
			t.Skip()
		}
		l, err := Layer("user", []api.Rule{{Verdict: api.Deny, Command: text}})
		if err != nil {
			t.Fatalf("%q isn't a rule: %v", text, err)
		}
		for _, argv := range [][]string{words, {"sh", "-c", policy.Line(words)}} {
			if j := policy.Of(l).Command(policy.Command{Argv: argv, Cwd: "/p", Project: "/p", Home: "/h"}); j.Verdict != policy.Deny {
				t.Fatalf("deny %s: %q: %s", text, argv, j.Verdict)
			}
		}
	})
}
