package gate

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stepbox/session/e2e/must"
	"stepbox/session/e2e/pairstest"
)

func init() {
	roles["bench"] = playBench
	prepare["programs"] = readOnly
}

// readOnly shows the system's programs as a session's sandbox does.
func readOnly(string) error {
	if err := unix.Mount("/usr", "/usr", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return unix.Mount("", "/usr", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// playBench starts a program that does nothing a number of times, and prints how
// long the fastest tenth of the starts takes, with the end, in nanoseconds.
func playBench(args []string) {
	n, _ := strconv.Atoi(args[0])
	var times []time.Duration
	attr := &syscall.ProcAttr{Env: []string{"PATH=/bin"}, Files: []uintptr{0, 1, 2}}
	for range n {
		before := time.Now()
		pid, err := syscall.ForkExec("/bin/true", []string{"true"}, attr)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		times = append(times, time.Since(before))
	}
	slices.Sort(times)
	fmt.Println(times[n/10].Nanoseconds())
}

// BenchmarkExec is what a program's start costs, from without a sandbox to
// with all that the gate can do, and under strace(1) for comparison: of each
// round the fastest tenth of 200 starts.
//
//	go test -run '^$' -bench Exec -benchtime 1x ./runner/gate
func BenchmarkExec(b *testing.B) {
	const starts = "200"
	var host []float64
	tenth := func(out string) time.Duration {
		n, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
		must.OK(b, err)
		return time.Duration(n)
	}
	outside := func(front ...string) func() time.Duration {
		return func() time.Duration {
			self, err := os.Executable()
			must.OK(b, err)
			args := append(front, self, starts)
			c := exec.Command(args[0], args[1:]...)
			c.Env = append(os.Environ(), roleEnv+"=bench", "GOMAXPROCS=2")
			out, err := c.Output()
			must.OK(b, err)
			return tenth(string(out))
		}
	}
	ways := []pairstest.Way{{Name: "host", Run: func() time.Duration {
		took := outside()()
		host = append(host, took.Seconds()*1e6)
		return took
	}}}
	added := map[string][]float64{}
	box := func(name, skip string, o Options, with ...Allowance) {
		ways = append(ways, pairstest.Way{Name: name, Run: func() time.Duration {
			s := start(b, setup{role: "bench", args: []string{starts}, skip: skip, options: o, decide: func(e *Exec) { e.Allow(with...) }, quiet: true, env: []string{prepareEnv + "=programs"}})
			s.wait()
			took := tenth(s.out.String())
			added[name] = append(added[name], took.Seconds()*1e6-host[len(host)-1])
			return took
		}})
	}
	box("sandbox", "native", Options{})
	box("allowed", "", Options{}, Unverified, NoExit)
	box("verified", "", Options{}, NoExit)
	box("verified+exit", "", Options{})
	box("exit-held", "", Options{}, HoldExit)
	box("exit-traced", "", Options{traceExits: true})
	if strace, err := exec.LookPath("strace"); err == nil {
		ways = append(ways, pairstest.Way{Name: "strace", Run: outside(strace, "-f", "-o", "/dev/null", "-e", "trace=execve")})
	}
	pairstest.Compare(b, ways...)
	for _, name := range []string{"sandbox", "allowed", "verified", "verified+exit", "exit-held", "exit-traced"} {
		l := added[name][1:] // the first warmed up
		slices.Sort(l)
		b.ReportMetric(l[len(l)/2], name+"-added-µs")
	}
}
