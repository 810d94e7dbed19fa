package runner

import (
	"strings"
	"testing"

	"stepbox/runner/pid1"
)

// TestSocketsOfTheHome: sandboxes that have one home meet at no socket there, by which one could hand the other what it
// has open. In what each has for itself sockets are as elsewhere.
func TestSocketsOfTheHome(t *testing.T) {
	if !pid1.MemoryGuard() {
		t.Skip("this kernel has no Landlock")
	}
	out, exit := newRig(t).sh(`for dir in "$HOME" . /tmp /dev/shm; do (cd $dir; python3 -c '
import socket, os
try:
    socket.socket(socket.AF_UNIX).bind("s")
    print("bound", end=" ")
    os.rename("s", os.path.expanduser("~/moved"))
except OSError as e:
    print(e.strerror)
'); done`)
	if want := "Permission denied\n" + strings.Repeat("bound Invalid cross-device link\n", 3); exit.Code != 0 || strings.ReplaceAll(out, "\r", "") != want {
		t.Errorf("exit %+v, %q", exit, out)
	}
}
