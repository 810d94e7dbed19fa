package ledger

import (
	"math"
	"time"

	"stepbox/session/api"
)

// usageEvery is how often it is looked at what the agent uses, usageAgain how
// often that is told though it is the same.
const (
	usageEvery = time.Second
	usageAgain = 10 * time.Second
)

// Usage tells viewers what the agent uses when it reads differently or someone has
// joined, until done. It costs nothing while nobody looks.
func (l *Ledger) Usage(done <-chan struct{}, look func() api.Usage) {
	tick := time.NewTicker(usageEvery)
	defer tick.Stop()
	var told api.Usage
	var at time.Time
	watchers := 0
	for {
		select {
		case now := <-tick.C:
			had := watchers
			if watchers = l.watchers(); watchers == 0 {
				continue
			}
			u := look()
			seen := u // as fine as it is shown
			seen.CPU, seen.Memory = math.Round(u.CPU*100), u.Memory>>16
			if watchers > had || seen != told || now.Sub(at) > usageAgain {
				told, at = seen, now
				l.pass(api.Event{At: now.UTC(), Kind: "usage", Usage: &u})
			}
		case <-done:
			return
		}
	}
}
