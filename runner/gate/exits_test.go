package gate

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

func TestExits(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		b := start(t, setup{
			args:    []string{"sh", "-c", "for c in 'exit 0' 'exit 1' 'exit 66' 'exit 255' 'kill -KILL $$' 'kill -SEGV $$' 'kill -TERM $$' '(exit 3) & wait $!'; do sh -c \"$c\"; done 2>/dev/null"},
			options: o,
		})
		b.wait()
		want := []Exit{{Code: 0}, {Code: 1}, {Code: 66}, {Code: 255}, {Signal: unix.SIGKILL}, {Signal: unix.SIGSEGV}, {Signal: unix.SIGTERM}, {Code: 3}}
		if len(b.seen()) != 1+len(want) {
			t.Fatalf("%d execs", len(b.seen()))
		}
		for i, w := range want {
			if x := b.exitOf(b.seen()[1+i]); !x.Known || x.Code != w.Code || x.Signal != w.Signal || x.At.IsZero() {
				t.Errorf("%q ended with %+v, want %+v", b.seen()[1+i].Argv[2], x, w)
			}
		}
	})
}

// A process whose parent is gone, and one whose parent never asks.
func TestExitsThatNobodyWaitsFor(t *testing.T) {
	for _, role := range []string{"orphan", "zombie"} {
		t.Run(role, func(t *testing.T) {
			both(t, func(t *testing.T, o Options) {
				dir := t.TempDir()
				script := filepath.Join(dir, "script")
				must.OK(t, os.WriteFile(script, []byte("#!/bin/sh\nexit 42\n"), 0o755))
				b := start(t, setup{role: role, args: []string{script}, options: o})
				b.eventually("it execs", func() bool { return b.find("script") != nil })
				if x := b.exitOf(b.find("script")); !x.Known || x.Code != 42 {
					t.Errorf("it ended with %+v", x)
				}
			})
		})
	}
}

func TestNoExit(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		b := start(t, setup{
			args: []string{"sh", "-c", "/bin/true; /bin/false; exit 2"}, options: o,
			decide: func(e *Exec) {
				if filepath.Base(e.Path) == "sh" {
					e.Allow()
				} else {
					e.Allow(NoExit)
				}
			},
		})
		b.wait()
		b.exitOf(b.seen()[0])
		if n := len(b.ended()); n != 1 {
			t.Errorf("%d exits were told", n)
		}
	})
}

// all runs a test with all ways to hear of an exit.
func all(t *testing.T, f func(t *testing.T, o Options, with ...Allowance)) {
	t.Run("pidfd", func(t *testing.T) { f(t, Options{}) })
	t.Run("trace", func(t *testing.T) { f(t, Options{traceExits: true}) })
	t.Run("hold", func(t *testing.T) { f(t, Options{}, HoldExit) })
}

// With HoldExit the gate's owner sees a process end before its parent does, and
// what that does next isn't there yet.
func TestHoldExit(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		next := filepath.Join(dir, "next")
		var held []Exit
		var early atomic.Bool
		o.Exiting = func(x Exit) {
			if held = append(held, x); len(held) > 1 {
				return // the second is the parent itself
			}
			for range 20 {
				if _, err := os.Stat(next); err == nil {
					early.Store(true)
				}
				time.Sleep(time.Millisecond) // for the parent to be wrong
			}
		}
		b := start(t, setup{
			args: []string{"sh", "-c", "/bin/sh -c 'exit 3'; echo $? >next; exec /bin/sh -c 'exec sh -c \"kill -KILL \\$\\$\"'"}, options: o, dir: dir,
			decide: func(e *Exec) {
				if e.Path == "/bin/sh" {
					e.Allow(HoldExit)
				} else {
					e.Allow()
				}
			},
		})
		if code := b.wait(); code != 128+int(unix.SIGKILL) {
			t.Errorf("it ended with %d", code)
		}
		if early.Load() {
			t.Error("the parent went on while its child's end was held")
		}
		if x := b.exitOf(b.seen()[1]); !x.Known || x.Code != 3 {
			t.Errorf("it ended with %+v", x)
		}
		if x := b.exitOf(b.seen()[0]); !x.Known || x.Signal != unix.SIGKILL {
			t.Errorf("the first ended with %+v", x)
		}
		if len(held) == 0 || held[0].PID != b.seen()[1].PID || held[0].Code != 3 {
			t.Errorf("held were %+v", held)
		}
		if n := len(b.ended()); n != 2 {
			t.Errorf("%d exits of two processes: %+v", n, b.ended())
		}
	})
}

// Job control of a shell over a traced process: stop, continue, in the
// foreground and back, and the stop signals that it doesn't survive.
func TestJobControl(t *testing.T) {
	all(t, func(t *testing.T, o Options, with ...Allowance) {
		master, slave, err := pty.Open()
		must.OK(t, err)
		screen := newScreen(master)
		t.Cleanup(func() {
			screen.wait()
			master.Close()
			if t.Failed() {
				text := screen.since(0)
				t.Logf("the terminal: %q", text[:min(len(text), 4000)])
			}
		})
		b := start(t, setup{
			args: []string{"bash", "--norc", "--noprofile", "-i"}, options: o,
			decide: func(e *Exec) { e.Allow(with...) },
			env:    []string{"PS1=ready> ", "TERM=dumb", "HISTFILE="},
			stdin:  slave, stdout: slave, stderr: slave,
			attr: func(a *syscall.SysProcAttr) { a.Setpgid, a.Setsid, a.Setctty, a.Ctty = false, true, true, 0 },
		})
		slave.Close()
		step := func(input string, want ...string) {
			t.Helper()
			from := screen.mark()
			if _, err := io.WriteString(master, input); err != nil {
				t.Fatal(err)
			}
			for _, w := range want {
				b.eventually(fmt.Sprintf("%q after %q in %q", w, input, screen.since(from)), func() bool {
					return strings.Contains(screen.since(from), w)
				})
			}
		}
		jobs := func(want string) {
			t.Helper()
			b.eventually("a job is "+want, func() bool {
				from := screen.mark()
				step("jobs; echo end\n", "end\r\n", "ready> ")
				return strings.Contains(screen.since(from), want)
			})
		}
		b.eventually("a prompt", func() bool { return strings.Contains(screen.since(0), "ready> ") })
		step("cat\n")
		b.eventually("cat", func() bool { return b.find("cat") != nil })
		step("hello\n", "hello\r\nhello")
		step("\x1a", "Stopped", "ready> ") // ^Z
		step("jobs\n", "Stopped", "cat", "ready> ")
		step("bg\n", "cat &", "ready> ")
		jobs("Stopped") // by its reading, in the background
		step("fg\n", "cat")
		step("again\n", "again\r\nagain")
		step("\x03", "ready> ") // ^C
		if x := b.exitOf(b.find("cat")); !x.Known || x.Signal != unix.SIGINT {
			t.Errorf("cat ended with %+v", x)
		}
		step("sh -c 'kill -STOP $$; echo went on; exit 4'\n", "Stopped", "ready> ")
		step("fg; echo was $?\n", "went on", "was 4", "ready> ")
		step("sh -c 'kill -STOP $$' &\n", "ready> ")
		jobs("Stopped")
		step("kill -KILL %1\n", "ready> ")
		last := b.seen()[len(b.seen())-1]
		if x := b.exitOf(last); !x.Known || x.Signal != unix.SIGKILL {
			t.Errorf("the stopped job ended with %+v", x)
		}
		step("exit 6\n") // asked once more where the shell hasn't noticed
		step("exit 6\n")
		if code := b.wait(); code != 6 {
			t.Errorf("the shell ended with %d", code)
		}
		b.eventually("all exits", func() bool { return len(b.ended()) == len(b.seen()) })
	})
}

// A parent hears of its child's stops, continuations and end as without a
// tracer, by signal and by waiting.
func TestParentHears(t *testing.T) {
	all(t, func(t *testing.T, o Options, with ...Allowance) {
		b := start(t, setup{role: "parent", options: o, decide: func(e *Exec) { e.Allow(with...) }})
		b.wait()
		got := b.out.String()
		// One that stops again at once may have been seen continuing or not.
		if strings.ReplaceAll(got, "continued ", "") != strings.Repeat("stopped stopped killed\n", 20) || !strings.Contains(got, "continued") {
			t.Errorf("it heard %q", got)
		}
	})
}

func init() { roles["parent"] = playParent }

func playParent([]string) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGCHLD)
	for range 20 {
		pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", "kill -STOP $$; kill -TSTP $$; kill -TTIN $$"}, &syscall.ProcAttr{Env: clean(), Files: []uintptr{0, 1, 2}})
		if err != nil {
			say("start", err)
			return
		}
		var heard []string
		for end := false; !end; {
			select {
			case <-signals:
			case <-time.After(patience / 4):
				heard = append(heard, "nothing")
				end = true
			}
			for {
				var status unix.WaitStatus
				p, err := unix.Wait4(pid, &status, unix.WNOHANG|unix.WUNTRACED|unix.WCONTINUED, nil)
				if err != nil || p == 0 {
					break
				}
				switch {
				case status.Stopped():
					heard = append(heard, "stopped")
					if len(heard) == 1 {
						unix.Kill(pid, unix.SIGCONT)
					} else {
						unix.Kill(pid, unix.SIGKILL)
					}
				case status.Continued():
					heard = append(heard, "continued")
				case status.Signaled():
					heard = append(heard, "killed")
					end = true
				default:
					heard = append(heard, "ended")
					end = true
				}
			}
		}
		fmt.Println(strings.Join(heard, " "))
	}
}
