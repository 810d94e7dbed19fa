package merge

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"pgregory.net/rapid"
)

// common is the length of the longest list of lines that two texts have in order.
func common(a, b []string) int {
	best := make([][]int, len(a)+1)
	best[len(a)] = make([]int, len(b)+1)
	for i := len(a) - 1; i >= 0; i-- {
		best[i] = make([]int, len(b)+1)
		for j := len(b) - 1; j >= 0; j-- {
			if best[i][j] = max(best[i+1][j], best[i][j+1]); a[i] == b[j] {
				best[i][j] = best[i+1][j+1] + 1
			}
		}
	}
	return best[0][0]
}

// split gives a text's lines, each with its newline.
func split(text string) (out []string) {
	for line := range strings.Lines(text) {
		out = append(out, line)
	}
	return out
}

// The edits turn one text into the other, and no others do with fewer lines.
func TestEditsAreTheFewest(t *testing.T) {
	line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "\tindented\n", "d\r\n", "e\r\n", "long" + strings.Repeat("x", 3000) + "\n"})
	rapid.Check(t, func(t *rapid.T) {
		gen := func(name string) string {
			s := strings.Join(rapid.SliceOfN(line, 0, 30).Draw(t, name), "")
			if rapid.Bool().Draw(t, name+" without a last newline") {
				s = strings.TrimSuffix(s, "\n")
			}
			return s
		}
		before, after := gen("before"), gen("after")
		edits, exact := Compare(before, after)
		if got, err := udiff.Apply(before, edits); err != nil || got != after || !exact {
			t.Fatalf("the edits %v of %q and %q give %q, %v, exact: %v", edits, before, after, got, err, exact)
		}
		changed := 0
		for i, e := range edits {
			changed += len(split(before[e.Start:e.End])) + len(split(e.New))
			if i > 0 && edits[i-1].End >= e.Start {
				t.Fatalf("the edits %v touch", edits)
			}
		}
		a, b := split(before), split(after)
		if want := len(a) + len(b) - 2*common(a, b); changed != want {
			t.Fatalf("%d lines of %q and %q differ, want %d", changed, before, after, want)
		}
	})
}

// What can't be compared in the time that there is, is one edit, and says so; it
// is the same whenever it is asked for.
func TestTooDifferent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		var b strings.Builder
		b.WriteString("first\n")
		for range 60_000 {
			fmt.Fprintf(&b, "line %d\n", r.IntN(9000))
		}
		return b.String()
	}
	before, after := text(), text()
	edits, exact := Compare(before, after)
	if exact || len(edits) != 1 || edits[0].Start != len("first\n") || edits[0].End != len(before) {
		t.Errorf("exact: %v, %d edits", exact, len(edits))
	}
	if got, err := udiff.Apply(before, edits); err != nil || got != after {
		t.Errorf("it isn't the other text (%v)", err)
	}
	if edits, exact = Compare(strings.Repeat("x\n", 80_000), strings.Repeat("y\n", 80_000)); !exact || len(edits) != 1 {
		t.Errorf("texts without a common line: exact %v, %d edits", exact, len(edits))
	}
}

// A run of lines that may begin at several places begins where a reader expects it.
func TestRunsBeginWhereAReaderExpectsThem(t *testing.T) {
	const one, two, three = "func one() {\n\treturn\n}\n", "func two() {\n\treturn\n}\n", "func three() {\n\treturn\n}\n"
	for _, tt := range []struct{ name, before, after, want string }{
		{"a function between others", one + "\n" + three, one + "\n" + two + "\n" + three, two + "\n"},
		{"a function at the end", one + "\n" + three, one + "\n" + three + "\n" + two, "\n" + two},
		{"an item of a list", "a:\n- x: 1\n  y: 2\n- x: 3\n  y: 2\n", "a:\n- x: 1\n  y: 2\n- x: 5\n  y: 2\n- x: 3\n  y: 2\n", "- x: 5\n  y: 2\n"},
	} {
		edits := Edits(tt.before, tt.after)
		if len(edits) != 1 || edits[0].New != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, edits, tt.want)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 4))
	lines := make([]string, 20_000)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d of %d\n", i, r.IntN(4000))
	}
	before := strings.Join(lines, "")
	for _, n := range []int{1, 40, 400, 4000} {
		changed := append([]string(nil), lines...)
		for range n {
			changed[r.IntN(len(changed))] = lines[r.IntN(len(lines))]
		}
		after := strings.Join(changed, "")
		b.Run(fmt.Sprintf("changed=%d", n), func(b *testing.B) {
			for b.Loop() {
				Edits(before, after)
			}
		})
	}
	shuffled := append([]string(nil), lines...)
	r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	after := strings.Join(shuffled, "")
	b.Run("shuffled", func(b *testing.B) {
		for b.Loop() {
			Edits(before, after)
		}
	})
}
