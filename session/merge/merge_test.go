package merge

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"pgregory.net/rapid"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

func TestEditsTurnOneTextIntoTheOther(t *testing.T) {
	line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "longer line\n"})
	rapid.Check(t, func(t *rapid.T) {
		gen := func(name string) string {
			s := strings.Join(rapid.SliceOfN(line, 0, 40).Draw(t, name), "")
			if rapid.Bool().Draw(t, name+" without a last newline") {
				s = strings.TrimSuffix(s, "\n")
			}
			return s
		}
		before, after := gen("before"), gen("after")
		got, err := udiff.Apply(before, Edits(before, after))
		if err != nil || got != after {
			t.Fatalf("Edits(%q, %q) give %q, %v", before, after, got, err)
		}
	})
}

func TestThree(t *testing.T) {
	const base = "1\n2\n3\n4\n5\n"
	for _, tt := range []struct {
		name, base, there, wanted string
		merged                    string // "" for a clash
		clashes                   []api.Clash
	}{
		{name: "apart", base: base, there: "one\n2\n3\n4\n5\n", wanted: "1\n2\n3\nfour\n5\n", merged: "one\n2\n3\nfour\n5\n"},
		{name: "same", base: base, there: "1\n2\nx\n4\n5\n", wanted: "1\n2\nx\n4\n5\n", merged: "1\n2\nx\n4\n5\n"},
		{
			name: "adjacent", base: base, there: "1\nx\n3\n4\n5\n", wanted: "1\n2\ny\n4\n5\n",
			clashes: []api.Clash{{Line: 2, Base: []string{"2", "3"}, There: []string{"x", "3"}, Wanted: []string{"2", "y"}}},
		},
		{
			name: "two clashes", base: base, there: "0\na\n2\n3\n4\nb\n", wanted: "c\n2\n3\n4\nd\n",
			clashes: []api.Clash{
				{Line: 1, Base: []string{"1"}, There: []string{"0", "a"}, Wanted: []string{"c"}},
				{Line: 6, Base: []string{"5"}, There: []string{"b"}, Wanted: []string{"d"}},
			},
		},
		{name: "carriage returns", base: "1\r\n2\r\n3\r\n", there: "a\r\n2\r\n3\r\n", wanted: "1\r\n2\r\nb\r\n", merged: "a\r\n2\r\nb\r\n"},
		{name: "no newline at the end", base: "1\n2\n3", there: "a\n2\n3", wanted: "1\n2\n3\n", merged: "a\n2\n3\n"},
		{
			name: "a newline at the end against a change", base: "1\n2", there: "1\nx", wanted: "1\n2\n",
			clashes: []api.Clash{{Line: 2, Base: []string{"2"}, There: []string{"x"}, Wanted: []string{"2"}}},
		},
		{
			name: "both made it", there: "a\n", wanted: "b\n",
			clashes: []api.Clash{{Line: 1, There: []string{"a"}, Wanted: []string{"b"}}},
		},
		{
			name: "hostile lines", base: "1\n", there: "\x1b[2J\t2\n", wanted: "\u202e\n",
			clashes: []api.Clash{{Line: 1, Base: []string{"1"}, There: []string{"\\x1b[2J\t2"}, Wanted: []string{"\\u202e"}}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Three([]byte(tt.base), []byte(tt.there), []byte(tt.wanted))
			if r.Why != "" || r.Clean != (tt.clashes == nil) || string(r.Text) != tt.merged {
				t.Errorf("clean is %v, %q, the text %q", r.Clean, r.Why, r.Text)
			}
			if fmt.Sprint(r.Clashes) != fmt.Sprint(tt.clashes) {
				t.Errorf("the clashes are %v\nwant %v", r.Clashes, tt.clashes)
			}
		})
	}
}

func TestWhatIsNotMerged(t *testing.T) {
	many := func(text string) []byte { return []byte(strings.Repeat(text, 3*maxClashes)) }
	for name, in := range map[string][3][]byte{
		"binary":                 {[]byte("a\n"), []byte("a\x00\n"), []byte("b\n")},
		"too large to be merged": {nil, make([]byte, maxBytes+1), nil},
		"too different":          {many("1\n2\n3\n"), many("a\n2\n3\n"), many("b\n2\n3\n")},
	} {
		r := Three(in[0], in[1], in[2])
		if r.Why != name || r.Clean || r.Text != nil || r.Clashes != nil {
			t.Errorf("%s: %q, clean %v, %d clashes", name, r.Why, r.Clean, len(r.Clashes))
		}
		if _, err := r.Resolve(nil); !stands(err, api.CodeInvalid) {
			t.Errorf("%s: it resolves to %v", name, err)
		}
	}
}

func stands(err error, code string) bool {
	var p *api.Problem
	return errors.As(err, &p) && p.Code == code
}

// three draws a text and two changes of it. Lines of the base are mostly unlike
// each other, so that there is one way to compare them.
func three(t *rapid.T) (base, there, wanted string) {
	var lines []string
	for i := range rapid.IntRange(0, 24).Draw(t, "lines") {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")
	change := func(name string) string {
		out := slices.Clone(lines)
		for range rapid.IntRange(0, 4).Draw(t, name) {
			at := rapid.IntRange(0, len(out)).Draw(t, "at")
			to := min(at+rapid.IntRange(0, 3).Draw(t, "removed"), len(out))
			var add []string
			for range rapid.IntRange(0, 2).Draw(t, "added") {
				add = append(add, rapid.SampledFrom([]string{"x", "y", "", "new\x1b"}).Draw(t, "line"))
			}
			out = slices.Replace(out, at, to, add...)
		}
		s := strings.Join(append(out, ""), end)
		if rapid.IntRange(0, 5).Draw(t, "cut") == 0 {
			s = strings.TrimSuffix(s, end)
		}
		return s
	}
	return strings.Join(append(slices.Clone(lines), ""), end), change("there"), change("wanted")
}

// gitMerge is what git makes of it, in a folder for its files.
func gitMerge(dir, base, there, wanted string) (clean bool, text string, err error) {
	args := []string{"merge-file", "-p"}
	for _, f := range [][2]string{{"there", there}, {"base", base}, {"wanted", wanted}} {
		path := filepath.Join(dir, f[0])
		if err := os.WriteFile(path, []byte(f[1]), 0o600); err != nil {
			return false, "", err
		}
		args = append(args, path)
	}
	out, err := exec.Command("git", args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() < 128 {
		return false, "", nil // that many conflicts
	}
	return err == nil, string(out), err
}

// TestMergeIsGits compares with git merge-file. More cases with -rapid.checks.
func TestMergeIsGits(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here to compare with")
	}
	dir := t.TempDir()
	merged, clashed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		base, there, wanted := three(t)
		r := Three([]byte(base), []byte(there), []byte(wanted))
		clean, text, err := gitMerge(dir, base, there, wanted)
		must.OK(t, err)
		if r.Clean != clean || clean && string(r.Text) != text {
			t.Fatalf("%q to %q and %q:\nclean %v %q, %v\ngit   %v %q", base, there, wanted, r.Clean, r.Text, r.Clashes, clean, text)
		}
		if clean {
			merged++
		} else {
			clashed++
		}
	})
	if checks := flag.Lookup("rapid.checks").Value.String(); merged == 0 || clashed == 0 {
		t.Errorf("of %s cases %d merged and %d clashed", checks, merged, clashed)
	}
}

// laws hold for whatever three texts.
func laws(t interface{ Fatalf(string, ...any) }, base, there, wanted []byte) {
	r := Three(base, there, wanted)
	back := Three(base, wanted, there)
	if r.Why != back.Why || r.Clean != back.Clean || string(r.Text) != string(back.Text) || len(r.Clashes) != len(back.Clashes) {
		t.Fatalf("the sides of %q and %q of %q make a difference", there, wanted, base)
	}
	if r.Why != "" {
		return
	}
	for _, same := range []struct{ there, wanted, text []byte }{{there, base, there}, {base, wanted, wanted}, {there, there, there}} {
		if r := Three(base, same.there, same.wanted); !r.Clean || string(r.Text) != string(same.text) {
			t.Fatalf("%q to %q and %q gives %q, clean %v, %q", base, same.there, same.wanted, r.Text, r.Clean, r.Why)
		}
	}
	// A clash resolved one way everywhere has that side's change and all that doesn't clash.
	for _, side := range []api.Way{api.WayThere, api.WayWanted} {
		sides := slices.Repeat([]api.Way{side}, len(r.Clashes))
		text, err := r.Resolve(sides)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if r.Clean && string(text) != string(r.Text) {
			t.Fatalf("%q resolves to %q", r.Text, text)
		}
	}
	if _, err := r.Resolve(make([]api.Way, len(r.Clashes)+1)); !stands(err, api.CodeInvalid) {
		t.Fatalf("too many sides: %v", err)
	}
}

func TestLaws(t *testing.T) {
	line := rapid.SampledFrom([]string{"a\n", "b\n", "\n", "a", "\r\n"})
	rapid.Check(t, func(t *rapid.T) {
		gen := func(name string) []byte {
			return []byte(strings.Join(rapid.SliceOfN(line, 0, 20).Draw(t, name), ""))
		}
		laws(t, gen("base"), gen("there"), gen("wanted"))
	})
}

func FuzzThree(f *testing.F) {
	f.Add([]byte("1\n2\n3\n"), []byte("a\n2\n3\n"), []byte("1\n2\nb"))
	f.Add([]byte(""), []byte("\x00"), []byte("\xff\n\r"))
	f.Fuzz(func(t *testing.T, base, there, wanted []byte) { laws(t, base, there, wanted) })
}

// TestHostileTextsTakeBoundedTime: texts at the bounds, unlike each other in
// every line or nearly so, are merged or refused without much memory.
func TestHostileTextsTakeBoundedTime(t *testing.T) {
	text := func(line func(i int) string) []byte {
		var b []byte
		for i := 0; len(b) < maxBytes-20; i++ {
			b = append(b, line(i)...)
		}
		return b
	}
	a := text(func(i int) string { return fmt.Sprintln(i) })
	b := text(func(i int) string { return fmt.Sprintln(i * 7919 % 1000003) })
	c := text(func(int) string { return "\n" })
	for _, in := range [][3][]byte{{a, b, c}, {c, a, b}, {nil, a, b}, {c, append([]byte("x"), c...), c[1:]}} {
		if r := Three(in[0], in[1], in[2]); r.Why == "" && r.Clean == (len(r.Clashes) > 0) {
			t.Error("it is neither clean nor has clashes")
		}
	}
}

// hunked is a difference's hunks as a person sees them, without context lines.
func hunked(before, after string) []api.Hunk {
	var out []api.Hunk
	shift := 0
	for _, e := range joined(Edits(before, after)) {
		h := api.Hunk{OldLine: strings.Count(before[:e.Start], "\n") + 1, OldCount: len(lines(before[e.Start:e.End])), NewCount: len(lines(e.New))}
		h.NewLine = h.OldLine + shift
		shift += h.NewCount - h.OldCount
		if h.OldCount == 0 {
			h.OldLine--
		}
		if h.NewCount == 0 {
			h.NewLine--
		}
		out = append(out, h)
	}
	return out
}

// TestPickAndDrop: what is picked and what is left out make up the whole.
func TestPickAndDrop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after, _ := three(t)
		hs := hunked(before, after)
		var some, rest []int
		for i := range hs {
			if rapid.Bool().Draw(t, "chosen") {
				some = append(some, i)
			} else {
				rest = append(rest, i)
			}
		}
		picked, err := Pick([]byte(before), []byte(after), hs, some)
		must.OK(t, err)
		dropped, err := Drop([]byte(before), []byte(after), hs, rest)
		if err != nil || string(dropped) != string(picked) {
			t.Fatalf("%q picked, %q left, %v", picked, dropped, err)
		}
		if len(rest) == 0 && string(picked) != after || len(some) == 0 && string(picked) != before {
			t.Fatalf("%v of %q to %q is %q", some, before, after, picked)
		}
		if len(some) == 1 { // by hand: what is before and after it, with its own lines
			e := joined(Edits(before, after))[some[0]]
			if want := before[:e.Start] + e.New + before[e.End:]; string(picked) != want {
				t.Fatalf("hunk %d of %q to %q gives %q, want %q", some[0], before, after, picked, want)
			}
		}
	})
	if _, err := Pick(nil, nil, nil, []int{0}); !stands(err, api.CodeInvalid) {
		t.Errorf("a hunk that isn't there: %v", err)
	}
	if _, err := Pick(nil, nil, []api.Hunk{{OldLine: 5, OldCount: 2, NewLine: 1, NewCount: 1}}, []int{0}); err == nil {
		t.Error("a hunk of other texts was taken")
	}
}
