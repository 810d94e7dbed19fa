package store

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

// The child writes facts, bodies and terminal output as fast as it can, each
// kind in a goroutine, and says on its standard output what was acknowledged.
func init() {
	children["crash"] = func(args []string) error {
		dir, id := args[0], args[1]
		round, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		ctx := context.Background()
		s, err := Open(ctx, dir)
		if err != nil {
			return err
		}
		j, err := s.Journal(id)
		if err != nil {
			return err
		}
		var mu sync.Mutex
		said := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Printf(format+"\n", args...) // unbuffered: a line is one write
		}
		failed := make(chan error, 4)
		go func() {
			for i := 1; ; i++ {
				if err := j.Output(crashOutput(round, i)); err != nil {
					failed <- err
					return
				}
				said("t %d", i)
			}
		}()
		go func() {
			for i := 1; ; i++ {
				h, _, err := s.PutBody(ctx, bytes.NewReader(crashBody(round, i)))
				if err == nil {
					doc := fmt.Sprintf(`{"id":%d,"root":%q}`, round*100000+i, h)
					_, err = s.Append(ctx, id, Fact{Kind: KindCheckpoint, Key: int64(round*100000 + i), Event: "checkpoint", Doc: json.RawMessage(doc)})
				}
				if err != nil {
					failed <- err
					return
				}
				said("b %d", i)
			}
		}()
		for w := range 2 {
			go func() {
				for i := 1; ; i++ {
					n := int64(round*100000 + i*2 + w)
					ev, err := s.Append(ctx, id, fact(n, "held"), fact(n, "running"))
					if err != nil {
						failed <- err
						return
					}
					said("a %d %s", ev[1].Seq, ev[1].Hash)
				}
			}()
		}
		return <-failed
	}
}

// crashOutput is large enough that files of the journal fill up in one round.
func crashOutput(round, i int) []byte {
	return append(fmt.Appendf(nil, "%d:%d:", round, i), bytes.Repeat([]byte{byte(i)}, i*997%(48<<10))...)
}

func crashBody(round, i int) []byte {
	return append(fmt.Appendf(nil, "%d:%d:", round, i), make([]byte, i%2*40<<10)...)
}

// kill -9 at a random moment, again and again on the same record: it opens,
// everything that was acknowledged is there, and the chain holds.
func TestKill9(t *testing.T) {
	records := 6
	if testing.Short() || os.Getenv("STEPBOX_STORE_TEST_AGAIN") != "" {
		records = 1
	}
	for i := range records {
		t.Run(fmt.Sprint(i), func(t *testing.T) { crashAgain(t, 10) })
	}
}

func crashAgain(t *testing.T, rounds int) {
	dir, id := t.TempDir()+"/data", "crashing"
	session(t, openAt(t, dir), id)
	frames := make([]int, rounds) // acknowledged in each round
	for round := range rounds {
		acked := crashOnce(t, dir, id, round)
		frames[round] = acked.frames
		s, err := Open(t.Context(), dir)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for seq, hash := range acked.events {
			ev, err := s.Events(t.Context(), id, seq, 1)
			if err != nil || len(ev) != 1 || ev[0].Hash.String() != hash {
				t.Fatalf("round %d: event %d was acknowledged: %v, %v", round, seq, ev, err)
			}
		}
		for i := 1; i <= acked.bodies; i++ {
			want := crashBody(round, i)
			r, _, err := s.OpenBody(t.Context(), HashOf(want))
			if err != nil {
				t.Fatalf("round %d: body %d was acknowledged: %v", round, i, err)
			}
			got, err := io.ReadAll(r)
			r.Close()
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("round %d: body %d: %v", round, i, err)
			}
			if _, err := s.Doc(t.Context(), id, KindCheckpoint, int64(round*100000+i)); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		checkCrashed(t, s, id, frames[:round+1])
		verify(t, s, id)
		must.OK(t, s.Close())
	}
	// A last writer takes up and packs what all the others left.
	s := openAt(t, dir)
	j, err := s.Journal(id)
	must.OK(t, err)
	must.OK(t, j.Close())
	files, err := listJournal(j.dir)
	must.OK(t, err)
	for _, f := range files {
		if f.raw {
			t.Errorf("file %d wasn't packed", f.number)
		}
	}
	checkCrashed(t, s, id, frames)
	verify(t, s, id)
}

type acknowledged struct {
	events map[uint64]string
	bodies int
	frames int
}

func crashOnce(t *testing.T, dir, id string, round int) acknowledged {
	cmd := child(t, "crash", dir, id, strconv.Itoa(round))
	out, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	acked := acknowledged{events: make(map[uint64]string)}
	sc := bufio.NewScanner(out)
	var kill *time.Timer
	for sc.Scan() {
		if kill == nil { // it writes now; any moment may be the last
			kill = time.AfterFunc(time.Duration(rand.IntN(60_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		}
		f := strings.Fields(sc.Text())
		n, err := strconv.Atoi(f[1])
		must.OK(t, err)
		switch f[0] {
		case "a":
			acked.events[uint64(n)] = f[2]
		case "b":
			acked.bodies = n
		case "t":
			acked.frames = n
		}
	}
	err = cmd.Wait()
	if kill == nil || cmd.ProcessState.Success() || cmd.ProcessState.Exited() {
		t.Fatalf("round %d: the child ended by itself: %v", round, err)
	}
	return acked
}

// checkCrashed compares the journal with what each round's child was told.
func checkCrashed(t *testing.T, s *Store, id string, frames []int) {
	t.Helper()
	seen := make([]int, len(frames))
	var last time.Duration
	for f, err := range s.ReadJournal(id) {
		must.OK(t, err)
		var round, i int
		if _, err := fmt.Sscanf(string(f.Data[:min(40, len(f.Data))]), "%d:%d:", &round, &i); err != nil {
			t.Fatal(err)
		}
		if i != seen[round]+1 || !bytes.Equal(f.Data, crashOutput(round, i)) || f.At < last {
			t.Fatalf("frame %d of round %d at %v follows on %d at %v", i, round, f.At, seen[round], last)
		}
		seen[round], last = i, f.At
	}
	for r := range frames {
		if seen[r] < frames[r] {
			t.Fatalf("round %d: %d frames of %d that were acknowledged", r, seen[r], frames[r])
		}
	}
}

// The journal of one session has one writer.
func TestJournalHasOneWriter(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	j, err := s.Journal(id)
	must.OK(t, err)
	if j2, err := s.Journal(id); err == nil {
		t.Error(errors.Join(errors.New("a second writer was let in"), j2.Close()))
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
