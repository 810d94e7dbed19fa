package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

// Goroutines that append to the same and to other sessions each get their own
// events, whole and in order, and the chains hold.
func TestConcurrentGoroutines(t *testing.T) {
	s := open(t)
	const sessions, writers, rounds = 3, 4, 25
	var wg sync.WaitGroup
	for i := range sessions {
		id := session(t, s, fmt.Sprintf("session%d", i))
		for w := range writers {
			wg.Go(func() {
				for r := range rounds {
					n := int64(w*rounds + r)
					events, err := s.Append(context.Background(), id, fact(n, "held"), fact(n, "running"))
					if err != nil || len(events) != 2 || events[0].Key != n || events[1].Seq != events[0].Seq+1 {
						t.Errorf("Append = %+v, %v", events, err)
						return
					}
					if _, err := s.PutBodies(context.Background(), [][]byte{fmt.Appendf(nil, "%s %d", id, r)}); err != nil {
						t.Error(err)
					}
					if d, err := s.Doc(context.Background(), id, KindAction, n); err != nil || len(d) == 0 {
						t.Errorf("what was recorded isn't there: %v", err)
					}
				}
			})
		}
	}
	wg.Wait()
	for i := range sessions {
		id := fmt.Sprintf("session%d", i)
		verify(t, s, id)
		if docs, err := s.Docs(t.Context(), id, KindAction, -1, 0); err != nil || len(docs) != writers*rounds {
			t.Errorf("%d actions, %v", len(docs), err)
		}
	}
}

// One caller's error isn't another's, although they share a transaction.
func TestErrorIsItsOwn(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			if i%2 == 0 {
				if _, err := s.Append(context.Background(), "nobody", fact(1, "held")); !errors.Is(err, ErrNotFound) {
					t.Errorf("Append to no session: %v", err)
				}
				return
			}
			if _, err := s.Append(context.Background(), id, fact(int64(i), "held")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	verify(t, s, id)
	if ev, err := s.Events(t.Context(), id, 0, 0); err != nil || len(ev) != 21 {
		t.Errorf("%d events, %v", len(ev), err)
	}
}

// A caller that gives up before its turn learns that nothing was recorded,
// though another program holds the lock; later callers aren't harmed.
func TestGivingUpWhileLocked(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	c, err := s.keep.db.Conn(t.Context())
	must.OK(t, err)
	defer c.Close()
	if _, err := c.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Append(ctx, id, fact(1, "held")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append = %v", err)
	}
	if _, err := c.ExecContext(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if ev := appendFacts(t, s, id, fact(2, "held")); ev[0].Seq != 2 {
		t.Errorf("event %d: what was given up was recorded", ev[0].Seq)
	}
	verify(t, s, id)
}

// The log is moved into the database by the keeper and doesn't grow for ever.
func TestLogIsMoved(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	var fs []Fact
	for i := range int64(100) {
		fs = append(fs, fact(i, strings.Repeat("x", 4000)))
	}
	for left, deadline := int64(-1), time.Now().Add(2*time.Minute); left != 0; {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes of log aren't moved", left)
		}
		appendFacts(t, s, id, fs...)
		log, moved, err := s.keep.checkpoint("NOOP")
		must.OK(t, err)
		if log > 2*moveHard {
			t.Fatalf("%d bytes of log", log)
		}
		if moved > 0 {
			left = 0
		} else {
			left = log
		}
	}
}

func init() {
	children["append"] = func(args []string) error {
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		s, err := Open(context.Background(), args[0])
		if err != nil {
			return err
		}
		for i := range n {
			id := args[1]
			if i%2 == 0 {
				id = "shared"
			}
			f := fact(int64(i), "held")
			if _, err := s.Append(context.Background(), id, f); err != nil {
				return errors.Join(err, s.Close())
			}
		}
		return s.Close()
	}
}

// Many processes that open a new record at once and write to it: one makes the
// schema, all write, nothing is lost.
func TestConcurrentProcesses(t *testing.T) {
	dir := t.TempDir() + "/data"
	const processes, each = 5, 60
	var wg sync.WaitGroup
	for range processes { // who is first makes it
		wg.Go(func() {
			s, err := Open(context.Background(), dir)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := openAt(t, dir)
	session(t, s, "shared")
	for i := range processes {
		session(t, s, fmt.Sprintf("own%d", i))
		cmd := child(t, "append", dir, fmt.Sprintf("own%d", i), strconv.Itoa(each))
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if ev, err := s.Events(t.Context(), "shared", 0, 0); err != nil || len(ev) != 1+processes*each/2 {
		t.Errorf("%d events, %v", len(ev), err)
	}
	verify(t, s, "shared")
	for i := range processes {
		verify(t, s, fmt.Sprintf("own%d", i))
	}
}
