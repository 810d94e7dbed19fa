package link

import (
	"context"
	"errors"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
)

// Timing. Frames are at most 60 a second; a stream that was lost is joined
// again after a wait that doubles up to a bound.
const (
	frame     = time.Second / 60
	idle      = 40 * time.Millisecond // no event for so long: the history has been read
	maxBatch  = 2048                  // events in one message
	slice     = 8 << 10               // bytes fed to the emulator under one lock
	firstWait = 250 * time.Millisecond
	lastWait  = 4 * time.Second
)

// Messages of a link. Each names the link it came from, so that what a closed
// one still had to say is recognised.
type (
	// Events is what happened, in order. Caught is set from the moment on when
	// everything recorded before has been delivered.
	Events struct {
		Link   *Link
		Batch  []api.Event
		Caught bool
	}
	// Drawn says that the terminal's screen moved on.
	Drawn struct{ Link *Link }
	// Lost says that a stream broke and is being joined again; with a nil error,
	// that it was.
	Lost struct {
		Link     *Link
		Terminal bool // of the terminal's stream, else of the events'
		Err      error
	}
	// Over says that the session has ended and nothing more will come.
	Over struct {
		Link    *Link
		Session api.Session
		Err     error // why the last state could not be fetched
	}
)

// From is the link that a message came from.
func (m Events) From() *Link { return m.Link }
func (m Drawn) From() *Link  { return m.Link }
func (m Lost) From() *Link   { return m.Link }
func (m Over) From() *Link   { return m.Link }
func (m Moved) From() *Link  { return m.Link }

// Link joins one session.
type Link struct {
	ID     string
	Screen Screen

	client  Client
	replay  *Replay // nil until it is asked for; of the caller's goroutine
	newEmu  NewEmulator
	out     chan tea.Msg // 16; when full, the senders wait for the interface
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	input   *queue
	closeMu sync.Once
}

// Open joins a session. The caller owns the Link and closes it. ctx bounds its
// life; it is kept because the Link is a set of goroutines, not a call.
func Open(ctx context.Context, c Client, id string, newEmu NewEmulator) *Link {
	ctx, cancel := context.WithCancel(ctx)
	l := &Link{
		ID: id, client: c, newEmu: newEmu,
		out: make(chan tea.Msg, 16),
		ctx: ctx, cancel: cancel, input: newQueue(),
	}
	l.wg.Add(3)
	go l.follow()
	go l.watch()
	go l.input.run(ctx, &l.wg)
	return l
}

// Close leaves the session, which goes on. It waits for the goroutines, so it
// is called off the drawing goroutine.
func (l *Link) Close() {
	l.closeMu.Do(func() {
		l.cancel()
		l.input.drop()
		l.wg.Wait()
		l.Screen.put(nil)
		if l.replay != nil {
			l.replay.Screen.put(nil)
		}
	})
}

// Next is a command that waits for the next message. Exactly one should be
// waiting, so that messages keep their order.
func (l *Link) Next() tea.Cmd {
	return func() tea.Msg {
		select {
		case m := <-l.out:
			return m
		case <-l.ctx.Done():
			return nil
		}
	}
}

// Type queues bytes for the agent. It never blocks; false says that they were
// refused, because the agent doesn't read or because the terminal is out of reach.
func (l *Link) Type(p []byte) bool { return l.input.put(p) }

// Resize asks for another size of the agent's terminal. The last size that was
// asked for is what counts, also after joining again.
func (l *Link) Resize(cols, rows int) { l.input.resize(cols, rows) }

// Claim says that the person is there: the size is that of who was active last.
func (l *Link) Claim() { l.input.claim() }

func (l *Link) send(m tea.Msg) bool {
	select {
	case l.out <- m:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// follow reads the event stream, joins it again when it breaks, and ends when
// the session has.
func (l *Link) follow() {
	defer l.wg.Done()
	var seq uint64
	wait, lost := firstWait, false
	for l.ctx.Err() == nil {
		before := seq
		err := l.stream(&seq, &lost)
		if l.ctx.Err() != nil {
			return
		}
		missing := api.CodeOf(err) == api.CodeNotFound
		if err == nil || missing {
			s, serr := l.client.Session(l.ctx, l.ID)
			if serr == nil && !s.Live() || missing {
				l.send(Over{Link: l, Session: s, Err: serr})
				return
			}
			if serr != nil {
				err = serr
			} else {
				err = errors.New("the stream ended while the session goes on")
			}
		}
		if l.ctx.Err() != nil {
			return
		}
		lost = true
		l.again(&wait, seq > before, Lost{Link: l, Err: err})
	}
}

// stream follows one connection. A reader goroutine hands events over a bounded
// channel; when the interface is behind, the reader stops reading.
func (l *Link) stream(seq *uint64, lost *bool) error {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	events := make(chan api.Event, 256)
	done := make(chan error, 1)
	go func() {
		defer close(events)
		for e, err := range l.client.Events(ctx, l.ID, *seq+1) {
			if err != nil {
				done <- err
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range events { // the reader closes it when it ends
		}
	}()

	quiet := time.NewTimer(idle)
	defer quiet.Stop()
	caught := false
	for {
		batch := make([]api.Event, 0, 16)
		ended := false
		select {
		case e, ok := <-events:
			if !ok {
				ended = true
				break
			}
			batch = append(batch, e)
			*seq = max(*seq, e.Seq)
			if *lost {
				*lost = false
				if !l.send(Lost{Link: l}) {
					return nil
				}
			}
			ended = l.gather(&batch, events, seq, caught)
			if !caught {
				quiet.Reset(idle)
			}
		case <-quiet.C:
			caught = true
			if *lost {
				*lost = false
				if !l.send(Lost{Link: l}) {
					return nil
				}
			}
		case <-l.ctx.Done():
			return nil
		}
		if ended {
			caught = true
		}
		if !l.send(Events{Link: l, Batch: batch, Caught: caught}) {
			return nil
		}
		if ended {
			select {
			case err := <-done:
				return err
			default:
				return nil
			}
		}
	}
}

// gather takes what else arrives within a frame; while history is being read it
// takes more, because nothing is drawn from it yet. It says whether the stream ended.
func (l *Link) gather(batch *[]api.Event, events <-chan api.Event, seq *uint64, caught bool) bool {
	span := frame
	if !caught {
		span = 2 * idle
	}
	deadline := time.NewTimer(span)
	defer deadline.Stop()
	gap := time.NewTimer(idle)
	defer gap.Stop()
	for len(*batch) < maxBatch {
		select {
		case e, ok := <-events:
			if !ok {
				return true
			}
			*batch = append(*batch, e)
			*seq = max(*seq, e.Seq)
			gap.Reset(idle)
		case <-deadline.C:
			return false
		case <-gap.C:
			return false
		case <-l.ctx.Done():
			return false
		}
	}
	return false
}

// again tells that a stream was lost, and waits before it is joined again: longer
// each time, but for one that did well.
func (l *Link) again(wait *time.Duration, well bool, lost Lost) {
	if well {
		*wait = firstWait
	}
	l.send(lost)
	Pause(l.ctx, *wait)
	*wait = min(2**wait, lastWait)
}

// Pause waits so long, and says whether the context isn't done meanwhile.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// Still is a screen as it is to be seen now, which nothing is written to any more, and the
// rows at which actions began, counted from the oldest of its scrollback; nil where there is
// no screen yet.
func (l *Link) Still(s *Screen) (still Emulator, marks []Mark) {
	s.With(func(e Emulator) {
		still = l.newEmu(e.Size())
		still.At(0) // a frame that is being built stays unseen
		_, _ = still.Write(e.Keyframe())
		lost := e.ScrollbackLen() - still.ScrollbackLen() // where there was too much of it
		for _, m := range s.marks {
			if row := e.RowOf(m.At) - lost; row >= 0 {
				marks = append(marks, Mark{m.Action, row})
			}
		}
	})
	return still, marks
}

// Context is done once the link is being closed.
func (l *Link) Context() context.Context { return l.ctx }
