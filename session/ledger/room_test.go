package ledger

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// What is kept for the last of the output is given back by itself, and what is kept
// for the record of the end stays until that needs it.
func TestRoom(t *testing.T) {
	r, err := keepRoom(t.TempDir())
	if err != nil || r.end == nil || r.output == nil {
		t.Skip("this filesystem keeps no room", err)
	}
	defer r.free()
	has := func() int64 {
		sum := int64(0)
		for _, f := range []*os.File{r.end, r.output} {
			var st unix.Stat_t
			if f == nil {
				continue
			}
			must.OK(t, unix.Fstat(int(f.Fd()), &st))
			sum += st.Blocks * 512
		}
		return sum
	}
	if got := has(); got < endRoom+outputRoom {
		t.Errorf("%d bytes are kept, want %d", got, endRoom+outputRoom)
	}
	r.shrink()
	if got := has(); got < endRoom || got >= endRoom+outputRoom {
		t.Errorf("%d bytes are kept for the end, want %d", got, endRoom)
	}
}
