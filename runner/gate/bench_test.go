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
)

func init() { roles["bench"] = playBench }

// playBench starts a program that does nothing a number of times, and prints
// how long a start with its end takes: the mean, the fastest tenth and the
// median, in nanoseconds.
func playBench(args []string) {
	n, _ := strconv.Atoi(args[0])
	var times []time.Duration
	attr := &syscall.ProcAttr{Env: []string{"PATH=/bin"}, Files: []uintptr{0, 1, 2}}
	var all time.Duration
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
		all += times[len(times)-1]
	}
	slices.Sort(times)
	fmt.Println(all.Nanoseconds()/int64(n), times[n/10].Nanoseconds(), times[n/2].Nanoseconds())
}

// BenchmarkExec is what a program's start costs, from without a sandbox to
// with all that the gate can do, and under strace(1) for comparison.
//
//	go test -run '^$' -bench Exec -benchtime 2000x ./runner/gate
func BenchmarkExec(b *testing.B) {
	report := func(b *testing.B, out string) {
		b.Helper()
		var mean, tenth, median float64
		if _, err := fmt.Sscan(strings.TrimSpace(out), &mean, &tenth, &median); err != nil {
			b.Fatalf("%q: %v", out, err)
		}
		b.ReportMetric(mean, "ns/op")
		b.ReportMetric(tenth/1000, "p10-µs")
		b.ReportMetric(median/1000, "p50-µs")
	}
	host := func(b *testing.B, front ...string) {
		self, err := os.Executable()
		if err != nil {
			b.Fatal(err)
		}
		args := append(front, self, strconv.Itoa(b.N))
		c := exec.Command(args[0], args[1:]...)
		c.Env = append(os.Environ(), roleEnv+"=bench", "GOMAXPROCS=2")
		out, err := c.Output()
		if err != nil {
			b.Fatal(err)
		}
		report(b, string(out))
	}
	box := func(b *testing.B, skip string, o Options, with ...Allowance) {
		s := start(b, setup{role: "bench", args: []string{strconv.Itoa(b.N)}, skip: skip, options: o, decide: func(e *Exec) { e.Allow(with...) }, quiet: true})
		s.wait()
		report(b, s.out.String())
	}
	b.Run("host", func(b *testing.B) { host(b) })
	b.Run("sandbox", func(b *testing.B) { box(b, "native", Options{}) })
	b.Run("notified", func(b *testing.B) { box(b, "", Options{}, Unverified, NoExit) })
	b.Run("notified,exit", func(b *testing.B) { box(b, "", Options{}, Unverified) })
	b.Run("verified", func(b *testing.B) { box(b, "", Options{}, NoExit) })
	b.Run("verified,exit", func(b *testing.B) { box(b, "", Options{}) })
	b.Run("verified,exit held", func(b *testing.B) { box(b, "", Options{}, HoldExit) })
	b.Run("verified,exit traced", func(b *testing.B) { box(b, "", Options{traceExits: true}) })
	b.Run("strace", func(b *testing.B) {
		strace, err := exec.LookPath("strace")
		if err != nil {
			b.Skip(err)
		}
		host(b, strace, "-f", "-o", "/dev/null", "-e", "trace=execve")
	})
}
