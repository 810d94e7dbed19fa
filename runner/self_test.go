package runner

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"stepbox/runner/box"
	"stepbox/runner/gate"
	"stepbox/runner/pid1"
	"stepbox/runner/seqpacket"
	"stepbox/session/e2e/must"
)

// TestSelfsNumber: a child's descriptors don't take the place of the program that it
// is to run. This process runs from a sealed copy already, as a supervisor does, and
// the kernel gives what is opened first a number that children have files at.
func TestSelfsNumber(t *testing.T) {
	self, err := box.Self()
	must.OK(t, err)
	if number, err := seqpacket.Number(self); err != nil || number < 256 {
		t.Errorf("the number is %d: %v", number, err)
	}
}

// TestSelf: the sandbox has this program where it is said, as the file that it is or as
// a copy, known by its inode and not to be changed.
func TestSelf(t *testing.T) {
	for _, how := range []string{"its file", "a copy"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t)
			r.spec.Self = filepath.Join(r.base, "program")
			if how == "its file" {
				must.OK(t, os.WriteFile(r.spec.Self, []byte("#!/bin/sh\necho ran as $0 $*\n"), 0o755))
			}
			var mu sync.Mutex
			var seen []gate.File // guarded by mu: the gate calls on goroutines of its own
			r.handler.Gate.Exec = func(e *gate.Exec) {
				if e.Path == SelfPath {
					mu.Lock()
					seen = append(seen, e.Files[0])
					mu.Unlock()
				}
				e.Allow(gate.NoExit | gate.Unverified)
			}
			run := r.start("/bin/sh", "-c", SelfPath+" version; echo x 2>&1 >"+SelfPath+"; rm -f "+SelfPath+" 2>&1; ls -l "+SelfPath+"; ls "+pid1.SocketDir)
			out, _ := run.wait()
			if how == "its file" && !strings.Contains(out, "ran as "+SelfPath+" version") || strings.Count(out, "Read-only")+strings.Count(out, "busy") < 2 {
				t.Errorf("%s", out)
			}
			self, known := run.Self()
			mu.Lock()
			defer mu.Unlock()
			if !known || len(seen) != 1 || !self.Same(seen[0]) {
				t.Errorf("it is %+v, known %v; what ran was %+v", self, known, seen)
			}
		})
	}
}
