package pairstest

import (
	"flag"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		sample []float64
		want   quartiles
	}{
		{[]float64{7}, quartiles{7, 7, 7}},
		{[]float64{3, 1}, quartiles{2, 2, 2}},
		{[]float64{5, 1, 4, 2, 3}, quartiles{2, 3, 4}},
		{[]float64{9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, quartiles{1, 1, 1}},
	} {
		if got := spread(c.sample); got != c.want {
			t.Errorf("%v: %v, not %v", c.sample, got, c.want)
		}
	}
}

// TestCompare: the ways take turns, at least ten times, and the ratio is the
// first one's to the others.
func TestCompare(t *testing.T) {
	benchtime := flag.Lookup("test.benchtime").Value
	defer benchtime.Set(benchtime.String())
	must.OK(t, benchtime.Set("1x"))
	var order []string
	way := func(name string, took time.Duration) Way {
		return Way{name, func() time.Duration { order = append(order, name); return took }}
	}
	result := testing.Benchmark(func(b *testing.B) {
		order = nil
		Compare(b, way("a", 30*time.Millisecond), way("b", 20*time.Millisecond))
	})
	if len(order) < 2*(least+1) || len(order)%2 != 0 {
		t.Fatalf("%d runs", len(order))
	}
	for i, name := range order {
		if name != []string{"a", "b"}[i%2] {
			t.Fatalf("run %d is %s", i, name)
		}
	}
	for unit, want := range map[string]float64{"a-ms": 30, "b-ms": 20, "x-b": 1.5} {
		if got := result.Extra[unit]; got != want {
			t.Errorf("%s is %v, not %v", unit, got, want)
		}
	}
}
