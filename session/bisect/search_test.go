package bisect

import (
	"context"
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// A fault at any step is found by no more runs than halving takes and two for the
// ends, and several at once find the same.
func TestPlantedFault(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "steps")
		fault := rapid.IntRange(1, n).Draw(t, "fault")
		jobs := rapid.IntRange(1, 5).Draw(t, "jobs")
		s := search{last: n, jobs: jobs, test: func(ctx context.Context, state int, _ bool) (verdict, error) {
			if state >= fault {
				return fails, nil
			}
			return passes, nil
		}}
		ok, err := s.ends(t.Context())
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		low, high, err := s.between(t.Context())
		if err != nil || low != fault-1 || high != fault {
			t.Fatalf("it is between %d and %d, not before %d (%v)", low, high, fault, err)
		}
		if most := bits.Len(uint(n-1)) + 2; jobs == 1 && s.runs > most {
			t.Fatalf("%d steps took %d runs, not %d", n, s.runs, most)
		}
		low, high, err = s.sure(t.Context(), low, high)
		if err != nil || high-low != 1 || s.again != 2 || len(s.flaky) > 0 {
			t.Fatalf("once more: %d..%d, %d runs, flaky %v (%v)", low, high, s.again, s.flaky, err)
		}
	})
}

// What is skipped widens the answer to what looking at every state would leave.
func TestSkippedAgainstLinear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "steps")
		fault := rapid.IntRange(1, n).Draw(t, "fault")
		is := make([]verdict, n+1)
		for i := range is {
			is[i] = passes
			if i >= fault {
				is[i] = fails
			}
			if i > 0 && i < n && rapid.IntRange(0, 2).Draw(t, "skip") == 0 {
				is[i] = skipped
			}
		}
		low, high := 0, n
		for i, v := range is {
			if v == passes {
				low = i
			}
			if v == fails {
				high = min(high, i)
			}
		}
		s := search{last: n, jobs: rapid.IntRange(1, 4).Draw(t, "jobs"), test: func(_ context.Context, state int, _ bool) (verdict, error) { return is[state], nil }}
		if ok, err := s.ends(t.Context()); err != nil || !ok {
			t.Fatal(ok, err)
		}
		a, b, err := s.between(t.Context())
		if err != nil || a != low || b != high {
			t.Fatalf("it is between %d and %d, and by looking at all between %d and %d (%v)", a, b, low, high, err)
		}
	})
}

// A result that comes out otherwise is named, and the answer leaves it out.
func TestFlaky(t *testing.T) {
	for name, c := range map[string]struct {
		flips     []int
		low, high int
	}{
		"the one that passed": {[]int{7}, 6, 8}, "the one that failed": {[]int{8}, 7, 9},
		"those that passed": {[]int{7, 6, 4}, 0, 8}, "one before and two after": {[]int{7, 8, 9}, 6, 16},
	} {
		t.Run(name, func(t *testing.T) {
			s := search{last: 16, jobs: 1, test: func(_ context.Context, state int, again bool) (verdict, error) {
				if (state >= 8) != (again && slices.Contains(c.flips, state)) {
					return fails, nil
				}
				return passes, nil
			}}
			if ok, err := s.ends(t.Context()); err != nil || !ok {
				t.Fatal(ok, err)
			}
			low, high, err := s.between(t.Context())
			must.OK(t, err)
			s.known[6], s.known[9] = passes, fails // as had they been looked at
			low, high, err = s.sure(t.Context(), low, high)
			if err != nil || low != c.low || high != c.high || !slices.Equal(s.flaky, c.flips) {
				t.Errorf("it is between %d and %d, flaky are %v (%v)", low, high, s.flaky, err)
			}
		})
	}
}

// What can't matter any more is ended, and an error ends all.
func TestRoundEndsWhatIsNeedless(t *testing.T) {
	var mu sync.Mutex
	ended := 0
	s := search{last: 9, known: make(map[int]verdict), test: func(ctx context.Context, state int, _ bool) (verdict, error) {
		switch state {
		case 3:
			return passes, nil
		case 6:
			return fails, nil
		}
		<-ctx.Done()
		mu.Lock()
		defer mu.Unlock()
		ended++
		return fails, ctx.Err()
	}}
	if err := s.round(t.Context(), []int{1, 3, 6, 8}); err != nil || ended != 2 || s.known[1] != unknown || s.known[8] != unknown || s.known[3] != passes || s.known[6] != fails {
		t.Errorf("%d were ended, %v is known (%v)", ended, s.known, err)
	}
	broken := errors.New("no sandbox")
	s.test = func(ctx context.Context, state int, _ bool) (verdict, error) {
		if state == 3 {
			return unknown, broken
		}
		<-ctx.Done()
		return unknown, ctx.Err()
	}
	if err := s.round(t.Context(), []int{1, 3, 6}); !errors.Is(err, broken) {
		t.Errorf("it ends with %v", err)
	}
}

// Exits mean what git bisect run has them mean.
func TestJudge(t *testing.T) {
	exit := func(code int, signal string) api.CheckResult {
		return api.CheckResult{Exit: &api.Exit{Code: code, Signal: signal}, Output: "first\nlast words\n"}
	}
	for _, c := range []struct {
		r    api.CheckResult
		base bool
		v    verdict
		err  string
	}{
		{exit(0, ""), true, passes, ""}, {exit(1, ""), true, fails, ""}, {exit(124, ""), false, fails, ""}, {exit(125, ""), false, skipped, ""},
		{exit(127, ""), false, fails, ""}, {exit(127, ""), true, unknown, "last words"}, {exit(126, ""), true, unknown, "can't be run at the beginning"},
		{exit(128, ""), false, unknown, "signal"}, {exit(137, "SIGKILL"), false, unknown, "SIGKILL"},
		{api.CheckResult{Failure: "no room"}, false, unknown, "no room"}, {api.CheckResult{}, false, unknown, "isn't known"},
	} {
		v, err := judge(c.r, c.base)
		if v != c.v || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v, %v", c, v, err)
		}
	}
}

// BenchmarkSearch is what halving costs beside the runs themselves.
func BenchmarkSearch(b *testing.B) {
	for b.Loop() {
		fault := 1 + rand.IntN(300)
		s := search{last: 300, jobs: 1, test: func(_ context.Context, state int, _ bool) (verdict, error) {
			if state >= fault {
				return fails, nil
			}
			return passes, nil
		}}
		if _, err := s.ends(b.Context()); err != nil {
			b.Fatal(err)
		}
		if _, _, err := s.between(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
