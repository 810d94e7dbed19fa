package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestUsageIsWhatIsTaken: each command takes as many arguments as its usage line
// says, and the help prints that line as it stands.
func TestUsageIsWhatIsTaken(t *testing.T) {
	for _, cmd := range command().Commands() {
		t.Run(cmd.Name(), func(t *testing.T) {
			least, most, ok := arity(cmd)
			if !ok {
				t.Skip("it takes any command line")
			}
			if cmd.Args == nil {
				t.Fatal("it takes whatever it gets")
			}
			for n := 0; n <= most+1; n++ {
				err := cmd.Args(cmd, make([]string, n))
				if (err == nil) != (n >= least && n <= most) {
					t.Errorf("%q with %d arguments: %v", cmd.Use, n, err)
				}
			}
			var out bytes.Buffer
			cmd.SetOut(&out)
			if err := cmd.Help(); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "stepbox "+cmd.Use) || strings.Contains(out.String(), "\x1b") {
				t.Errorf("the help doesn't have %q as it is:\n%s", cmd.Use, out.String())
			}
		})
	}
}

// arity reads a usage line: ARGUMENTs and [OPTIONAL] ones, in order. A flag that
// has to be given stands there with its value.
func arity(cmd *cobra.Command) (least, most int, ok bool) {
	flag := false
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if flag {
			flag = false
			continue
		}
		switch {
		case strings.HasPrefix(word, "--"):
			flag = true
		case strings.Contains(word, "..."), word == "[flags]", word == "[command]":
			return 0, 0, false
		case strings.HasPrefix(word, "["):
			most++
		default:
			least, most = least+1, most+1
		}
	}
	return least, most, true
}

// TestBuildWithoutCgo: where there is no C compiler, the build stops at a line
// that says what is needed rather than at what is missing somewhere below.
func TestBuildWithoutCgo(t *testing.T) {
	if os.Getenv(asUser) != "" {
		t.Skip("the sources are read by the one who can")
	}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{.GoFiles}} {{.Error}}", "./runner/box")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "nocgo.go") || strings.Contains(string(out), "libcontainer/nsenter") {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	text, err := os.ReadFile("runner/box/nocgo.go")
	if err != nil || !strings.Contains(string(text), "needs_cgo") {
		t.Errorf("what the build stops at says %q, %v", text, err)
	}
}
