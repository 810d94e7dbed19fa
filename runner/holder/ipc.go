package holder

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// boundIPC bounds what the namespace of a process may have of System V shared memory, in
// bytes, and of messages, which nobody else counts. Some kernels let nobody but the
// host's root do that.
func boundIPC(pidfd int, bytes int64) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		err := unix.Setns(pidfd, unix.CLONE_NEWIPC)
		for name, most := range map[string]int64{"shmall": bytes / int64(os.Getpagesize()), "msgmni": maxQueues} {
			if err == nil {
				err = os.WriteFile("/proc/sys/kernel/"+name, strconv.AppendInt(nil, most, 10), 0)
			}
		}
		done <- err
	}()
	if err := <-done; err != nil {
		return fmt.Errorf("cannot bound the sandbox's shared memory: %w", err)
	}
	return nil
}

// maxQueues is how many message queues, of 16 KiB each, the sandbox may have.
const maxQueues = 256
