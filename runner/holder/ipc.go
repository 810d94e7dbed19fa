package holder

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// boundIPC bounds what the namespace of a process may have of System V shared memory, in
// bytes, and of messages, which nobody else counts. Some kernels let nobody but the
// host's root do that.
func boundIPC(pidfd int, bytes int64) error {
	err := inIPC(pidfd, func() (err error) {
		for name, most := range map[string]int64{"shmall": bytes / int64(os.Getpagesize()), "msgmni": maxQueues} {
			if err == nil {
				err = os.WriteFile("/proc/sys/kernel/"+name, strconv.AppendInt(nil, most, 10), 0)
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot bound the sandbox's shared memory: %w", err)
	}
	return nil
}

// inIPC runs f in the namespace of a process.
func inIPC(pidfd int, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		err := unix.Setns(pidfd, unix.CLONE_NEWIPC)
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// segments is how many bytes the System V shared memory of that namespace has, in memory
// and swapped out. A segment lives without a process that has it attached, so that no
// look at processes finds it.
func segments(pidfd int) (bytes int64, err error) {
	var table []byte
	err = inIPC(pidfd, func() (err error) {
		table, err = os.ReadFile("/proc/sysvipc/shm")
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("cannot look at the sandbox's shared memory: %w", err)
	}
	for line := range strings.Lines(string(table)) {
		// The last two of 16 columns; proc_sysvipc(5). The first line names them.
		if fields := strings.Fields(line); len(fields) == 16 {
			for _, field := range fields[14:] {
				n, _ := strconv.ParseInt(field, 10, 64)
				bytes += n
			}
		}
	}
	return bytes, nil
}

// maxQueues is how many message queues, of 16 KiB each, the sandbox may have.
const maxQueues = 256
