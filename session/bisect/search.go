package bisect

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// verdict is how a state did.
type verdict uint8

const (
	unknown verdict = iota
	passes
	fails
	skipped
)

func (v verdict) String() string { return [...]string{"", "passes", "fails", "skipped"}[v] }

// search looks for the first of the states 0 to last that fails, of which an earlier
// one passes. Test runs the command on one; it is called from several goroutines, and
// its error ends the search.
type search struct {
	last int
	jobs int // tests at once
	test func(ctx context.Context, state int, again bool) (verdict, error)

	known       map[int]verdict
	flaky       []int
	runs, again int
}

// ends tests both ends, the first one first. It says whether the first passes and the
// last fails.
func (s *search) ends(ctx context.Context) (bool, error) {
	s.known = make(map[int]verdict)
	for _, state := range []int{0, s.last} {
		if err := s.round(ctx, []int{state}); err != nil {
			return false, err
		}
		if want := map[bool]verdict{true: passes, false: fails}[state == 0]; s.known[state] != want {
			return false, nil
		}
	}
	return true, nil
}

// between narrows down where it broke: low passes, high fails, and all states between
// them were skipped.
func (s *search) between(ctx context.Context) (low, high int, err error) {
	for low, high = 0, s.last; ; {
		var open []int
		for i := low + 1; i < high; i++ {
			if s.known[i] == unknown {
				open = append(open, i)
			}
		}
		if len(open) == 0 {
			return low, high, nil
		}
		var states []int
		jobs := min(max(s.jobs, 1), len(open))
		for j := range jobs { // evenly spread; one is in the middle
			states = append(states, open[(j+1)*len(open)/(jobs+1)])
		}
		if err := s.round(ctx, slices.Compact(states)); err != nil {
			return 0, 0, err
		}
		for _, state := range states { // in order: the first that fails, and the last before it that passes
			if s.known[state] == fails {
				high = state
				break
			}
			if s.known[state] == passes {
				low = state
			}
		}
	}
}

// round tests some states at once. As soon as one has failed nothing after it matters,
// and nothing before one that has passed: those tests are ended, and stay unknown.
func (s *search) round(ctx context.Context, states []int) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failure error
	stops := make([]context.CancelFunc, len(states))
	ctxs := make([]context.Context, len(states))
	for i := range states {
		ctxs[i], stops[i] = context.WithCancel(ctx)
		defer stops[i]()
	}
	for i, state := range states {
		s.runs++
		wg.Go(func() {
			v, err := s.test(ctxs[i], state, false)
			mu.Lock()
			defer mu.Unlock()
			if ctxs[i].Err() != nil && ctx.Err() == nil {
				return // ended for another's sake
			}
			if err != nil {
				failure = errors.Join(failure, err)
			} else {
				s.known[state] = v
			}
			for j := range states {
				if err != nil || v == fails && j > i || v == passes && j < i {
					stops[j]()
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(ctx.Err(), failure)
}

// sure tests once more what the answer rests on: that low passes and high fails. What
// comes out otherwise is flaky and counts no more, so that the answer is wider, and
// rests on an older result, of which the same must be sure.
func (s *search) sure(ctx context.Context, low, high int) (int, int, error) {
	for _, end := range []*int{&low, &high} {
		by := 1
		if end == &low {
			by = -1
		}
		for result, state := s.known[*end], *end; state >= 0 && state <= s.last; state += by {
			if s.known[state] != result {
				continue
			}
			*end = state
			s.again++
			v, err := s.test(ctx, state, true)
			if err != nil {
				return 0, 0, err
			}
			if v == result {
				break
			}
			s.flaky = append(s.flaky, state)
		}
	}
	return low, high, nil
}
