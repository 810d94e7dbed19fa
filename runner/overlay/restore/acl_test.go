package restore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/manifest"
)

// An access list for somebody whom the sandbox doesn't know stays on what is only changed,
// whatever the agent made of the mode. Where the file is made anew that is said.
func TestListOfAStranger(t *testing.T) {
	list := append([]byte(nil), aclV2...)
	list[16] = 99 // a user that isn't mapped
	s := newSession(t, startHelper(t), os.TempDir(), func(lower string) {
		for _, name := range []string{"chmodded", "written", "gone"} {
			at := filepath.Join(lower, name)
			must(t, os.WriteFile(at, []byte("text"), 0o600), unix.Setxattr(at, manifest.ACLAccess, list, 0))
		}
	})
	defer s.close()
	before, at := s.capture(), s.scan()
	s.agent(mutation{Op: "chmod", Pick: 0, Path: "chmodded", N: 0o600}, mutation{Op: "append", Path: "written", Data: []byte("more")})
	s.restore(at, Options{})
	if d := compareTrees(before, s.capture()); d != "" {
		t.Errorf("it isn't as it was:\n%s", d)
	}
	s.agent(mutation{Op: "remove", Path: "gone"})
	p, err := NewPlan(bg, s.lower, s.scan(), at, Options{})
	if err != nil || len(p.Problems) != 1 || p.Problems[0].Path != "gone" || !strings.Contains(p.Problems[0].Text, "access list") {
		t.Errorf("%v: said is %q", err, p.Problems)
	}
}
