package egress

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Whoever has a socket is found however long the search takes, and the search
// ends after so many descriptors.
func TestOwnerIsFoundOnABusyMachine(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		t.Fatal(err)
	}
	busy := func() []int {
		<-time.After(20 * time.Millisecond) // as long as a look at /proc may take
		return []int{os.Getpid()}
	}
	o := &owners{processes: busy, known: make(map[uint64]owner)}
	if found, ok := o.find(st.Ino, 0); ok {
		t.Errorf("without a look it is %+v's", found)
	}
	if found, ok := o.find(st.Ino, scanNow); !ok || found.pid != os.Getpid() {
		t.Errorf("it is %+v's, %v", found, ok)
	}
}
