package link

import (
	"context"
	"sync"
	"time"

	"stepbox/session/api"
	"stepbox/ui/state"
)

// Replay shows the session's record: as it was at a moment, or as it went on from
// there. It has a Screen of its own, so that a live session's goes on beside it.
//
// One goroutine carries out what is asked for. A jump is made to its end before
// the next one, which is then the newest that was asked for; what plays stops at
// once for whatever is asked. Its messages come with those of the link, in order.
type Replay struct {
	Screen Screen

	link *Link
	kick chan struct{} // 1; something was asked for

	mu   sync.Mutex
	want wish // guarded by mu
}

// wish is what was asked for.
type wish struct {
	jumps int        // how many
	to    api.Moment // the newest
	steps int        // that are still to be made, back if negative
	play  bool
	speed float64
}

// Moved says where a replay is.
type Moved struct {
	Link   *Link
	State  *state.State // after a jump: how the session stood then; else nil, and
	Events []api.Event  // these are what came since
	Seq    uint64       // the last event by then
	Offset time.Duration
	Jumps  int    // that were made by now
	Lost   string // what of the terminal can't be shown, in words, when that was just come by
	Ended  bool   // there is nothing recorded after it
	Err    error  // why it isn't where it was asked to be, or can't go on
}

// Replay is the link's replay, which Close closes.
func (l *Link) Replay() *Replay {
	if l.replay == nil {
		l.replay = &Replay{link: l, kick: make(chan struct{}, 1), want: wish{speed: 1}}
		l.wg.Add(1)
		go l.replay.run()
	}
	return l.replay
}

// ask changes what is asked for.
func (r *Replay) ask(f func(*wish)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.want)
	select {
	case r.kick <- struct{}{}:
	default: // it looks at everything when it wakes
	}
}

// Jump goes to a moment, and returns how many jumps were asked for by now.
func (r *Replay) Jump(to api.Moment) (n int) {
	r.ask(func(w *wish) {
		w.jumps++
		w.to, w.steps, n = to, 0, w.jumps
	})
	return n
}

// Step goes to the next piece of output, or to the one before.
func (r *Replay) Step(by int) { r.ask(func(w *wish) { w.steps, w.play = w.steps+by, false }) }

// Play has it go on, or stand still.
func (r *Replay) Play(on bool) { r.ask(func(w *wish) { w.play = on }) }

// Speed is how many seconds of the session go by in one.
func (r *Replay) Speed(x float64) { r.ask(func(w *wish) { w.speed = x }) }

// spot is a place in the record.
type spot struct {
	began time.Time // the session
	seq   uint64
	off   time.Duration
	jumps int // that were made
}

func (r *Replay) run() {
	defer r.link.wg.Done()
	var at spot
	for r.link.ctx.Err() == nil {
		r.mu.Lock()
		w := r.want
		if w.jumps == at.jumps {
			r.want.steps = 0 // they are made now
		}
		select {
		case <-r.kick: // for what is in w
		default:
		}
		r.mu.Unlock()
		var ended bool
		var err error
		switch {
		case w.jumps != at.jumps:
			at.jumps = w.jumps
			err = r.to(&at, w.to)
		case w.steps < 0:
			err = r.stepBack(&at, w)
		case w.steps > 0 || w.play:
			ended, err = r.play(&at, w)
		default:
			select {
			case <-r.kick:
			case <-r.link.ctx.Done():
			}
			continue
		}
		if (ended || err != nil) && r.link.ctx.Err() == nil {
			r.mu.Lock()
			r.want.play = r.want.play && r.want.jumps != w.jumps
			r.mu.Unlock()
			r.tell(at, Moved{Ended: ended, Err: err})
		}
	}
}

func (r *Replay) tell(at spot, m Moved) {
	r.Screen.at(at.off)
	m.Link, m.Seq, m.Offset, m.Jumps = r.link, at.seq, at.off, at.jumps
	r.link.send(m)
}

// seekTime bounds a jump, so that one whose answer doesn't come holds up nothing
// for long.
const seekTime = 20 * time.Second

// to goes to a moment. Where that fails it stays where it is.
func (r *Replay) to(at *spot, m api.Moment) error {
	ctx, cancel := context.WithTimeout(r.link.ctx, seekTime)
	defer cancel()
	c, id := r.link.client, r.link.ID
	found, err := c.At(ctx, id, m)
	if err != nil {
		return err
	}
	if found.Seq == 0 {
		found.Seq = 1 // before it there isn't even a session
	}
	then := &state.State{}
	for e, err := range c.EventsAt(ctx, id, found.Seq) {
		if err != nil {
			return err
		}
		then.Apply(e)
	}
	then.Seq = max(then.Seq, found.Seq)
	emu, marks, lost, err := r.keyframe(ctx, found.Offset)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.Screen.put(emu)
	r.Screen.feed(marks, nil)
	at.began, at.seq, at.off = found.Time.Add(-found.Offset), found.Seq, found.Offset
	// Without its screen the rest is worth showing.
	r.tell(*at, Moved{State: then, Lost: lost, Err: err})
	return nil
}

// keyframe is the terminal as it was at a time, and where actions began there; nil without
// an error if there was none by then.
func (r *Replay) keyframe(ctx context.Context, offset time.Duration) (emu Emulator, marks api.Frame, lost string, err error) {
	conn, done, err := r.join(ctx, offset)
	if err != nil {
		return nil, marks, "", err
	}
	defer done()
	for {
		f, err := conn.Read()
		switch {
		case emu != nil && err == nil && f.Kind == api.FrameDamage: // it isn't whole
			lost = string(f.Data)
			continue
		case emu != nil:
			if err == nil && f.Kind == api.FrameMarks {
				marks = f
			}
			return emu, marks, lost, nil
		case err != nil:
			return nil, marks, "", err
		case f.Kind == api.FrameEnd:
			return nil, marks, "", nil
		}
		emu = r.link.drawn(f, offset)
	}
}

// drawn is a keyframe's screen at a time, or nil if it is none.
func (l *Link) drawn(f api.Frame, at time.Duration) Emulator {
	if f.Kind != api.FrameKeyframe || f.Cols < 1 || f.Rows < 1 {
		return nil
	}
	emu := l.newEmu(f.Cols, f.Rows)
	emu.At(at)
	_, _ = emu.Write(f.Data) // it takes all bytes
	return emu
}

// join joins the record of the terminal, until ctx is done or done is called.
func (r *Replay) join(ctx context.Context, offset time.Duration) (conn Stream, done func(), err error) {
	conn, err = r.link.client.TerminalAt(ctx, r.link.ID, offset)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	return conn, func() { stop(); conn.Close() }, nil
}

// stepBack goes back by pieces of output: to when the one was printed that came
// before what is shown. The rest of the pieces waits when something else is asked for.
func (r *Replay) stepBack(at *spot, w wish) error {
	for ; w.steps < 0; w.steps++ {
		if len(r.kick) > 0 {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.want.jumps == w.jumps && !r.want.play {
				r.want.steps += w.steps
			}
			return nil
		}
		before, err := r.before(at.off)
		if err == nil {
			err = r.to(at, before)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// before is when the screen came to look as it did before it came to look as at a time. It
// reads ever longer parts of the record until two pieces are in one.
func (r *Replay) before(off time.Duration) (api.Moment, error) {
	for span := time.Second; ; span *= 8 {
		from := max(0, off-span)
		var shown, prior time.Duration = -1, -1
		err := r.times(from, off, func(t time.Duration) {
			if t > from {
				prior, shown = shown, t
			}
		})
		switch {
		case err != nil:
			return "", err
		case prior >= 0:
			return api.Moment("+" + prior.String()), nil
		case from == 0:
			return "start", nil
		}
	}
}

// times tells when something was printed that is to be seen, between two times. In the
// middle of a frame that the agent builds it isn't (mode 2026).
func (r *Replay) times(from, to time.Duration, tell func(time.Duration)) error {
	ctx, cancel := context.WithTimeout(r.link.ctx, seekTime)
	defer cancel()
	conn, done, err := r.join(ctx, from)
	if err != nil {
		return err
	}
	defer done()
	var s Screen
	var drawn uint64
	last := time.Duration(-1) // when something was printed that isn't told yet
	told := func() {
		if last >= 0 && s.moved(&drawn) {
			tell(last)
		}
		last = -1
	}
	for p, err := range api.Printed(conn, from) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		}
		if p.At != last {
			told()
		}
		if p.At > to {
			return nil
		}
		if emu := r.link.drawn(p.Frame, p.At); emu != nil {
			s.put(emu)
			s.moved(&drawn)
			continue
		}
		s.at(p.At)
		s.feed(p.Frame, func() bool { return ctx.Err() == nil })
		if p.Frame.Kind == api.FrameOutput {
			last = p.At
		}
	}
	told()
	return nil
}
