package session

import (
	"strings"
	"testing"

	"stepbox/session/api"
)

// Only a crash of an agent whose memory rlimits bound may be for want of memory.
func TestCramped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source, signal string
		memory         int64
		want           string
	}{
		{"rlimits", "SIGILL", 4 << 30, "4096 MiB"},
		{"cgroup v1 and rlimits", "SIGABRT", 160 << 20, "160 MiB"},
		{"rlimits", "SIGKILL", 4 << 30, ""},
		{"rlimits", "", 4 << 30, ""},
		{"rlimits", "SIGILL", 0, ""},
		{"cgroup v2", "SIGILL", 4 << 30, ""},
	} {
		got := cramped(api.Limits{Source: c.source, Memory: c.memory}, c.signal)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
