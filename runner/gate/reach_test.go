package gate

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() { roles["linger"] = playLinger }

// playLinger says that it runs, and ends with its standard input.
func playLinger([]string) {
	os.Stdout.WriteString("here\n")
	for {
		if n, err := os.Stdin.Read(make([]byte, 1)); n == 0 || err != nil {
			return
		}
	}
}

// reachFor starts a program and reaches for it in one of several ways.
func reachFor(how string, raw func(uintptr, ...uintptr) error) error {
	c := exec.Command("/proc/self/exe")
	c.Env = append(clean(), roleEnv+"=linger")
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	defer func() {
		in.Close()
		c.Wait()
	}()
	if _, err := out.Read(make([]byte, 16)); err != nil {
		return err
	}
	pid := c.Process.Pid
	switch how {
	case "attach to a thread":
		tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
		if err != nil || len(tasks) < 2 {
			return errors.Join(err, errors.New("it has one thread only"))
		}
		pid, _ = strconv.Atoi(tasks[1].Name())
	case "attach to nobody":
		pid = 1 << 21
	case "attach to the first":
		pid = 1
	case "write into":
		b := []byte{1}
		local := unix.Iovec{Base: &b[0], Len: 1}
		remote := local // an address that may mean nothing there
		return raw(unix.SYS_PROCESS_VM_WRITEV, uintptr(pid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
	case "take a descriptor":
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		_, err = unix.PidfdGetfd(fd, 0, 0)
		return err
	}
	request := uintptr(unix.PTRACE_ATTACH)
	if how == "seize" {
		request = unix.PTRACE_SEIZE
	}
	if how == "attach with high bits" {
		pid |= 0x7fffffff << 32
	}
	if err := raw(unix.SYS_PTRACE, request, uintptr(pid)); err != nil {
		return err
	}
	if request == unix.PTRACE_ATTACH {
		if _, err := unix.Wait4(int(int32(pid)), nil, unix.WALL, nil); err != nil {
			return err
		}
		return unix.PtraceDetach(int(int32(pid)))
	}
	return nil
}

// letGoOf allows an exec and leaves its process to other tracers; before Linux
// 6.15 the gate would trace it to its end.
func letGoOf(e *Exec) { e.Allow(NoExit) }

// The owner hears who reaches for whom, by their ids on the host, and its
// word counts.
func TestReach(t *testing.T) {
	for _, c := range []struct {
		how    string
		allow  bool
		target int // which exec of the sandbox is meant; -1: none is asked about
		want   string
	}{
		{"attach", true, 1, "is ok\n"},
		{"attach", false, 1, "is EPERM\n"},
		{"attach with high bits", true, 1, "is ok\n"},
		{"attach to a thread", true, 1, "is ok\n"},
		{"attach to a thread", false, 1, "is EPERM\n"},
		{"seize", true, 1, "is ok\n"},
		{"seize", false, 1, "is EPERM\n"},
		{"attach to nobody", true, -1, "is ESRCH\n"},
		{"write into", true, -1, "is EPERM\n"},
		{"take a descriptor", true, -1, "is EPERM\n"},
		{"share a folder", true, 0, "is ok\n"},
		{"share a folder", false, 0, "is EPERM\n"},
	} {
		t.Run(c.how+" "+strconv.FormatBool(c.allow), func(t *testing.T) {
			var mu sync.Mutex
			var asked []Reach
			b := start(t, setup{role: "attack", args: []string{c.how}, decide: letGoOf, options: Options{Reach: func(_ context.Context, r Reach) bool {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, r)
				return c.allow
			}}})
			b.wait()
			if got := b.out.String(); got != c.want {
				t.Errorf("it said %q, want %q", got, c.want)
			}
			mu.Lock()
			defer mu.Unlock()
			if c.target < 0 {
				if len(asked) != 0 {
					t.Errorf("asked about %+v", asked)
				}
				return
			}
			// A signal makes the kernel begin a call again.
			if len(asked) == 0 || slices.ContainsFunc(asked, func(r Reach) bool { return !reflect.DeepEqual(r, asked[0]) }) {
				t.Fatalf("asked about %+v", asked)
			}
			is := func(p Process, e *Exec) bool { return p.PID == e.PID && p.Start == e.Start }
			r, execs := asked[0], b.seen()
			if !is(r.Caller.Process, execs[0]) || len(r.Caller.Ancestors) != 0 {
				t.Errorf("the caller is %+v", r.Caller)
			}
			if c.how == "share a folder" {
				if r.Kind != ReachShare || r.Target.PID != 0 {
					t.Errorf("asked about %+v", r)
				}
				return
			}
			if r.Kind != ReachTrace || !is(r.Target.Process, execs[1]) || !slices.Equal(r.Target.Ancestors, []Process{r.Caller.Process}) {
				t.Errorf("asked about %+v", r)
			}
		})
	}
}

// The sandbox's first process belongs to nobody.
func TestReachForFirst(t *testing.T) {
	b := start(t, setup{role: "attack", args: []string{"attach to the first"}})
	b.wait()
	if got := strings.TrimSpace(b.out.String()); got != "is EPERM" {
		t.Errorf("it said %q", got)
	}
}
