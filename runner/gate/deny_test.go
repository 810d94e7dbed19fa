package gate

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
)

// victim is a program that leaves a file when it runs, and two more when only
// its dynamic linker does.
type victim struct {
	dir, path string
}

func newVictim(t *testing.T) victim {
	t.Helper()
	dir := t.TempDir()
	v := victim{dir: dir, path: filepath.Join(dir, "victim")}
	copyFile(t, v.path, "/bin/touch")
	return v
}

// ran is the file that the victim makes.
func (v victim) ran() string { return filepath.Join(v.dir, "ran") }

// spared says whether nothing of the victim has run.
func (v victim) spared(t *testing.T) {
	t.Helper()
	if _, err := os.Lstat(v.ran()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the denied program has run: %v", err)
	}
}

// denyVictim allows everything else.
func denyVictim(e *Exec) {
	if filepath.Base(e.Program.Path) == "victim" {
		e.Deny("because")
		return
	}
	e.Allow()
}

const because = "stepbox: denied: because\n"

//go:embed testdata/*.c testdata/*.rs
var sources embed.FS

// compiled builds a program of testdata.
func compiled(t *testing.T, dir string, command ...string) string {
	t.Helper()
	path, err := exec.LookPath(command[0])
	if err != nil {
		t.Skip(err)
	}
	if exec.Command(path, "--version").Run() != nil { // may be installed for another user
		t.Skipf("there is no %s", command[0])
	}
	text, err := sources.ReadFile("testdata/" + command[1])
	must.OK(t, err)
	source := filepath.Join(dir, command[1])
	must.OK(t, os.WriteFile(source, text, 0o644))
	out := filepath.Join(dir, command[0]+"-program")
	c := exec.Command(path, append(command[2:], "-o", out, source)...)
	c.Dir = dir
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return out
}

// Whichever way a C program starts another, a denied one is one that failed.
func TestDeniedFromC(t *testing.T) {
	v := newVictim(t)
	spawn := compiled(t, v.dir, "gcc", "spawn.c", "-pthread")
	for _, way := range []string{"fork", "vfork", "spawn", "clone", "thread", "threads", "fexecve", "execvp"} {
		t.Run(way, func(t *testing.T) {
			both(t, func(t *testing.T, o Options) {
				b := start(t, setup{args: []string{spawn, way, v.path, v.ran()}, options: o, decide: denyVictim})
				if code := b.wait(); code != 0 || b.out.String() != "code 126\n"+because {
					t.Errorf("it ended with %d and said %q and %q", code, b.out.String(), b.err.String())
				}
				v.spared(t)
				if n := len(b.seen()); n != 2 {
					t.Errorf("%d execs were shown", n)
				}
				b.exitOf(b.seen()[0])
				if x := b.ended(); len(x) != 1 {
					t.Errorf("the ends of %v were told", x)
				}
			})
		})
	}
	for _, way := range []string{"system", "popen"} {
		t.Run(way, func(t *testing.T) {
			b := start(t, setup{args: []string{spawn, way, "A=b " + v.path + " " + v.ran() + "; exit $?"}, decide: denyVictim})
			if b.wait(); b.out.String() != "code 126\n" || b.err.String() != because {
				t.Errorf("it said %q and %q", b.out.String(), b.err.String())
			}
			v.spared(t)
		})
	}
	// Signals that wait for a new program end or stop it before it is seen to
	// exit, as they would any program.
	t.Run("signals", func(t *testing.T) {
		b := start(t, setup{args: []string{spawn, "signals", v.path, v.ran()}, decide: denyVictim})
		if b.wait(); b.out.String() != "code 126\n"+because {
			t.Errorf("it said %q", b.out.String())
		}
		v.spared(t)
	})
}

// Nothing of the new image runs, its dynamic linker neither.
func TestDeniedRunsNothing(t *testing.T) {
	for name, allow := range map[string]bool{"allowed": true, "denied": false} {
		t.Run(name, func(t *testing.T) {
			v := newVictim(t)
			trace := filepath.Join(v.dir, "linker")
			b := start(t, setup{
				args: []string{"sh", "-c", "LD_DEBUG=all LD_DEBUG_OUTPUT=" + trace + " " + v.path + " " + v.ran() + "; echo $?"},
				decide: func(e *Exec) {
					if allow {
						e.Allow()
					} else {
						denyVictim(e)
					}
				},
			})
			b.wait()
			traces, err := filepath.Glob(trace + ".*")
			must.OK(t, err)
			if allow == (len(traces) == 0) {
				t.Errorf("its linker left %q", traces)
			}
			if want := map[bool]string{true: "0\n", false: "126\n"}[allow]; b.out.String() != want {
				t.Errorf("it said %q", b.out.String())
			}
			if !allow {
				v.spared(t)
			}
		})
	}
}

// A caller's own filter may keep the exit of a denied program from happening.
// Then it is killed.
func TestDeniedWithoutAnExit(t *testing.T) {
	v := newVictim(t)
	endless := compiled(t, v.dir, "gcc", "endless.c", "-static", "-Wl,-e,begin")
	copyFile(t, v.path, endless)
	both(t, func(t *testing.T, o Options) {
		b := start(t, setup{args: []string{endless, "run", v.path, v.ran()}, options: o, decide: denyVictim})
		if code := b.wait(); code != 0 || b.out.String() != "signal 9\n" || b.err.String() != because {
			t.Errorf("it ended with %d and said %q and %q", code, b.out.String(), b.err.String())
		}
		v.spared(t)
	})
}

// Runtimes have their own ways to start programs, and their own to fail.
func TestDeniedFromRuntimes(t *testing.T) {
	v := newVictim(t)
	q := fmt.Sprintf("%q", v.path)
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"python3", []string{"python3", "-c", "import subprocess,os\nr=subprocess.run([" + q + "],stderr=subprocess.PIPE)\nprint(r.returncode,r.stderr.decode(),end='')\nr=subprocess.run([" + q + "],stderr=subprocess.PIPE,start_new_session=True,preexec_fn=lambda:None)\nprint(r.returncode,r.stderr.decode(),end='',flush=True)\np=os.posix_spawn(" + q + ",['x'],os.environ)\nprint(os.waitstatus_to_exitcode(os.waitpid(p,0)[1]))"},
			"126 " + because + "126 " + because + "126\n"},
		{"node", []string{"node", "-e", "const c=require('child_process');const r=c.spawnSync(" + q + ");console.log(r.error,r.status,String(r.stderr).trim());const p=c.spawn(" + q + ");let s='';p.stderr.on('data',d=>s+=d);p.on('error',e=>console.log('error',e));p.on('close',(x,g)=>{console.log(x,g,s.trim());c.execFile(" + q + ",(e,o,r)=>console.log(e.code,r.trim()))})"},
			"undefined 126 " + because + "126 null " + because + "126 " + because},
		{"perl", []string{"perl", "-e", "$|=1; system(" + q + ",'x'); print $?>>8, qq(\\n); print `" + v.path + " 2>&1`"}, "126\n" + because},
		{"sh", []string{"sh", "-c", v.path + "; echo $?; " + v.path + " 2>&1 | cat; (" + v.path + ") 2>&1"}, "126\n" + because + because},
		{"bash", []string{"bash", "-c", "set -o pipefail; : | " + v.path + " 2>&1 | cat; echo ${PIPESTATUS[@]}; x=$(" + v.path + " 2>&1); echo $? $x; set -m; " + v.path + " 2>&1 & wait $!; echo $?"},
			because + "0 126 0\n126 " + because + because + "126\n"},
		{"env", []string{"sh", "-c", "env " + v.path + " 2>&1; echo $?"}, "*126\n"}, // env replaces itself
	} {
		t.Run(c.name, func(t *testing.T) {
			path, err := exec.LookPath(c.args[0])
			if err != nil {
				t.Skip(err)
			}
			if c.name != "sh" && exec.Command(path, "--version").Run() != nil { // may be installed for another user
				t.Skipf("there is no %s", c.name)
			}
			b := start(t, setup{args: c.args, decide: denyVictim})
			b.wait()
			got := b.out.String()
			if tail, any := strings.CutPrefix(c.want, "*"); any && (!strings.HasPrefix(got, because) || !strings.HasSuffix(got, tail)) || !any && got != c.want {
				t.Errorf("it said %q and %q, want %q", got, b.err.String(), c.want)
			}
			v.spared(t)
		})
	}
	t.Run("go", func(t *testing.T) {
		b := start(t, setup{role: "osexec", args: []string{v.path, v.ran()}, decide: denyVictim})
		if b.wait(); b.out.String() != "exit status 126 "+because {
			t.Errorf("it said %q", b.out.String())
		}
		v.spared(t)
	})
	t.Run("rust", func(t *testing.T) {
		program := compiled(t, v.dir, "rustc", "spawn.rs")
		b := start(t, setup{args: []string{program, v.path, v.ran()}, decide: denyVictim})
		if b.wait(); b.out.String() != "Some(126) "+because {
			t.Errorf("it said %q and %q", b.out.String(), b.err.String())
		}
		v.spared(t)
	})
}

func init() { roles["osexec"] = playOSExec }

// playOSExec starts a program as Go programs do.
func playOSExec(args []string) {
	c := exec.Command(args[0], args[1:]...)
	c.Env = clean()
	var said strings.Builder
	c.Stderr = &said
	err := c.Run()
	fmt.Print(err, " ", said.String())
}

// What becomes of the reason never changes how a denied program ends.
func TestDeniedWhateverItsErrorsAre(t *testing.T) {
	full, reader := fullPipe(t)
	defer reader.Close()
	lost, w, err := os.Pipe()
	must.OK(t, err)
	lost.Close()
	master, slave, err := pty.Open()
	must.OK(t, err)
	defer master.Close()
	must.OK(t, fill(slave))
	null, err := os.Open("/dev/null") // not for writing
	must.OK(t, err)
	for name, stderr := range map[string]*os.File{"a full pipe": full, "no reader": w, "a terminal that nobody reads": slave, "not writable": null} {
		t.Run(name, func(t *testing.T) {
			v := newVictim(t)
			b := start(t, setup{args: []string{"sh", "-c", v.path + " " + v.ran() + "; echo $?"}, decide: denyVictim, stderr: stderr})
			b.wait()
			if b.out.String() != "126\n" {
				t.Errorf("it said %q", b.out.String())
			}
			v.spared(t)
		})
		stderr.Close()
	}
	t.Run("closed", func(t *testing.T) {
		v := newVictim(t)
		b := start(t, setup{args: []string{"sh", "-c", v.path + " " + v.ran() + " 2>&-; echo $?"}, decide: denyVictim})
		if b.wait(); b.out.String() != "126\n" {
			t.Errorf("it said %q", b.out.String())
		}
		v.spared(t)
	})
}

// A process that would become the program goes on as what it is.
func TestDeniedReplacement(t *testing.T) {
	v := newVictim(t)
	for _, how := range [][]Allowance{nil, {HoldExit}} {
		b := start(t, setup{
			args: []string{"bash", "--norc", "-c", "shopt -s execfail; exec " + v.path + " " + v.ran() + "; echo lives $?"},
			decide: func(e *Exec) {
				if filepath.Base(e.Program.Path) == "victim" {
					e.Deny("because")
				} else {
					e.Allow(how...)
				}
			},
		})
		b.wait()
		if b.out.String() != "lives 126\n" || !strings.HasPrefix(b.err.String(), because) {
			t.Errorf("it said %q and %q", b.out.String(), b.err.String())
		}
		v.spared(t)
	}
}

// A file without a known format is run by the C library and by shells as a
// script. That is asked about once and stays denied.
func TestDeniedWithoutFormat(t *testing.T) {
	v := newVictim(t)
	script := filepath.Join(v.dir, "script")
	must.OK(t, os.WriteFile(script, []byte("echo ran >"+v.ran()+"\n"), 0o755))
	// The kernel finds out late that this is no program.
	broken, err := os.ReadFile("/bin/true")
	must.OK(t, err)
	broken[54] = 3 // e_phentsize
	late := filepath.Join(v.dir, "late")
	must.OK(t, os.WriteFile(late, append(broken, "\necho ran >"+v.ran()+"\n"...), 0o755))
	spawn := compiled(t, v.dir, "gcc", "spawn.c", "-pthread")
	for _, file := range []string{script, late} {
		for _, args := range [][]string{{spawn, "execvp", file}, {"sh", "-c", file + "; echo code $?"}} {
			t.Run(filepath.Base(file)+" from "+filepath.Base(args[0]), func(t *testing.T) {
				var asked atomic.Int64
				b := start(t, setup{args: args, decide: func(e *Exec) {
					if e.Path == args[0] || e.Path == "/usr/bin/"+args[0] {
						e.Allow()
						return
					}
					asked.Add(1)
					e.Deny("because")
				}})
				b.wait()
				if asked.Load() != 1 || !strings.Contains(b.out.String(), "code ") || strings.Contains(b.out.String(), "code 0") {
					t.Errorf("asked %d times; it said %q and %q", asked.Load(), b.out.String(), b.err.String())
				}
				if n := strings.Count(b.out.String()+b.err.String(), because); n != 1 {
					t.Errorf("the reason was given %d times: %q %q", n, b.out.String(), b.err.String())
				}
				v.spared(t)
			})
		}
	}
}

// A debugger's child can't be brought to its end by us: its exec fails.
func TestDeniedWhileTraced(t *testing.T) {
	v := newVictim(t)
	b := start(t, setup{role: "traceme", args: []string{v.path, v.ran()}, decide: denyVictim, options: Options{
		Reach: func(_ context.Context, r Reach) bool { return r.Kind == ReachTraced }, // it may be traced
	}})
	b.wait()
	if b.out.String() != "start EACCES\n" || b.err.String() != because {
		t.Errorf("it said %q and %q", b.out.String(), b.err.String())
	}
	v.spared(t)
}

// Nobody is traced by a parent that the owner doesn't let.
func TestTracedByItsParent(t *testing.T) {
	b := start(t, setup{role: "traceme", args: []string{"/bin/echo", "hello"}, options: Options{Reach: func(_ context.Context, r Reach) bool {
		if r.Kind != ReachTraced || r.Target.Ancestors[0].PID != r.Caller.PID {
			t.Errorf("asked about %+v", r)
		}
		return false
	}}})
	b.wait()
	if b.out.String() != "start EPERM\n" {
		t.Errorf("it said %q", b.out.String())
	}
}

// Answers that are held hold a denied program too, wherever it has got to.
func TestDeniedWhileHeld(t *testing.T) {
	v := newVictim(t)
	b := start(t, setup{args: []string{"sh", "-c", v.path + " " + v.ran() + "; echo $?"}, decide: func(e *Exec) { holdBut(e, "sh") }})
	e := b.await("victim")
	b.gate.Hold()
	e.Deny("because")
	if !b.gate.waits(e.ID) {
		t.Error("it got its answer")
	}
	b.gate.Release()
	if b.wait(); b.out.String() != "126\n" || b.err.String() != because {
		t.Errorf("it said %q and %q", b.out.String(), b.err.String())
	}
	v.spared(t)
}

// Many at once, from many threads, each with its own end.
func TestDeniedInNumbers(t *testing.T) {
	v := newVictim(t)
	var n atomic.Int64
	b := start(t, setup{
		args: []string{"sh", "-c", "i=0; while [ $i -lt 100 ]; do (" + v.path + "; echo $?) & i=$((i+1)); done 2>/dev/null; wait"},
		decide: func(e *Exec) {
			if filepath.Base(e.Program.Path) == "victim" {
				n.Add(1)
			}
			denyVictim(e)
		},
	})
	b.wait()
	if got := strings.Count(b.out.String(), "126\n"); got != 100 || n.Load() != 100 {
		t.Errorf("of %d denied %d ended with 126", n.Load(), got)
	}
	if h := b.gate.Held(); len(h) > 0 {
		t.Errorf("still held: %v", h)
	}
}

// An interactive shell with job control goes on after a denied program as
// after any that failed.
func TestDeniedJob(t *testing.T) {
	v := newVictim(t)
	master, slave, err := pty.Open()
	must.OK(t, err)
	screen := newScreen(master)
	t.Cleanup(func() { screen.wait(); master.Close() })
	b := start(t, setup{
		args: []string{"bash", "--norc", "--noprofile", "-i"}, decide: denyVictim,
		env:   []string{"PS1=ready> ", "TERM=dumb", "HISTFILE="},
		stdin: slave, stdout: slave, stderr: slave,
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
	b.eventually("a prompt", func() bool { return strings.Contains(screen.since(0), "ready> ") })
	step(v.path+"\n", strings.TrimSpace(because), "ready> ")
	step("echo was $?\n", "was 126\r\n", "ready> ")
	step(v.path+" | cat; echo is ${PIPESTATUS[0]}\n", strings.TrimSpace(because), "is 126\r\n", "ready> ")
	step(v.path+" &\n", strings.TrimSpace(because), "ready> ")
	step("wait $!; echo ended $?\n", "ended 126\r\n", "ready> ")
	step("exit 6\n")
	if code := b.wait(); code != 6 {
		t.Errorf("the shell ended with %d", code)
	}
	v.spared(t)
}

// When the gate closes before a denied program has ended, that is killed.
func TestDeniedWhenClosing(t *testing.T) { both(t, testDeniedWhenClosing) }

func testDeniedWhenClosing(t *testing.T, o Options) {
	v := newVictim(t)
	b := start(t, setup{args: []string{"sh", "-c", v.path + " " + v.ran() + "; echo $?"}, decide: func(e *Exec) { holdBut(e, "sh") }, options: o})
	e := b.await("victim")
	b.gate.Hold()
	e.Deny("because")
	must.OK(t, b.gate.Close())
	code, said := b.wait(), b.out.String()
	killed := b.gate.exits.trace && code == 128+int(unix.SIGKILL) // what is traced doesn't outlive its tracer
	if !strings.HasPrefix(said, "12") && !killed {
		t.Errorf("it said %q and ended with %d", said, code)
	}
	v.spared(t)
	if err := unix.Kill(e.PID, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("it lives: %v", err)
	}
}

// A process that was started to become a program ends as that program would,
// if its owner says so; of its own accord it lives on.
func TestDeniedAsRun(t *testing.T) {
	for _, way := range []struct {
		name string
		deny func(*Exec)
		want string
	}{
		{"lives", func(e *Exec) { e.Deny("because") }, "lives 126\n"},
		{"ends", func(e *Exec) { e.DenyAsRun("because") }, "126\n"},
	} {
		t.Run(way.name, func(t *testing.T) {
			both(t, func(t *testing.T, o Options) {
				v := newVictim(t)
				// bash goes on after an exec that failed, as it is told to.
				script := fmt.Sprintf(`/bin/bash -c 'shopt -s execfail; exec %s %s; c=$?; echo -n "lives "; exit $c'; echo $?`, v.path, v.ran())
				b := start(t, setup{args: []string{"/bin/sh", "-c", script}, options: o, decide: func(e *Exec) {
					if filepath.Base(e.Program.Path) == "victim" {
						way.deny(e)
						return
					}
					e.Allow(NoExit)
				}})
				if code := b.wait(); code != 0 || b.out.String() != way.want || !strings.Contains(b.err.String(), because) {
					t.Errorf("it ended with %d and said %q and %q", code, b.out.String(), b.err.String())
				}
				v.spared(t)
			})
		})
	}
}
