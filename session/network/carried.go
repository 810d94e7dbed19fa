package network

import (
	"sync/atomic"

	"stepbox/runner/egress"
)

// carried counts the bytes of all attempts. Its sums may be read from any goroutine; count
// is the session's loop's.
type carried struct {
	sent, received atomic.Int64
	open           map[int64][2]int64 // what is counted of those that are open
}

// count takes an attempt as it stands now.
func (c *carried) count(at egress.Attempt) {
	was := c.open[at.ID]
	c.sent.Add(at.Sent - was[0])
	c.received.Add(at.Received - was[1])
	switch {
	case !at.Open:
		delete(c.open, at.ID)
	case c.open == nil:
		c.open = map[int64][2]int64{}
		fallthrough
	default:
		c.open[at.ID] = [2]int64{at.Sent, at.Received}
	}
}

// Carried is how many bytes went out of the sandbox and into it.
func (n *Network) Carried() (sent, received int64) {
	return n.carried.sent.Load(), n.carried.received.Load()
}
