package session

import (
	"testing"
	"time"

	"stepbox/session/api"
)

// A host's clock may be put forward or back while a question stands: that it is denied
// after some time is counted by another.
func TestSetClockLeavesTheTimeout(t *testing.T) {
	t.Parallel()
	for _, put := range []time.Duration{0, time.Hour, -time.Hour} {
		now := time.Now()
		// As the clock shows it by then, the question was asked as much later, or earlier.
		q := &question{Question: api.Question{HeldAt: now.Add(-put).UTC()}, since: now}
		if left := q.left(time.Minute); left <= 59*time.Second || left > time.Minute {
			t.Errorf("with the clock put by %s there are %s of a minute left", put, left)
		}
		if q.since.String() == q.since.Round(0).String() {
			t.Error("it is counted by the clock that people set")
		}
	}
}
