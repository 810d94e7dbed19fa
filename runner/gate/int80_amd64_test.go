package gate

import "golang.org/x/sys/unix"

func int80getpid() int32

// int80 makes a system call the way of i386.
func int80() error {
	if r := int80getpid(); r < 0 {
		return unix.Errno(-r)
	}
	return nil
}
