package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
	"stepbox/session/screen"
)

// answering is an agent that answers each key on a row of its own, below those
// that it floods, without end, after y (plain) or c (coloured) and until s.
const answering = `stty -echo
line='the quick brown fox jumps over the lazy dog and runs on'
block=$(for i in $(seq 200); do printf '\e[3%dm%s\e[0m \e[1;38;5;%dm%d\e[0m\n' $((i%8)) "$line" $((i%256)) $i; done)
printf '\e[2J\e[1;12r'
yes "$line" & plain=$!
kill -STOP $plain
yes "$block" & coloured=$!
kill -STOP $coloured
printf '\e7\e[14;1Hanswered 0.\e8'
while IFS= read -rn1 k; do
	case $k in
	y) kill -CONT $plain;;
	c) kill -CONT $coloured;;
	s) kill -STOP $plain $coloured;;
	esac
	n=$((n+1))
	printf '\e7\e[14;1Hanswered %d.\e8' $n
done
`

// watched is a terminal with a program in it, read by the goroutine that
// presses the keys, so that an answer's time is that of the poll(2) that saw it.
type watched struct {
	b      *testing.B
	name   string
	cmd    *exec.Cmd
	pty    *os.File
	screen *screen.Screen
	keys   int
	read   int // bytes
	replyb []byte
}

func watch(b *testing.B, name string, cmd *exec.Cmd) *watched {
	b.Helper()
	return watchAt(b, name, cmd, 120, 35)
}

func watchAt(b *testing.B, name string, cmd *exec.Cmd, cols, rows int) *watched {
	b.Helper()
	w := &watched{b: b, name: name, cmd: cmd, screen: screen.New(cols, rows)}
	var err error
	if w.pty, err = pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		w.pty.Close()
	})
	w.screen.OnReply(func(p []byte) { w.replyb = append(w.replyb, p...) })
	return w
}

// until reads what the program draws until a condition holds or the time is up,
// and says when the bytes that made it hold were there to be read.
func (w *watched) until(limit time.Duration, cond func() bool) (at time.Time, ok bool) {
	w.b.Helper()
	buf := make([]byte, 64<<10)
	fd := int(w.pty.Fd())
	for end := time.Now().Add(limit); ; {
		left := time.Until(end)
		if left <= 0 {
			return end, false
		}
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(ready, int(left/time.Millisecond)+1); n <= 0 {
			if err != nil && err != unix.EINTR {
				w.b.Fatal(err)
			}
			continue
		}
		at = time.Now()
		n, err := unix.Read(fd, buf)
		if err != nil {
			w.b.Fatalf("%s ended: %v\n%s", w.name, err, strings.Join(w.screen.Text(), "\n"))
		}
		w.read += n
		w.screen.Write(buf[:n])
		w.press(string(w.replyb))
		w.replyb = w.replyb[:0]
		if cond() {
			return at, true
		}
	}
}

func (w *watched) press(keys string) {
	if keys != "" {
		if _, err := unix.Write(int(w.pty.Fd()), []byte(keys)); err != nil {
			w.b.Fatal(err)
		}
	}
}

func (w *watched) must(what string, cond func() bool) {
	w.b.Helper()
	if !cond() {
		if _, ok := w.until(30*time.Second, cond); !ok {
			w.b.Fatalf("%s never: %s\n%s", w.name, what, strings.Join(w.screen.Text(), "\n"))
		}
	}
}

func (w *watched) rest(d time.Duration) { w.until(d, func() bool { return false }) }

func (w *watched) shows(words string) bool {
	return strings.Contains(strings.Join(w.screen.Text(), "\n"), words)
}

// took presses keys and measures until the screen looks as it should then.
func (w *watched) took(keys, what string, cond func() bool) time.Duration {
	w.b.Helper()
	began := time.Now()
	w.press(keys)
	at, ok := w.until(30*time.Second, cond)
	if !ok {
		w.b.Fatalf("%s never: %s\n%s", w.name, what, strings.Join(w.screen.Text(), "\n"))
	}
	return at.Sub(began)
}

// answer presses a key that the agent answers.
func (w *watched) answer(key string) time.Duration {
	w.b.Helper()
	w.keys++
	words := fmt.Sprintf("answered %d.", w.keys)
	return w.took(key, words, func() bool { return w.shows(words) })
}

// focus moves Stepbox's own focus to a pane and back.
func (w *watched) focus(key string) time.Duration {
	w.b.Helper()
	words := map[string]string{"1": "┏ 1 Terminal", "2": "┏ 2 Changes"}[key]
	return w.took(leader+key, words, func() bool { return w.shows(words) })
}

// beside opens the agent that answers in Stepbox and in tmux.
func beside(b *testing.B) (box, mux *watched) {
	b.Helper()
	return besides(b, answering, "answered 0.")
}

// besides opens the same agent in both, and waits until it shows something.
func besides(b *testing.B, agent, shows string) (box, mux *watched) {
	b.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		b.Skip("tmux isn't installed: apt-get install tmux")
	}
	p := newPerson(b)
	p.write("agent", agent)
	box = watch(b, "stepbox", p.command(context.Background(), "run", "--mode", "watch", "--", "bash", "agent"))
	cmd := exec.Command("tmux", "-S", filepath.Join(p.dir, "tmux"), "-f", "/dev/null", "new-session", "bash agent")
	cmd.Dir, cmd.Env = p.project, box.cmd.Env
	mux = watch(b, "tmux", cmd)
	b.Cleanup(func() { exec.Command("tmux", "-S", filepath.Join(p.dir, "tmux"), "kill-server").Run() })
	for _, w := range []*watched{box, mux} {
		w.must("the agent is ready", func() bool { return w.shows(shows) })
	}
	return box, mux
}

// BenchmarkKey measures from a key's write to the terminal until what answers it
// can be read there, while the agent floods the same terminal and without. Each
// round presses ten keys in one program and then in the other.
func BenchmarkKey(b *testing.B) {
	for _, c := range []struct{ name, start string }{{"Idle", ""}, {"Plain", "y"}, {"Coloured", "c"}} {
		b.Run(c.name, func(b *testing.B) {
			box, mux := beside(b)
			all := map[string][]time.Duration{}
			for range 4 * b.N {
				for _, w := range []*watched{box, mux} {
					if c.start != "" {
						w.answer(c.start)
					}
					for i := range 10 {
						w.rest(time.Duration(40+7*i) * time.Millisecond) // at all phases of a frame
						all[w.name] = append(all[w.name], w.answer("."))
					}
					if w == box {
						for _, key := range []string{"2", "1", "2", "1", "2", "1", "2", "1", "2", "1"} {
							w.rest(45 * time.Millisecond)
							all["focus"] = append(all["focus"], w.focus(key))
						}
					}
					if c.start != "" {
						w.answer("s")
					}
					w.rest(200 * time.Millisecond)
				}
			}
			for _, name := range []string{"stepbox", "focus", "tmux"} {
				d := all[name]
				slices.Sort(d)
				ms := func(p int) float64 { return float64(d[(len(d)-1)*p/100].Microseconds()) / 1000 }
				b.ReportMetric(ms(50), name+"-p50-ms")
				b.ReportMetric(ms(90), name+"-p90-ms")
				b.Logf("%-8s %d keys: %.1f to %.1f ms, p25 %.1f, p50 %.1f, p75 %.1f, p90 %.1f", name, len(d), ms(0), ms(100), ms(25), ms(50), ms(75), ms(90))
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkWrite measures from a key that has the agent write a file until the file
// can be read in the Changes pane; what the key takes to the agent is in BenchmarkKey.
//
//	go test -run '^$' -bench Write -benchtime 1x ./session/e2e
func BenchmarkWrite(b *testing.B) {
	p := newPerson(b)
	p.write("agent", `stty -echo; echo ready.; while IFS= read -rn1 k; do n=$((n+1)); rm -f new*; echo $n >new$n.txt; done`)
	w := watch(b, "stepbox", p.command(b.Context(), "run", "--mode", "watch", "--", "bash", "agent"))
	w.must("the agent is ready", func() bool { return w.shows("ready.") })
	var all []time.Duration
	for i := range 40 * b.N {
		w.rest(time.Duration(300+7*(i%10)) * time.Millisecond) // at all phases of a frame, and of looking
		name := fmt.Sprintf("new%d.txt", i+1)
		all = append(all, w.took(".", name, func() bool { return w.shows(name) }))
	}
	slices.Sort(all)
	for _, p := range []int{25, 50, 75, 90} {
		b.ReportMetric(float64(all[(len(all)-1)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkIdle measures the processor time, in percent of one processor, of a
// session in which nothing happens, and of the list of sessions beside it; and the
// screens' memory.
func BenchmarkIdle(b *testing.B) {
	box, mux := beside(b)
	list := exec.Command(program)
	list.Dir, list.Env = box.cmd.Dir, box.cmd.Env
	home := watch(b, "home", list)
	home.must("it lists the session", func() bool { return home.shows("bash agent") })
	supervisor := find(b, "supervise", func(pid int) bool {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return strings.Contains(string(env), filepath.Dir(box.cmd.Dir)+"/data")
	})
	procs := map[string]int{"screen": box.cmd.Process.Pid, "home": list.Process.Pid, "tmux": mux.cmd.Process.Pid, "supervise": supervisor}
	for _, name := range []string{"holder", "pid1"} {
		procs[name] = find(b, name, func(pid int) bool { return stat(b, pid)[1] == strconv.Itoa(supervisor) })
	}
	box.rest(3 * time.Second) // what a start leaves to do
	before := map[string]time.Duration{}
	for name, pid := range procs {
		before[name] = used(b, pid)
	}
	began := time.Now()
	for range 30 * b.N {
		box.rest(500 * time.Millisecond)
		home.rest(400 * time.Millisecond)
		mux.rest(100 * time.Millisecond)
	}
	took := time.Since(began)
	for _, w := range []*watched{box, home} {
		b.ReportMetric(float64(memory(b, w.cmd.Process.Pid))/1e6, w.name+"-MB")
	}
	for name, pid := range procs {
		b.ReportMetric(100*float64(used(b, pid)-before[name])/float64(took), name+"-%")
	}
	b.ReportMetric(0, "ns/op")
}

// spinning is an agent that works: a mark that turns ten times a second, and how long it has.
const spinning = `perl -e '$| = 1;
	print "\e[2J\e[Hsome words of an agent\r\n\r\n";
	for ($n = 0;; $n++) {
		printf "\r\e[2K\e[35m%s\e[0m Thinking\xe2\x80\xa6 \e[2m(%ds, %d tokens)\e[0m", substr("|/-\\\\", $n % 4, 1), $n / 10, 40 * $n;
		select undef, undef, undef, 0.1;
	}'`

// BenchmarkSpinner counts the bytes that are written in a second, and the processor time
// of all that takes part, while an agent only turns a mark; beside tmux.
//
//	go test -run '^$' -bench Spinner -benchtime 1x ./session/e2e
func BenchmarkSpinner(b *testing.B) {
	box, mux := besides(b, spinning, "tokens)")
	server, err := exec.Command("tmux", "-S", filepath.Join(filepath.Dir(box.cmd.Dir), "tmux"), "display", "-p", "#{pid}").Output()
	must.OK(b, err)
	muxServer, err := strconv.Atoi(strings.TrimSpace(string(server)))
	must.OK(b, err)
	supervisor := find(b, "supervise", func(pid int) bool {
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // it may be gone
		return strings.Contains(string(env), filepath.Dir(box.cmd.Dir)+"/data")
	})
	procs := map[string]int{"screen": box.cmd.Process.Pid, "supervise": supervisor, "tmux": mux.cmd.Process.Pid, "tmux-server": muxServer}
	box.rest(3 * time.Second) // what a start leaves to do
	mux.rest(100 * time.Millisecond)
	before, read := map[string]time.Duration{}, map[string]int{"stepbox": box.read, "tmux": mux.read}
	for name, pid := range procs {
		before[name] = used(b, pid)
	}
	began := time.Now()
	for range 100 * b.N {
		box.rest(100 * time.Millisecond)
		mux.rest(100 * time.Millisecond)
	}
	took := time.Since(began)
	for _, w := range []*watched{box, mux} {
		b.ReportMetric(float64(w.read-read[w.name])/took.Seconds(), w.name+"-B/s")
	}
	for name, pid := range procs {
		b.ReportMetric(100*float64(used(b, pid)-before[name])/float64(took), name+"-%")
	}
	b.ReportMetric(0, "ns/op")
}

// memory is a process's part of the memory that it has, in bytes.
func memory(b *testing.B, pid int) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	must.OK(b, err)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == "Pss:" {
			kb, _ := strconv.Atoi(f[1]) // proc_pid_smaps(5): always a number
			return kb << 10
		}
	}
	b.Fatal("no Pss")
	return 0
}

// find finds one of Stepbox's processes by its command and a condition.
func find(b *testing.B, command string, is func(pid int) bool) int {
	b.Helper()
	procs, _ := filepath.Glob("/proc/[0-9]*") // a pattern that is well-formed
	for _, proc := range procs {
		line, _ := os.ReadFile(proc + "/cmdline") // it may be gone
		pid, _ := strconv.Atoi(filepath.Base(proc))
		if args := strings.Split(string(line), "\x00"); len(args) > 1 && args[1] == command && is(pid) {
			return pid
		}
	}
	b.Fatalf("there is no %s", command)
	return 0
}

// stat is /proc/PID/stat from the third field on: state, parent and so on.
func stat(b *testing.B, pid int) []string {
	b.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must.OK(b, err)
	return strings.Fields(string(line[strings.LastIndexByte(string(line), ')')+1:]))
}

// used is the processor time that a process has used.
func used(b *testing.B, pid int) time.Duration {
	b.Helper()
	fields := stat(b, pid)
	user, _ := strconv.Atoi(fields[11]) // proc_pid_stat(5): always numbers
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
