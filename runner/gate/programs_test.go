package gate

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// A Go program rarely execs from its first thread, and the kernel then gives
// the new image the first thread's id.
func TestExecFromAnotherThread(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		b := start(t, setup{role: "thread", args: []string{"/bin/sh", "-c", "echo hello; exit 3"}, options: o})
		if code := b.wait(); code != 3 {
			t.Errorf("it ended with %d", code)
		}
		if b.out.String() != "hello\n" {
			t.Errorf("it said %q", b.out.String())
		}
		e := b.seen()[1]
		if e.TID == e.PID {
			t.Errorf("thread %d of %d is the first", e.TID, e.PID)
		}
		if x := b.exitOf(e); !x.Known || x.Code != 3 {
			t.Errorf("it ended with %+v", x)
		}
		if n := len(b.ended()); n != 1 {
			t.Errorf("one process ended %d times", n)
		}
	})
}

// When several threads exec at once, one wins and the others are no more.
func TestExecFromManyThreads(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		held := 0
		b := start(t, setup{role: "threads", args: []string{"/bin/sh", "-c", "exit 5"}, options: o, decide: func(e *Exec) {
			if e.Path != "/bin/sh" {
				e.Allow()
			}
		}})
		b.eventually("all are held", func() bool { held = len(b.seen()); return held == 5 })
		b.seen()[2].Allow()
		if code := b.wait(); code != 5 {
			t.Errorf("it ended with %d", code)
		}
		b.eventually("the others failed", func() bool { return len(b.failures()) == 3 })
		if h := b.gate.Held(); len(h) != 0 {
			t.Errorf("still held: %v", h)
		}
		if x := b.exitOf(b.seen()[2]); !x.Known || x.Code != 5 {
			t.Errorf("it ended with %+v", x)
		}
	})
}

// Programs as agents use them, with their ways to start others: fork, vfork,
// posix_spawn, threads.
func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"sh", []string{"sh", "-c", "echo a | tr a b; (exec /bin/echo c); /bin/echo d & wait"}, "b\nc\nd\n"},
		{"bash", []string{"bash", "-c", "diff <(echo a) <(echo a) && cat <<<b; command -v tr >/dev/null && exec -a x /bin/echo c"}, "b\nc\n"},
		{"python3", []string{"python3", "-c", "import subprocess,os\nprint(subprocess.run(['echo','a'],capture_output=True).stdout.decode(),end='',flush=True)\nsubprocess.run('echo b',shell=True)\np=os.posix_spawnp('echo',['echo','c'],os.environ)\nos.waitpid(p,0)\nos.system('echo d')\ntry: subprocess.run(['/nonexistent'])\nexcept FileNotFoundError: print('e',flush=True)\nos.execvp('echo',['echo','f'])"}, "a\nb\nc\nd\ne\nf\n"},
		{"node", []string{"node", "-e", "const c=require('child_process');process.stdout.write(c.execFileSync('echo',['a']));process.stdout.write(c.execSync('echo b'));const p=c.spawn('sh',['-c','echo c; exit 4']);p.stdout.pipe(process.stdout);p.on('close',x=>{console.log(x);c.spawn('/nonexistent').on('error',e=>console.log(e.code))})"}, "a\nb\nc\n4\nENOENT\n"},
		{"go", []string{"go", "env", "GOOS"}, "linux\n"},
		{"perl", []string{"perl", "-e", "print `echo a`; system('echo','b'); exec('echo','c')"}, "a\nb\nc\n"},
		{"busybox", []string{"busybox", "sh", "-c", "busybox echo a"}, "a\n"},
		{"env", []string{"env", "-i", "PATH=/usr/bin:/bin", "sh", "-c", "echo a"}, "a\n"},
		{"xargs", []string{"sh", "-c", "seq 1 20 | xargs -P 8 -n 1 /bin/echo | wc -l"}, "20\n"},
		{"setsid", []string{"setsid", "-w", "echo", "a"}, "a\n"},
		{"timeout", []string{"timeout", "20", "sh", "-c", "echo a"}, "a\n"},
		{"ld.so", []string{"/lib64/ld-linux-x86-64.so.2", "/bin/echo", "a"}, "a\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path, err := exec.LookPath(c.args[0])
			if err != nil {
				t.Skip(err)
			}
			switch c.name {
			case "python3", "node", "perl": // may be installed for another user
				if err := exec.Command(path, "--version").Run(); err != nil {
					t.Skip(err)
				}
			}
			both(t, func(t *testing.T, o Options) {
				b := start(t, setup{args: c.args, options: o})
				if code := b.wait(); code != 0 {
					t.Errorf("it ended with %d", code)
				}
				if b.out.String() != c.want {
					t.Errorf("it said %q, want %q", b.out.String(), c.want)
				}
				if f := b.failures(); len(f) > 0 {
					t.Errorf("failures: %q", f)
				}
				for _, e := range b.seen() {
					if x := b.exitOf(e); !x.Known {
						t.Errorf("the end of %q isn't known", cut(e.Argv))
					}
				}
			})
		})
	}
}

// Members of a pipeline are recognised by the pipe between them.
func TestPipeline(t *testing.T) {
	b := start(t, setup{args: []string{"sh", "-c", "/bin/echo a | /bin/cat | /usr/bin/tr a b >/dev/null"}})
	b.wait()
	echo, cat, tr := b.find("echo"), b.find("cat"), b.find("tr")
	if echo.Stdout == 0 || echo.Stdout != cat.Stdin || cat.Stdout == 0 || cat.Stdout != tr.Stdin || tr.Stdout != 0 {
		t.Errorf("pipes %d | %d, %d | %d, %d", echo.Stdout, cat.Stdin, cat.Stdout, tr.Stdin, tr.Stdout)
	}
}

// A process that execs again stays one process with one end.
func TestExecChain(t *testing.T) {
	both(t, func(t *testing.T, o Options) {
		b := start(t, setup{args: []string{"sh", "-c", "exec sh -c 'exec sh -c \"exit 9\"'"}, options: o})
		if code := b.wait(); code != 9 {
			t.Errorf("it ended with %d", code)
		}
		if len(b.seen()) != 3 {
			t.Errorf("%d execs", len(b.seen()))
		}
		for _, e := range b.seen() {
			if e.PID != b.seen()[0].PID || e.Start != b.seen()[0].Start {
				t.Error("it became another process")
			}
		}
		if x := b.exitOf(b.seen()[0]); !x.Known || x.Code != 9 {
			t.Errorf("it ended with %+v", x)
		}
		if n := len(b.ended()); n != 1 {
			t.Errorf("it ended %d times", n)
		}
	})
}

// What another process in the sandbox traces can't be checked, and is refused
// unless that one may reach it.
func TestTraced(t *testing.T) {
	for name, with := range map[string][]Allowance{"checked": nil, "unverified": {Unverified}, "to the end": {HoldExit}, "unverified to the end": {Unverified, HoldExit}} {
		for _, may := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %v", name, may), func(t *testing.T) {
				var asked atomic.Pointer[Reach]
				var echo atomic.Pointer[Exec]
				b := start(t, setup{role: "traceme", args: []string{"/bin/echo", "hello"}, decide: func(e *Exec) {
					if filepath.Base(e.Path) == "echo" {
						echo.Store(e)
						e.Allow(with...)
						return
					}
					e.Allow()
				}, options: Options{Reach: func(_ context.Context, r Reach) bool {
					if r.Kind == ReachTraced { // that it is traced
						return true
					}
					asked.Store(&r)
					return may
				}}})
				b.wait()
				want := map[bool]string{false: "start EACCES\n", true: "start ok\n"}[may]
				// Once its tracer is gone, the program may run to its end.
				if got := strings.TrimSuffix(b.out.String(), "hello\n"); got != want {
					t.Errorf("it said %q, want %q", b.out.String(), want)
				}
				if !may {
					b.oneFailure()
				}
				if !may && (!strings.Contains(b.failures()[0], "traces") || !strings.Contains(b.err.String(), "stepbox: ")) {
					t.Errorf("failures %q, on its standard error %q", b.failures(), b.err.String())
				}
				e, r := echo.Load(), asked.Load()
				if e == nil || r == nil || r.Kind != ReachStart || r.Caller.PID != e.Parent || r.Target.Process != (Process{PID: e.PID, Start: e.Start}) || r.Target.Ancestors[0].PID != e.Parent {
					t.Errorf("asked %+v about %+v", r, e)
				}
			})
		}
	}
}
