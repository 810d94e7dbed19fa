package store

import (
	"iter"
	"slices"
	"time"
)

// span is a stretch of a journal in which no pause between outputs was longer than pause:
// its first and its last one, in milliseconds since the journal began.
type span [2]int64

const (
	pause     = int64(time.Minute / time.Millisecond)
	spansMost = 1000 // of a list; of more the shortest pauses are left out
)

// joins adds a span, which begins after the last one or in it, in the same if no more
// than a pause is between.
func joins(spans []span, s span, pause int64) []span {
	if n := len(spans); n > 0 && s[0]-spans[n-1][1] <= pause {
		spans[n-1][1] = max(spans[n-1][1], s[1])
		return spans
	}
	return append(spans, s)
}

// joined are spans with longer pauses than that between, at most spansMost.
func joined(spans []span, pause int64) (out []span) {
	for _, s := range spans {
		out = joins(out, s, pause)
	}
	if len(out) <= spansMost {
		return out
	}
	var pauses []int64
	for i, s := range out[1:] {
		pauses = append(pauses, s[0]-out[i][1])
	}
	slices.Sort(pauses)
	return joined(out, pauses[len(pauses)-spansMost])
}

// Printed yields from when to when something was printed, in order, at most 1,000 stretches
// with pauses of more than a minute between. It reads only what isn't packed yet.
func (r *Recording) Printed() iter.Seq2[time.Duration, time.Duration] {
	return func(yield func(from, to time.Duration) bool) {
		var spans []span
		for i, f := range r.files {
			c, packed := r.chunks[f.number]
			if !packed {
				if p, err := r.open(i); err == nil {
					_ = p.end() // what is damaged has no time
					c.Printed = p.printed
				}
			}
			spans = append(spans, c.Printed...)
		}
		for _, s := range joined(spans, pause) {
			if !yield(time.Duration(s[0])*time.Millisecond, time.Duration(s[1])*time.Millisecond) {
				return
			}
		}
	}
}
