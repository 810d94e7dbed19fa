package e2e

import (
	"debug/buildinfo"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

var update = flag.Bool("update", false, "rewrite the list of what initialises itself")

// most is what the initialisers of one of our packages may allocate. What needs
// more is made when it is first used.
const most = 8 << 10

// TestInitialisers: a session starts with five processes of this program, and
// each runs the initialisers of all its packages. The list has the modules that
// have some, with their versions, because a new version may do more: one of
// go-runewidth's cost 40 ms. Whoever changes the list looks at how long
// `GODEBUG=inittrace=1 stepbox version` says that they take, then runs this test
// with -update.
func TestInitialisers(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), program, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := buildinfo.ReadFile(program)
	must.OK(t, err)
	found := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		var pkg string
		var at, took float64
		var bytes, allocs int
		if n, _ := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes, %d allocs", &pkg, &at, &took, &bytes, &allocs); n != 5 {
			continue
		}
		if strings.HasPrefix(pkg, "stepbox/") && bytes > most {
			t.Errorf("%s allocates %d bytes before main runs: more than %d", pkg, bytes, most)
		}
		for _, m := range info.Deps {
			if pkg == m.Path || strings.HasPrefix(pkg, m.Path+"/") {
				found[m.Path+" "+m.Version] = true
			}
		}
	}
	var list []string
	for m := range found {
		list = append(list, m+"\n")
	}
	slices.Sort(list)
	got := strings.Join(list, "")
	file := filepath.Join("testdata", "initialisers.txt")
	if *update {
		must.OK(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	must.OK(t, err)
	if got != string(want) {
		t.Errorf("other modules initialise themselves than in %s; now it is\n%s", file, got)
	}
}
