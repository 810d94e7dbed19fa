package budget

import (
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBytesAreNeverMoreThanGiven(t *testing.T) {
	var b Bytes
	const limit, takers = 1 << 20, 8
	b.Give(limit)
	var all sync.WaitGroup
	got := make([]int, takers)
	for i := range takers {
		all.Go(func() {
			for n := 1; ; n = n*7%4096 + 1 {
				took := b.Take(n)
				if got[i] += took; took < n {
					return
				}
				if n%5 == 0 {
					b.Back(took)
					got[i] -= took
				}
			}
		})
	}
	all.Wait()
	for b.Take(1) == 1 { // what was given back at the end
		got[0]++
	}
	sum := 0
	for _, n := range got {
		sum += n
	}
	if sum != limit || b.taken.Load() != limit {
		t.Errorf("%d and %d were taken of %d", sum, b.taken.Load(), limit)
	}
	b.Give(limit + 5)
	if b.Take(5) != 5 {
		t.Error("more was given and isn't there")
	}
}

func TestRateHoldsInAnyMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Rate
		most := rapid.IntRange(1, 20).Draw(t, "most")
		r.Give(most)
		now := time.Unix(1_700_000_000, 0)
		var happened []time.Time
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90_000).Draw(t, "wait")) * time.Millisecond)
			n := rapid.IntRange(1, 8).Draw(t, "n")
			took := r.Take(n, now)
			if took < 0 || took > n {
				t.Fatalf("%d of %d", took, n)
			}
			for range took {
				happened = append(happened, now)
			}
			in := 0
			for _, at := range happened {
				if now.Sub(at) < time.Minute {
					in++
				}
			}
			if in > most {
				t.Fatalf("%d in a minute, of %d", in, most)
			}
			if took < n && in < most && happened[len(happened)-1].Before(now.Add(-62*time.Second)) {
				t.Fatalf("nothing happened for a minute, and only %d of %d may", took, n)
			}
		}
	})
}

func TestRateAgain(t *testing.T) {
	var r Rate
	now := time.Unix(1_700_000_000, 0)
	if r.Take(1, now) != 0 {
		t.Error("nothing was given")
	}
	r.Give(10)
	if r.Take(7, now) != 7 || r.Take(7, now) != 3 || r.Take(1, now.Add(59*time.Second)) != 0 {
		t.Error("it isn't ten")
	}
	r.Back(2)
	if n := r.Take(5, now.Add(-time.Hour)); n != 0 { // what came back was of a second before
		t.Errorf("%d", n)
	}
	r.Again()
	if r.Take(11, now) != 10 {
		t.Error("again isn't ten")
	}
	if n := r.Take(20, now.Add(121*time.Second)); n != 10 {
		t.Errorf("two minutes later %d may", n)
	}
}
