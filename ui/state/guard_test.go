package state

import (
	"testing"
	"time"
)

// A terminal that lags takes keys for what was seen before it did, and for nothing else.
func TestGuardOnASlowTerminal(t *testing.T) {
	var g Guard
	now, unsure := time.Unix(1, 0), false
	after := func(d time.Duration, late bool) { now = now.Add(d); g.Drawn(late, unsure, now) }
	takes := func(target Target, want bool, why string) {
		t.Helper()
		if g.Takes(target, Quiet, now) != want {
			t.Errorf("%s: a key counts: %v", why, !want)
		}
	}
	one, two := Target{Question: 1}, Target{Question: 2}
	g.Shown(one, now)
	after(QuietTime, true)
	takes(one, false, "it was never drawn in time")
	after(QuietTime, false)
	takes(one, true, "it was in view")
	after(QuietTime, true)
	after(QuietTime, true)
	takes(one, true, "it was seen, and is the same")
	g.Shown(two, now)
	after(QuietTime, true)
	takes(two, false, "another came while the terminal lagged")
	g.Shown(one, now)
	after(QuietTime, true)
	takes(one, false, "the first came again while the terminal lagged")
	after(QuietTime, false)
	g.Shown(two, now)
	unsure = true
	after(QuietTime, false)
	takes(two, true, "nothing is known to be late")
	after(0, true)
	takes(two, false, "it may never have been drawn")
	unsure = false
	after(QuietTime, false)
	g.Restart(now)
	after(QuietTime, true)
	takes(one, false, "the program was stopped since")
}
