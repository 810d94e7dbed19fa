package store

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"stepbox/session/e2e/must"
)

// When something was printed is known of packed files without reading them, of what isn't
// packed yet by reading; a resize or a keyframe isn't printed.
func TestPrinted(t *testing.T) { synctest.Test(t, printed) }

func printed(t *testing.T) {
	s := open(t)
	id := session(t, s, "aaaaaaaa")
	began := time.Now()
	j, err := s.Journal(id)
	must.OK(t, err)
	t.Cleanup(func() { _ = j.Close() })
	until := func(at time.Duration) { time.Sleep(time.Until(began.Add(at))) }
	print := func(at time.Duration, n int) {
		until(at)
		must.OK(t, j.Output(make([]byte, n)))
	}
	const m = time.Minute
	must.OK(t, j.Keyframe(80, 24, nil))
	print(3*m, 1)
	print(4*m, 1)
	until(30 * m)
	must.OK(t, j.Resize(90, 24))
	print(60*m, rotateAt) // which makes it full
	print(61*m, 1)
	print(63*m, 1)
	told := func() (out []time.Duration) {
		t.Helper()
		r := must.Get(s.Recording(t.Context(), id))
		for n, c := range r.chunks {
			if c.Printed == nil {
				t.Errorf("file %d doesn't say when it was printed", n)
			}
		}
		for from, to := range r.Printed() {
			out = append(out, from, to)
		}
		return out
	}
	want := []time.Duration{3 * m, 4 * m, 60 * m, 61 * m, 63 * m, 63 * m}
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("while it is written: %v, want %v", got, want)
	}
	must.OK(t, j.Close())
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("packed: %v, want %v", got, want)
	}
	for _, f := range must.Get(s.Recording(t.Context(), id)).files {
		write(t, j.chunk(f.number), nil)
	}
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("without reading a file: %v, want %v", got, want)
	}
}

// However often something was printed, a list is short, has it all, and parts it at the
// longest pauses.
func TestJoined(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var in []span
	at := int64(0)
	for _, n := range rng.Perm(3 * spansMost) {
		from := at + pause/2 + int64(n)*pause/1000 // some are no longer than a pause
		at = from + rng.Int64N(1000)
		in = append(in, span{from, at})
	}
	out := joined(in, pause)
	if len(out) != spansMost {
		t.Fatalf("of %d there are %d", len(in), len(out))
	}
	least, most, i := int64(1<<62), int64(0), 0 // of the pauses that part, of those that don't
	for k, s := range in {
		if s[0] > out[i][1] {
			i++
		}
		if s[0] < out[i][0] || s[1] > out[i][1] {
			t.Fatalf("%v isn't in it", s)
		}
		if k == 0 {
			continue
		}
		if p := s[0] - in[k-1][1]; s[0] == out[i][0] {
			least = min(least, p)
		} else {
			most = max(most, p)
		}
	}
	if least <= most {
		t.Errorf("it is parted at a pause of %d ms, and not at one of %d ms", least, most)
	}
	few := []span{{0, 5}, {5 + pause, 6 + pause}, {7 + 2*pause, 8 + 2*pause}}
	if got := joined(few, pause); !slices.Equal(got, []span{{0, 6 + pause}, few[2]}) {
		t.Errorf("of few it is %v", got)
	}
}
