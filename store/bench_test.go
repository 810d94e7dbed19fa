package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

// timed runs f and reports the median, the 99th percentile and the worst beside the mean.
func timed(b *testing.B, f func(i int)) {
	b.Helper()
	took := make([]time.Duration, 0, 1<<16)
	i := 0
	for b.Loop() {
		at := time.Now()
		f(i)
		took = append(took, time.Since(at))
		i++
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-µs")
	b.ReportMetric(float64(took[len(took)-1].Nanoseconds())/1e3, "max-µs")
}

// typical is an action as sessions record it, of about 500 bytes.
func typical(n int64) Fact {
	return Fact{Kind: KindAction, Key: n, Event: "action.held", Doc: json.RawMessage(fmt.Sprintf(
		`{"n":%d,"kind":"command","state":"held","title":"go test ./...","verdict":"ask","rule":"ask go *","started_at":"2026-11-21T08:00:00.000000001Z","execs":1,"before":%d,"padding":%q}`,
		n, n, strings.Repeat("x", 300)))}
}

// A record that another process has open, as beside live sessions.
func BenchmarkOpen(b *testing.B) {
	s := open(b)
	timed(b, func(int) {
		s, err := Open(context.Background(), s.dir)
		must.OK(b, err)
		must.OK(b, s.Close())
	})
}

func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := open(b)
			id := session(b, s, "aaaaaaaa")
			facts := make([]Fact, n)
			timed(b, func(i int) {
				for k := range facts {
					facts[k] = typical(int64(i*n + k))
				}
				if _, err := s.Append(context.Background(), id, facts...); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// While another process appends without pause, far more than a session does.
func BenchmarkAppendBesideAnother(b *testing.B) {
	s := open(b)
	id := session(b, s, "aaaaaaaa")
	session(b, s, "shared")
	session(b, s, "own")
	cmd := child(b, "append", s.dir, "own", "100000000")
	must.OK(b, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // killed
	}()
	for ctx := b.Context(); ; { // it is at work
		if ev, err := s.Events(ctx, "own", 2, 1); err != nil || len(ev) == 1 {
			break
		}
	}
	timed(b, func(i int) {
		if _, err := s.Append(context.Background(), id, typical(int64(i))); err != nil {
			b.Fatal(err)
		}
	})
}

// Of many sessions at once, each of them a process that waits for every event.
func BenchmarkAppendSessions(b *testing.B) {
	const each = 500
	for _, n := range []int{1, 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := open(b)
			session(b, s, "shared")
			for i := range n {
				session(b, s, fmt.Sprintf("own%d", i))
			}
			for b.Loop() {
				var all sync.WaitGroup
				for i := range n {
					all.Go(func() {
						if err := child(b, "append", s.dir, fmt.Sprintf("own%d", i), strconv.Itoa(each)).Run(); err != nil {
							b.Error(err)
						}
					})
				}
				all.Wait()
			}
			b.ReportMetric(float64(n*each*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// From many goroutines: what group commit saves.
func BenchmarkAppendParallel(b *testing.B) {
	s := open(b)
	id := session(b, s, "aaaaaaaa")
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for n := rand.Int64N(1 << 30); pb.Next(); n++ {
			if _, err := s.Append(context.Background(), id, typical(n)); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkPutBody(b *testing.B) {
	for _, size := range []int{4 << 10, 16 << 10, 64 << 10, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			s := open(b)
			body := bytes.Repeat([]byte("0123456789abcdef"), size/16)
			b.SetBytes(int64(size))
			timed(b, func(i int) {
				binary.BigEndian.PutUint64(body, uint64(i)+1)
				if _, _, err := s.PutBody(context.Background(), bytes.NewReader(body)); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
	b.Run("there", func(b *testing.B) {
		s := open(b)
		body := bytes.Repeat([]byte("0123456789abcdef"), 256)
		timed(b, func(int) {
			if _, _, err := s.PutBody(context.Background(), bytes.NewReader(body)); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("1000x4KiB", func(b *testing.B) {
		s := open(b)
		bodies := make([][]byte, 1000)
		for i := range bodies {
			bodies[i] = make([]byte, 4<<10)
		}
		b.SetBytes(1000 * 4 << 10)
		timed(b, func(i int) {
			for k := range bodies {
				binary.BigEndian.PutUint64(bodies[k], uint64(i*1000+k))
			}
			if _, err := s.PutBodies(context.Background(), bodies); err != nil {
				b.Fatal(err)
			}
		})
	})
}

func BenchmarkJournal(b *testing.B) {
	for _, size := range []int{100, 4 << 10, 32 << 10} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			s := open(b)
			j := openJournal(b, s, session(b, s, "aaaaaaaa"))
			line := []byte("\x1b[32mok\x1b[0m  \tstepbox/store\t0.419s  the quick brown fox\r\n")
			p := bytes.Repeat(line, size/len(line)+1)[:size]
			b.SetBytes(int64(size))
			timed(b, func(i int) {
				if size > 8 {
					binary.BigEndian.PutUint64(p[size-8:], uint64(i)*0x9e3779b97f4a7c15)
				}
				must.OK(b, j.Output(p))
			})
			must.OK(b, j.Close())
		})
	}
}

// BenchmarkExamine verifies 100,000 events, and 100 MB of contents.
func BenchmarkExamine(b *testing.B) {
	s := open(b)
	events, contents := session(b, s, "events"), session(b, s, "contents")
	var facts []Fact
	for n := range int64(100_000) {
		facts = append(facts, Fact{Kind: KindExec, Key: n, Event: "exec.allowed", Doc: json.RawMessage(fmt.Sprintf(`{"id":%d,"argv":%q}`, n, strings.Repeat("x", 300)))})
		if len(facts) == 1000 {
			appendFacts(b, s, events, facts...)
			facts = facts[:0]
		}
	}
	const size = 100_000
	for n := range int64(1000) {
		h, _, err := s.PutBody(b.Context(), strings.NewReader(strings.Repeat(fmt.Sprintf("%-9d\n", n), size/10)))
		must.OK(b, err)
		appendFacts(b, s, contents, Fact{Kind: KindCheckpoint, Key: n, Event: "checkpoint", Doc: json.RawMessage(fmt.Sprintf(`{"root":%q}`, h))})
	}
	for id, bytes := range map[string]int64{events: 0, contents: 1000 * size} {
		b.Run(id, func(b *testing.B) {
			b.SetBytes(bytes)
			for b.Loop() {
				verify(b, s, id)
			}
		})
	}
}
