package replay_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
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

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/files"
	"stepbox/session/replay"
	"stepbox/session/screen"
	"stepbox/session/server"
	"stepbox/store"
	"stepbox/store/storetest"
	"stepbox/ui/link"
)

// The session that is replayed: small, unless the large one is asked for with
// -replay.megabytes 1024 -replay.events 100000.
var (
	megabytes = flag.Int("replay.megabytes", 16, "what the agent of the benchmarks has printed")
	events    = flag.Int("replay.events", 5000, "events of the benchmarks' session")
)

const longSession = "aaaaaaaa"

// long makes the session: an agent's screens, redrawn in place, and coloured logs.
func long(b *testing.B) (*store.Store, time.Duration) {
	b.Helper()
	st := storetest.New(b)
	s := api.Session{ID: longSession, Name: "long", State: api.SessionEnded, StartedAt: time.Now().UTC(), Cols: 120, Rows: 35}
	doc, err := json.Marshal(s)
	if err == nil {
		_, err = st.CreateSession(b.Context(), s.ID, doc)
	}
	var j *store.Journal
	if err == nil {
		j, err = st.Journal(s.ID)
	}
	must.OK(b, err)
	sc := screen.New(s.Cols, s.Rows)
	rng := rand.New(rand.NewPCG(1, 2))
	total, each, n := int64(*megabytes)<<20, *events/4, 0
	var printed, keys int64
	for printed < total {
		if j.Fresh() {
			k := sc.KeyframeWithin(500, 256<<10)
			keys += int64(len(k))
			err = j.Keyframe(s.Cols, s.Rows, k)
		}
		p := drawn(rng)
		if err = errors.Join(err, j.Output(p)); err != nil {
			b.Fatal(err)
		}
		_, _ = sc.Write(p)
		printed += int64(len(p))
		for ; int64(n)*total < printed*int64(each) && n < each; n++ {
			if _, err := st.Append(b.Context(), s.ID, acted(n+1)...); err != nil {
				b.Fatal(err)
			}
		}
	}
	must.OK(b, j.Close())
	b.Logf("%d MB printed, %d KB of keyframes, %d actions, in %v", printed>>20, keys>>10, n, time.Since(s.StartedAt).Round(time.Second))
	return st, time.Since(s.StartedAt)
}

// drawn is what an agent prints at once.
func drawn(rng *rand.Rand) []byte {
	var out bytes.Buffer
	words := []string{"func", "return", "session", "the", "if err != nil", "ok", "0.42s", "PASS", "./...", "漢字", "é", "→", "┃"}
	line := func() {
		for range 4 + rng.IntN(10) {
			fmt.Fprintf(&out, "\x1b[38;5;%dm%s\x1b[39m ", rng.IntN(256), words[rng.IntN(len(words))])
		}
	}
	if rng.IntN(4) > 0 {
		out.WriteString("\x1b[?2026h\x1b[12A")
		for range 12 {
			out.WriteString("\r\x1b[2K")
			line()
			out.WriteString("\x1b[1B")
		}
		out.WriteString("\x1b[?2026l")
		return out.Bytes()
	}
	for range 8 {
		line()
		out.WriteString("\r\n")
	}
	return out.Bytes()
}

// acted are the events of an action, about as large as they are in sessions.
func acted(n int) (out []store.Fact) {
	a := api.Action{
		N: n, Kind: api.KindCommand, Title: "go test ./session/replay -run " + strconv.Itoa(n), Rule: "allow go test *", By: "rule", StartedAt: time.Now(),
		Claim: &api.Claimed{N: int64(n), Tool: "Bash", Text: strings.Repeat("Let me run the tests again. ", 8)},
	}
	if n%5 == 0 {
		a.Kind = api.KindEdit
	}
	for _, state := range []api.ActionState{api.ActionHeld, api.ActionRunning, api.ActionEnded} {
		a.State = state
		doc, _ := json.Marshal(a) // of such a value it can't fail
		out = append(out, store.Fact{Kind: store.KindAction, Event: "action." + string(state), Key: int64(n), Doc: doc})
	}
	if n%10 == 0 {
		doc, _ := json.Marshal(api.Question{ID: int64(n / 10), Action: n, Title: a.Title})
		return append(out, store.Fact{Kind: store.KindQuestion, Event: "question.opened", Key: int64(n / 10), Doc: doc})
	}
	doc, _ := json.Marshal(api.Exec{ID: int64(n), Action: n})
	return append(out, store.Fact{Kind: store.KindExec, Event: "exec.allowed", Key: int64(n), Doc: doc})
}

// client asks a hub for a store's sessions, as the screens do.
func client(b *testing.B, st *store.Store) *api.Client {
	b.Helper()
	h := files.NewHistory(st, func(string) bool { return false })
	pipe := server.NewPipe()
	srv := &http.Server{Handler: server.NewHub(server.Services{Reader: h, Keeper: struct{ server.Keeper }{}, Replayer: h}, func(string) server.Supervisor { return server.Supervisor{} }, slog.New(slog.DiscardHandler))}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(pipe) }() // ends with Close
	c := api.NewClientFunc(pipe.Dial)
	b.Cleanup(func() {
		c.Close()
		srv.Close()
		pipe.Close()
		<-done
	})
	return c
}

// timed runs f and reports the median, the 90th percentile and the worst, and the
// processor time of both sides, which tells more on a busy machine.
func timed(b *testing.B, f func() error) {
	b.Helper()
	var took []time.Duration
	before := spent(b)
	for b.Loop() {
		at := time.Now()
		must.OK(b, f())
		took = append(took, time.Since(at))
	}
	b.ReportMetric(float64((spent(b)-before).Microseconds())/1e3/float64(len(took)), "cpu-ms")
	slices.Sort(took)
	for name, at := range map[string]int{"p50-ms": len(took) / 2, "p90-ms": len(took) * 9 / 10, "max-ms": len(took) - 1} {
		b.ReportMetric(float64(took[at].Microseconds())/1e3, name)
	}
}

// spent is the processor time of this process.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	must.OK(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// arrive takes a terminal's connection to its keyframe, on a new screen.
func arrive(conn *api.TerminalConn, err error) error {
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		f, err := conn.Read()
		if err != nil {
			return err
		}
		if f.Kind == api.FrameKeyframe {
			_, err := screen.New(f.Cols, f.Rows).Write(f.Data)
			return err
		}
	}
}

// drawing is an emulator as far as an opening needs one.
type drawing struct {
	link.Emulator
	io.Writer
}

func (d drawing) Write(p []byte) (int, error) { return d.Writer.Write(p) }
func (d drawing) At(time.Duration)            {}

// whole opens the replay in the middle, as the command does, up to when everything is
// there that the first complete screen shows.
func whole(ctx context.Context, c *api.Client) error {
	l := link.Open(ctx, link.FromAPI(c), longSession, func(cols, rows int) link.Emulator { return drawing{Writer: screen.New(cols, rows)} })
	defer l.Close()
	l.Replay().Jump("+1s")
	course := make(chan error, 1)
	go func() { _, err := c.Timeline(ctx, longSession, 400, 0); course <- err }()
	caught, moved := false, false
	for !caught || !moved {
		switch m := l.Next()().(type) {
		case link.Events:
			caught = m.Caught
		case link.Moved:
			moved = m.State != nil
			if m.Err != nil {
				return m.Err
			}
		}
	}
	return <-course
}

// BenchmarkLong opens a long session, and goes anywhere in it, as a screen does.
func BenchmarkLong(b *testing.B) {
	st, length := long(b)
	ctx, c := b.Context(), client(b, st)
	rng := rand.New(rand.NewPCG(3, 4))
	last, err := st.LastEvent(ctx, longSession)
	must.OK(b, err)
	b.Run("open", func(b *testing.B) {
		timed(b, func() error { return whole(ctx, c) })
	})
	b.Run("open-terminal", func(b *testing.B) {
		timed(b, func() error { return arrive(c.Terminal(ctx, longSession)) })
	})
	b.Run("timeline", func(b *testing.B) {
		timed(b, func() error { _, err := c.Timeline(ctx, longSession, 0, 0); return err })
	})
	b.Run("timeline-continued", func(b *testing.B) { // by 20 events
		s, err := c.Session(ctx, longSession)
		must.OK(b, err)
		s.State = api.SessionRunning
		timed(b, func() error { _, err := replay.Timeline(ctx, st, s, 0, last-20); return err })
	})
	b.Run("seek-terminal", func(b *testing.B) {
		timed(b, func() error {
			return arrive(c.TerminalAt(ctx, longSession, time.Duration(rng.Int64N(int64(length)))))
		})
	})
	for _, most := range []int{500, 2000} {
		b.Run(fmt.Sprint("seek-events-", most), func(b *testing.B) {
			timed(b, func() error {
				for _, err := range c.EventsAt(ctx, longSession, 1+rng.Uint64N(last), most) {
					if err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	b.Run("asciinema", func(b *testing.B) {
		program, err := exec.LookPath("asciinema")
		if err != nil {
			b.Skip("there is no asciinema")
		}
		name := cast(b, st)
		cmd := exec.CommandContext(ctx, program, "cat", name) // play without the waits: it has to read all of it
		cmd.Env = append(os.Environ(), "HOME="+b.TempDir(), "LC_ALL=C.UTF-8")
		at := time.Now()
		tty, err := pty.Start(cmd) // it wants one
		must.OK(b, err)
		defer tty.Close()
		_, _ = io.Copy(io.Discard, tty) // EIO is its end
		must.OK(b, cmd.Wait())
		b.ReportMetric(float64(time.Since(at).Microseconds())/1e3, "once-ms")
	})
}

// cast writes the session as an asciicast, version 2.
func cast(b *testing.B, st *store.Store) string {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "long.cast"))
	must.OK(b, err)
	defer f.Close()
	out := bufio.NewWriterSize(f, 1<<20)
	enc := json.NewEncoder(out)
	err = enc.Encode(map[string]int{"version": 2, "width": 120, "height": 35})
	for f, ferr := range st.ReadJournal(longSession) {
		if err = errors.Join(err, ferr); err != nil {
			break
		}
		err = enc.Encode([]any{f.At.Seconds(), "o", string(f.Data)})
	}
	if err = errors.Join(err, out.Flush()); err != nil {
		b.Fatal(err)
	}
	if info, err := f.Stat(); err == nil {
		b.Logf("%d MB of asciicast", info.Size()>>20)
	}
	return f.Name()
}
