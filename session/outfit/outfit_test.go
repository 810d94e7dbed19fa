package outfit

import (
	"testing"

	"stepbox/runner"
)

// A folder of PATH that the agent can fill comes after the person's.
func TestSearched(t *testing.T) {
	t.Parallel()
	binds := []runner.Bind{{Target: "/home/u/.local/bin"}, {Target: "/home/u/w", Upper: "/x"}}
	const path = "/home/u/p/bin:/home/u/bin:/home/u/.local/bin:/usr/bin:/tmp/t:/home/u/w/bin:/bin"
	if got, want := searched(path, "/home/u", "/home/u/p", binds), "/home/u/p/bin:/home/u/.local/bin:/usr/bin:/bin:/home/u/bin:/tmp/t:/home/u/w/bin"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
