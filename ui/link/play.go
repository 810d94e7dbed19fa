package link

import (
	"context"
	"errors"
	"time"

	"stepbox/session/api"
)

// How a replay goes on.
const (
	longest   = time.Second            // of a pause in the session, at its own speed
	progress  = 100 * time.Millisecond // between words of how far it is
	behind    = 250 * time.Millisecond // it may be, and then hurry
	readAhead = 128                    // items; of a terminal's frames none is longer than 16 MiB, and few have more than 32 KiB
)

// item is what happened next.
type item struct {
	api.Played
	err error // nothing comes after it
}

// play goes on from a spot until something else is asked for, as many pieces of
// output as are to be stepped were shown, or the record ends.
func (r *Replay) play(at *spot, w wish) (ended bool, err error) {
	ctx, cancel := context.WithCancel(r.link.ctx)
	items := make(chan item, readAhead)
	go r.read(ctx, *at, items)
	defer func() {
		cancel()
		for range items { // until the reader has closed it
		}
	}()
	p := player{Replay: r, at: at, speed: w.speed, steps: w.steps, due: time.Now(), told: time.Now()}
	defer p.tell()
	for {
		var it item
		var more bool
		select {
		case it, more = <-items:
		case <-r.kick:
			r.ask(func(now *wish) {
				if now.jumps == w.jumps {
					now.steps += p.steps // that weren't made
				}
			})
			return false, nil
		case <-ctx.Done():
			return false, nil
		}
		switch {
		case !more:
			return w.steps == 0 || p.steps == w.steps, nil
		case it.err != nil:
			return false, it.err
		case w.steps > 0 && p.steps == 0 && it.At > at.off:
			return false, nil // all that was printed in that moment is shown
		case w.steps == 0 && !p.wait(ctx, it.At):
			return false, nil
		}
		p.show(it)
	}
}

// player is a replay while it plays.
type player struct {
	*Replay
	at    *spot
	speed float64
	steps int       // pieces of output that are still to be shown
	drawn uint64    // when the last was shown
	due   time.Time // when what comes next is to be shown
	told  time.Time
	batch []api.Event
	lost  string
}

// tell says how far it is.
func (p *player) tell() {
	p.Replay.tell(*p.at, Moved{Events: p.batch, Lost: p.lost})
	p.batch, p.lost, p.told = nil, "", time.Now()
}

// wait lets the time go by until what happened at an offset, and says whether
// nothing else was asked for meanwhile.
func (p *player) wait(ctx context.Context, off time.Duration) bool {
	gap := off - p.at.off
	pause := time.Duration(float64(min(max(gap, 0), longest)) / p.speed)
	if now := time.Now(); now.Sub(p.due) > behind {
		p.due = now.Add(-behind)
	}
	p.due = p.due.Add(pause)
	if time.Since(p.told) > progress {
		p.tell()
	}
	for {
		left := time.Until(p.due)
		if left < frame/2 {
			p.at.off = max(p.at.off, off)
			return true
		}
		if p.batch != nil || p.Screen.news() {
			p.tell()
		}
		t := time.NewTimer(min(left, progress))
		select {
		case <-t.C:
		case <-p.kick:
			t.Stop()
			return false
		case <-ctx.Done():
			t.Stop()
			return false
		}
		if left = time.Until(p.due); left > 0 && pause > 0 && gap > 0 {
			p.at.off = max(p.at.off, off-time.Duration(float64(gap)*float64(left)/float64(pause)))
			p.tell()
		}
	}
}

// show shows what happened.
func (p *player) show(it item) {
	p.at.off = max(p.at.off, it.At)
	if e := it.Event; e != nil {
		p.at.seq = max(p.at.seq, e.Seq)
		if p.batch = append(p.batch, *e); len(p.batch) >= maxBatch {
			p.tell()
		}
		return
	}
	if it.Frame.Kind == api.FrameDamage {
		p.lost = string(it.Frame.Data)
		p.tell()
		return
	}
	if emu := p.link.drawn(it.Frame, p.at.off); emu != nil { // how it begins, and goes on after something is lost
		p.Screen.put(emu)
		p.Screen.moved(&p.drawn)
		return
	}
	p.Screen.at(p.at.off)
	p.Screen.feed(it.Frame, func() bool { return p.link.ctx.Err() == nil })
	if p.steps > 0 && it.Frame.Kind == api.FrameOutput && len(it.Frame.Data) > 0 && p.Screen.moved(&p.drawn) {
		p.steps--
	}
}

// read reads what happened after a spot, in its order. It closes out.
func (r *Replay) read(ctx context.Context, at spot, out chan<- item) {
	defer close(out)
	send := func(it item) bool {
		select {
		case out <- it:
			return ctx.Err() == nil
		case <-ctx.Done():
			return false
		}
	}
	printed := func(func(api.Played, error) bool) {} // of a session of which none was recorded: its events are worth showing
	conn, done, err := r.join(ctx, at.off)
	if err == nil {
		defer done()
		printed = api.Printed(conn, at.off)
	} else if p := (*api.Problem)(nil); !errors.As(err, &p) {
		send(item{err: err})
		return
	}
	for p, err := range api.InOrder(r.link.client.Recorded(ctx, r.link.ID, at.seq+1), at.began, printed) {
		// The screen that a stream begins with has to be shown too: of what was printed in
		// one moment some may have been shown before.
		if p.At = max(at.off, p.At); !send(item{p, err}) || err != nil {
			return
		}
	}
}
