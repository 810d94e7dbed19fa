package egress

import (
	"context"
	"sync/atomic"
	"time"
)

// Meter says how much of what an attempt carries may move. It is asked for what is about
// to move, from one goroutine for each way, and may block for as long as a person thinks:
// the program sees a slow network. An error ends the attempt and is why, in words. It
// must return soon after ctx is done, which is when the attempt ends.
type Meter interface {
	// Sent says how many of n bytes may leave now, at least one; with whole all or none,
	// since a datagram can't be cut.
	Sent(ctx context.Context, n int, whole bool) (int, error)
	// Received is the same for bytes into the sandbox.
	Received(ctx context.Context, n int, whole bool) (int, error)
	// Model lets one request of an intercepted connection leave, whose answer may say what
	// it has used.
	Model(ctx context.Context) error
}

// lane is one of the two that bytes go.
type lane struct {
	counter *atomic.Int64
	waits   *atomic.Int32
	may     func(ctx context.Context, n int, whole bool) (int, error) // nil: all
}

func (r *record) out() lane {
	w := lane{counter: &r.sent, waits: &r.waitsOut}
	if r.meter != nil {
		w.may = r.meter.Sent
	}
	return w
}

func (r *record) in() lane {
	w := lane{counter: &r.received, waits: &r.waitsIn}
	if r.meter != nil {
		w.may = r.meter.Received
	}
	return w
}

// carry writes bytes as the meter lets them move, and counts them.
func (r *record) carry(ctx context.Context, w lane, whole bool, b []byte, write func([]byte) (int, error)) error {
	for first := true; first || len(b) > 0; first = false {
		n := len(b)
		if w.may != nil && n > 0 {
			var err error
			w.waits.Add(1)
			n, err = w.may(ctx, n, whole)
			w.waits.Add(-1)
			if err != nil {
				return err
			}
		}
		r.moved(w.counter, n)
		if _, err := write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// goneLimit is how long what a program sent waits for the meter when the program has gone.
const goneLimit = 10 * time.Minute

// vain says whether a flow that waits for the meter would move nothing for anybody once
// its program has gone: many only send and exit, but none reads on.
func (r *record) vain() bool {
	switch idle := r.idle(); {
	case r.waitsOut.Load() > 0:
		return idle > goneLimit
	default:
		return r.waitsIn.Load() > 0 && idle > watchEvery
	}
}

// metered says whether the meter is asked about it now.
func (r *record) metered() bool { return r.waitsOut.Load()+r.waitsIn.Load() > 0 }
