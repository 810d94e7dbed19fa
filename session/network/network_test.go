package network

import (
	"net/netip"
	"testing"

	"stepbox/policy"
	"stepbox/runner/egress"
)

func TestEventsKeepTheirAction(t *testing.T) {
	var n Network
	owners := map[int]int{7: 3}
	owner := func(pid int) int { return owners[pid] }
	for _, c := range []struct {
		at     egress.Attempt
		kind   string
		action int
	}{
		{egress.Attempt{ID: 1, PID: 7, Open: true, Name: "a\x1b"}, "attempt.opened", 3},
		{egress.Attempt{ID: 2, PID: 8}, "attempt.closed", 0},
		{egress.Attempt{ID: 1, PID: 7, Open: true}, "attempt.changed", 3},
		{egress.Attempt{ID: 1}, "attempt.closed", 3},
	} {
		e := n.Event(c.at, owner)
		if e.Kind != c.kind || e.Attempt.Action != c.action || e.Attempt.Name == "a\x1b" {
			t.Errorf("%+v is told as %s of action %d (%q)", c.at, e.Kind, e.Attempt.Action, e.Attempt.Name)
		}
		clear(owners) // its process has gone
	}
	if n.Last != 2 || len(n.open) != 0 {
		t.Errorf("the last is %d, and %d are open", n.Last, len(n.open))
	}
}

func TestJudge(t *testing.T) {
	host, err := policy.ParseHost("example.org:443")
	if err != nil {
		t.Fatal(err)
	}
	n := Network{Hosts: []policy.HostRule{host}, Policy: policy.Builtin()}
	for name, want := range map[string]bool{"example.org": true, "other.example.org": false} {
		v := n.Judge(t.Context(), egress.Attempt{Name: name, Address: netip.MustParseAddrPort("192.0.2.1:443")})
		if v.Allow != want || v.Private || v.Rule == "" {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
