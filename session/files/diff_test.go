package files

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

func TestHunksAreMinimal(t *testing.T) {
	var before, after strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&before, "line %d\n", i)
		if i >= 10000 && i < 10600 && i%10 == 0 {
			fmt.Fprintf(&after, "changed %d\n", i)
			continue
		}
		fmt.Fprintf(&after, "line %d\n", i)
	}
	hs, added, removed, err := Hunks(before.String(), after.String())
	must.OK(t, err)
	if added != 60 || removed != 60 || len(hs) != 60 {
		t.Errorf("%d hunks, +%d −%d; want 60, +60 −60", len(hs), added, removed)
	}
}

// The hunks, written as a patch with the lines of both texts, are what git apply
// takes and makes the new text of.
func TestGitAppliesHunks(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git isn't installed")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	line := rapid.SampledFrom([]string{
		"a\n", "b\n", "\n", "func f() {\n", "\treturn\n", "}\n", "crlf\r\n", "\r\n", "größe\n", "\x1b[2J\u202e\n", "-- x\n", "++ y\n", "\\ No newline\n",
		strings.Repeat("huge", 2000) + "\n", strings.Repeat("huge", 2000) + "!\n",
	})
	git := func(t *rapid.T, input string, args ...string) {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(input)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s\n%s", args, err, out, input)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		before := strings.Join(rapid.SliceOfN(line, 1, 40).Draw(t, "before"), "")
		lines := slices.Collect(strings.Lines(before))
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			at := rapid.IntRange(0, len(lines)).Draw(t, "at")
			to := min(len(lines), at+rapid.IntRange(0, 4).Draw(t, "removed"))
			lines = slices.Replace(lines, at, to, rapid.SliceOfN(line, 0, 4).Draw(t, "added")...)
		}
		after := strings.Join(lines, "")
		if rapid.Bool().Draw(t, "before ends without a newline") {
			before = strings.TrimSuffix(before, "\n")
		}
		if rapid.Bool().Draw(t, "after ends without a newline") {
			after = strings.TrimSuffix(after, "\n")
		}
		if before == "" || after == "" || before == after {
			return // of a file that is made or deleted, or stays, git wants other headers
		}
		hs, added, removed, err := Hunks(before, after)
		must.OK(t, err)
		old, text := slices.Collect(strings.Lines(before)), slices.Collect(strings.Lines(after))
		patch := "--- a/file\n+++ b/file\n"
		for _, h := range hs {
			patch += fmt.Sprintf("@@ -%d,%d +%d,%d @@\n", h.OldLine, h.OldCount, h.NewLine, h.NewCount)
			o, n := h.OldLine-1, h.NewLine-1
			if h.OldCount == 0 {
				o++
			}
			if h.NewCount == 0 {
				n++
			}
			for _, l := range h.Lines {
				is := ""
				switch l.Op {
				case "-":
					is, o, removed = old[o], o+1, removed-1
				case "+":
					is, n, added = text[n], n+1, added-1
				default:
					is, o, n = old[o], o+1, n+1
				}
				if l.Text != api.EscapeLine(is) || l.NoEnd == strings.HasSuffix(is, "\n") {
					t.Fatalf("%+v stands for %q", l, is)
				}
				if patch += l.Op + is; l.NoEnd {
					patch += "\n\\ No newline at end of file\n"
				}
			}
		}
		if added != 0 || removed != 0 {
			t.Fatalf("%d more lines were added and %d removed than the hunks have", added, removed)
		}
		must.OK(t, os.WriteFile(file, []byte(before), 0o600))
		git(t, patch, "apply", "--whitespace=nowarn", "-")
		if got, err := os.ReadFile(file); err != nil || string(got) != after {
			t.Fatalf("git made %q (%v), want %q", got, err, after)
		}
	})
}

func TestHunksOfNothing(t *testing.T) {
	for _, tt := range []struct{ before, after, want string }{
		{"", "a\nb\n", "-0,0 +1,2"}, {"a\nb\n", "", "-1,2 +0,0"}, {"a\n", "a\n", ""}, {"", "", ""}, {"a\n", "b\n", "-1,1 +1,1"},
	} {
		hs, _, _, err := Hunks(tt.before, tt.after)
		got := ""
		for _, h := range hs {
			got += fmt.Sprintf("-%d,%d +%d,%d", h.OldLine, h.OldCount, h.NewLine, h.NewCount)
		}
		if err != nil || got != tt.want {
			t.Errorf("%q and %q have %q (%v), want %q", tt.before, tt.after, got, err, tt.want)
		}
	}
}

func TestHunksOfHostileText(t *testing.T) {
	hs, _, _, err := Hunks("one\n", "one\n\ttwo\x1b[2J\u202e\n")
	must.OK(t, err)
	if got, want := hs[0].Lines[1].Text, "\ttwo\\x1b[2J\\u202e"; got != want {
		t.Errorf("line is %q, want %q", got, want)
	}
}
