package ledger

import (
	"testing"

	"golang.org/x/sys/unix"
)

// What is kept for the last of the output is given back by itself, and what is kept
// for the record of the end stays until that needs it.
func TestRoom(t *testing.T) {
	r, err := keepRoom(t.TempDir())
	if err != nil || r.f == nil {
		t.Skip("this filesystem keeps no room", err)
	}
	defer r.free()
	has := func() int64 {
		var st unix.Stat_t
		if err := unix.Fstat(int(r.f.Fd()), &st); err != nil {
			t.Fatal(err)
		}
		return st.Blocks * 512
	}
	if got := has(); got < reserved+output {
		t.Errorf("%d bytes are kept, want %d", got, reserved+output)
	}
	r.shrink()
	if got := has(); got < reserved || got >= reserved+output {
		t.Errorf("%d bytes are kept for the end, want %d", got, reserved)
	}
}
