package restore

import (
	"fmt"
	"os"
	"testing"

	"stepbox/runner/overlay/scan"
)

// A file with ten thousand names comes back with all of them, as
// one file.
func TestManyLinks(t *testing.T) {
	const names = 10_000
	s := newSession(t, startHelper(t), os.TempDir(), nil)
	defer s.close()
	empty := s.scan()
	muts := []mutation{{Op: "mkdir", Path: "d"}, {Op: "write", Path: "f", Data: []byte("one content")}}
	for i := range names - 1 {
		muts = append(muts, mutation{Op: "link", Path: "f", To: fmt.Sprintf("d/%d", i)})
	}
	s.agent(muts...)
	many, st := scanWith(t, s.scanner, scan.Options{})
	if many.Len() != names+1 || len(st.Problems) > 0 {
		t.Fatalf("%d entries, problems %q", many.Len(), st.Problems)
	}
	s.restore(empty, Options{})
	if got := s.scan().Len(); got != 0 {
		t.Errorf("%d entries are left", got)
	}
	s.restore(many, Options{})
	now := s.scan()
	group := now.Lookup("f").Links
	for path, e := range now.All() {
		if path != "" && path != "d" && (e.Links != group || group == 0) {
			t.Fatalf("%q is another file", path)
		}
	}
	if now.Len() != names+1 {
		t.Errorf("%d entries came back", now.Len())
	}
}
