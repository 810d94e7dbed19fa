package egress

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// init keeps the main goroutine on the process's first thread, for asLinked.
func init() {
	if os.Getenv(roleVar) == roleLink {
		runtime.LockOSThread()
	}
}

// asLinked makes a link on its process's first thread, and sees to it that who
// joins the process's network namespace meanwhile joins the right one.
func asLinked() int {
	want, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	stop, seen := make(chan struct{}), make(chan string)
	go func() {
		wrong := ""
		for {
			select {
			case <-stop:
				seen <- wrong
				return
			default:
			}
			if now, _ := os.Readlink("/proc/self/ns/net"); now != want {
				wrong = now
			}
		}
	}()
	link, err := MakeLink()
	close(stop)
	if err == nil {
		err = link.Close()
	}
	if wrong := <-seen; wrong != "" {
		fmt.Printf("the process was in %s, not %s\n", wrong, want)
		return 1
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// TestLinkLeavesTheProcessWhereItIs: a sandbox that joined the holder's namespace
// just then was in the far one, without an interface of its own.
func TestLinkLeavesTheProcessWhereItIs(t *testing.T) {
	for range 5 { // it is seen in most of them
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
		cmd.Env = append(os.Environ(), roleVar+"="+roleLink)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
}
