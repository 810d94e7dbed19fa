package network

import (
	"fmt"
	"testing"
	"time"

	"stepbox/runner/egress"
)

// What became of the last connection to a name is known whatever address it has then.
func TestLastTime(t *testing.T) {
	var n Network
	owner := func(int) int { return 0 }
	tell := func(id int64, a egress.Attempt) {
		a.ID = id
		n.Event(a, owner)
	}
	first, again := attempt("tcp", "a.example.org", "198.18.0.1:443"), attempt("tcp", "a.example.org", "198.18.0.9:443")
	if got := n.LastTime(Destination(first)); got != "" {
		t.Errorf("before any: %q", got)
	}
	first.Verdict, first.Open = "ask", true
	tell(1, first)
	if got := n.LastTime(Destination(again)); got != "" {
		t.Errorf("while it waits: %q", got)
	}
	first.Verdict, first.Rule, first.Open = "deny", "denied by tui", false
	tell(1, first)
	if got := n.LastTime(Destination(again)); got != "denied by tui" {
		t.Errorf("after it was denied: %q", got)
	}
	again.Verdict, again.Rule, again.Sent, again.Received = "allow", "approved by tui", 10, 20
	tell(2, again)
	if got := n.LastTime(Destination(first)); got != "allowed: approved by tui; 10 bytes out, 20 in" {
		t.Errorf("after it was allowed: %q", got)
	}
	other := attempt("tcp", "a.example.org", "198.18.0.1:80")
	other.Verdict, other.Failure = "allow", "refused\x1b"
	tell(3, other)
	if got := n.LastTime(Destination(other)); got != `allowed: ; it failed: refused\x1b` {
		t.Errorf("after it failed: %q", got)
	}
	for i := range maxOutcomes + 10 {
		tell(int64(i+4), attempt("tcp", fmt.Sprintf("h%d.example.org", i), "198.18.0.1:443"))
	}
	if len(n.last) != maxOutcomes {
		t.Errorf("%d are remembered", len(n.last))
	}
}

// Whether the program was written in this session is found out off the loop, and told
// with the try.
func TestWrittenProgram(t *testing.T) {
	n, asked, _ := judged(t, policyOf(t, "version: 1\n"), "policy")
	n.Wrote = func(program string, _ time.Time) bool { return program == "/usr/bin/curl" }
	go n.Judge(t.Context(), attempt("tcp", "a.example.org", "198.18.0.1:443"))
	if try := <-asked; !try.Written {
		t.Error("it isn't told")
	}
}
