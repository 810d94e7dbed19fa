package egress

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"stepbox/session/e2e/must"
)

// Where the verdict needs no program, an allowed connection doesn't wait for one to be
// found, and has it later; who is denied is found before it may be gone.
func TestVerdictWithoutProgram(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", hello)
	hold := make(chan struct{})
	var looked atomic.Int32
	s := newSandbox(t, Options{
		Known: func(a Attempt) (Verdict, bool) {
			if a.PID != 0 {
				t.Errorf("it was looked for: %+v", a)
			}
			switch a.Address.Port() {
			case at.Port():
				return Verdict{Allow: true, Rule: "known"}, true
			case 1:
				return Verdict{Rule: "known"}, true
			}
			return Verdict{}, false
		},
		Judge: func(_ context.Context, a Attempt) Verdict {
			if a.PID != os.Getpid() {
				t.Errorf("judged without program: %+v", a)
			}
			return Verdict{Rule: "judged"}
		},
		Processes: func() []int {
			if looked.Add(1) == 1 {
				<-hold // as a look at a busy machine's processes may take
			}
			return []int{os.Getpid()}
		},
	})
	goOn := sync.OnceFunc(func() { close(hold) })
	defer goOn()
	c, err := s.dial("tcp", at.String(), patience)
	must.OK(t, err)
	defer c.Close() // it is looked for as long as it is there
	if got, err := io.ReadAll(c); err != nil || string(got) != "hello" {
		t.Fatalf("%q, %v", got, err)
	}
	goOn()
	if a := s.wait("the allowed one's program", func(a Attempt) bool { return a.Verdict == "allow" && a.PID != 0 }); a.PID != os.Getpid() || a.Rule != "known" {
		t.Errorf("logged %+v", a)
	}
	for port, rule := range map[uint16]string{1: "known", 2: "judged"} {
		if err := s.connectRaw(netip.MustParseAddr(publicAddr), port, patience); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("port %d: %v", port, err)
		}
		a := s.wait(rule, func(a Attempt) bool { return a.Address.Port() == port && !a.Open })
		if a.Rule != rule || a.PID != os.Getpid() {
			t.Errorf("logged %+v", a)
		}
	}
}
