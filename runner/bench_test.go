package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"stepbox/runner/egress"
	"stepbox/session/e2e/must"
	"stepbox/session/e2e/pairstest"
)

// BenchmarkFirst measures the time from asking for a sandbox to the first byte
// of its agent's output, network included, beside other tools that show the same
// folders, as this user and as an ordinary one:
//
//	go test -run '^$' -bench First ./runner
func BenchmarkFirst(b *testing.B) {
	b.Run(fmt.Sprintf("uid=%d", os.Getuid()), func(b *testing.B) {
		ways := []pairstest.Way{{Name: "stepbox", Run: firstOfSandbox(b)}}
		if command, ok := pairstest.Runc(b, "/bin/echo", "hi"); ok {
			ways = append(ways, pairstest.Way{Name: "runc", Run: firstOfCommand(b, command)})
		}
		if command, ok := pairstest.Bwrap(b, "/bin/echo", "hi"); ok {
			ways = append(ways, pairstest.Way{Name: "bwrap", Run: firstOfCommand(b, command)})
		}
		pairstest.Compare(b, ways...)
	})
	benchAsUnprivileged(b, "^BenchmarkFirst$")
}

func firstOfSandbox(b *testing.B) func() time.Duration {
	r := newRig(b)
	r.spec.Argv = []string{"/bin/echo", "hi"}
	r.handler.Egress = &egress.Options{}
	id, n := r.spec.ID, 0
	return func() time.Duration {
		n++
		r.spec.ID = fmt.Sprintf("%s-%d", id, n)
		began := time.Now()
		s, err := Start(b.Context(), r.spec, r.handler)
		must.OK(b, err)
		if _, err := s.Terminal().Read(make([]byte, 1)); err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		_, _ = io.Copy(io.Discard, s.Terminal()) // ends with an error once the agent is gone
		if exit, err := s.Wait(); err != nil || exit.Code != 0 {
			b.Fatalf("the agent ended with %+v, %v", exit, err)
		}
		must.OK(b, s.Close(context.Background()))
		return took
	}
}

func firstOfCommand(b *testing.B, command func() *exec.Cmd) func() time.Duration {
	return func() time.Duration {
		cmd := command()
		out, err := cmd.StdoutPipe()
		must.OK(b, err)
		began := time.Now()
		must.OK(b, cmd.Start())
		_, err = out.Read(make([]byte, 1))
		took := time.Since(began)
		if err := errors.Join(err, cmd.Wait()); err != nil {
			b.Fatalf("%s: %v", cmd.Path, err)
		}
		return took
	}
}

// BenchmarkFreeze measures how long it takes to freeze a thousand processes, and to
// let them go on.
func BenchmarkFreeze(b *testing.B) {
	const n = 1000
	for _, role := range []string{"sleepers", "wakers"} {
		for _, how := range []string{"as detected", "traced"} {
			b.Run(role+" "+how, func(b *testing.B) {
				r := newRig(b)
				r.spec.Limits.Pids = 2 * n
				compile(b, r.project, "still")
				run := r.start("./still", role, strconv.Itoa(n))
				run.assertAllMove(n)
				if how == "traced" {
					run.withoutFreezer()
				}
				var longest, thaws time.Duration
				late := 0
				for b.Loop() {
					began := time.Now()
					err := run.Freeze(b.Context())
					longest = max(longest, time.Since(began))
					if errors.Is(err, ErrFreeze) {
						late++
						continue
					}
					must.OK(b, err)
					began = time.Now()
					must.OK(b, run.Thaw())
					thaws += time.Since(began)
				}
				b.ReportMetric(float64(longest.Milliseconds()), "longest-ms")
				b.ReportMetric(float64(thaws.Microseconds())/1000/float64(b.N), "thaw-ms")
				b.ReportMetric(float64(late), "late")
			})
		}
	}
}
