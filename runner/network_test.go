package runner

import (
	"context"
	"strings"
	"sync"
	"testing"

	"stepbox/runner/egress"
)

// TestNoNetwork: without an egress configuration there is only a loopback.
func TestNoNetwork(t *testing.T) {
	out, _ := newRig(t).sh("cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '; cat /proc/net/route | tail -n +2")
	if strings.TrimSpace(out) != "lo" {
		t.Errorf("it has %q", out)
	}
}

// TestNetworkIsAsked: every connection comes to the judge, with its program, and
// a denied one is refused.
func TestNetworkIsAsked(t *testing.T) {
	r := newRig(t)
	var mu sync.Mutex
	var asked []egress.Attempt
	r.handler.Egress = &egress.Options{
		Judge: func(_ context.Context, a egress.Attempt) egress.Verdict {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, a)
			return egress.Verdict{}
		},
	}
	run := r.start("python3", "-c", `
import socket
for where in ("example.com", 443), ("203.0.113.7", 80):
    s = socket.socket(); s.settimeout(10)
    try: s.connect(where); print("CONNECTED")
    except OSError as e: print("refused:", e)
`)
	out, _ := run.wait()
	if strings.Count(out, "refused:") != 2 || strings.Contains(out, "timed out") {
		t.Errorf("it says %q", out)
	}
	mu.Lock()
	defer mu.Unlock()
	var seen []string
	for _, a := range asked {
		seen = append(seen, a.Name+"|"+a.Address.String()+"|"+a.Program)
		if a.PID == 0 || !strings.Contains(a.Program, "python") {
			t.Errorf("nobody knows who tried %+v", a)
		}
	}
	if all := strings.Join(seen, "\n"); !strings.Contains(all, "example.com|") || !strings.Contains(all, "203.0.113.7:80") {
		t.Errorf("it says %q, asked were:\n%s", out, all)
	}
}
