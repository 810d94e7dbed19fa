package session

import (
	"context"
	"errors"
	"sync"
)

// loop is the goroutine that owns a session's state, and the ways into it. It goes
// on until the session is closed.
type loop struct {
	life  *life
	inbox chan func()   // full: who asks waits
	woken chan struct{} // holds one: there are posts

	mu    sync.Mutex
	posts []func() // guarded by mu; never more than work under way

	// Below: owned by the loop.
	worker  worker
	pending int    // what the session itself has under way
	idle    func() // waits for all of that
}

func newLoop() *loop {
	return &loop{life: newLife(), inbox: make(chan func(), 64), woken: make(chan struct{}, 1)}
}

func (l *loop) run() {
	for l.life.now != phaseClosed {
		select {
		case f := <-l.inbox:
			f()
		case <-l.woken:
			l.mu.Lock()
			posts := l.posts
			l.posts = nil
			l.mu.Unlock()
			for _, f := range posts {
				f()
			}
		}
		if f := l.idle; f != nil && l.pending == 0 && !l.worker.busy {
			l.idle = nil
			f()
		}
	}
}

// Done is closed when the agent has ended and the record is complete.
func (l *loop) Done() <-chan struct{} { return l.life.in(phaseClosed) }

// call runs f in the loop and waits for it.
func (l *loop) call(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case l.inbox <- func() { f(); close(done) }:
	case <-l.Done():
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-l.Done():
		select {
		case <-done: // its turn was the last
			return nil
		default:
			return ErrEnded
		}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// request is call for what changes something: nothing does once the agent is
// gone, and what the end makes of it all is being recorded.
func (l *loop) request(ctx context.Context, f func()) error {
	var late error
	err := l.call(ctx, func() {
		if l.life.now >= phaseDraining {
			late = ErrEnded
			return
		}
		f()
	})
	return errors.Join(err, late)
}

// submit hands something that the sandbox did to the loop. It blocks while the
// session is busy, which is the back-pressure that reaches the agent.
func (l *loop) submit(f func()) {
	select {
	case l.inbox <- f:
	case <-l.Done():
	}
}

// started waits for the session to run; false: it won't.
func (l *loop) started() bool {
	select {
	case <-l.life.in(phaseRunning):
		return true
	case <-l.life.in(phaseStopping):
	}
	select {
	case <-l.life.in(phaseRunning): // and has ended since
		return true
	default:
		return false
	}
}

// whenStarted is submit for what needs a sandbox to act on.
func (l *loop) whenStarted(f func()) {
	if l.started() {
		l.submit(f)
	}
}

// post runs f in the loop, later. It never blocks, so only completions of what
// the session itself started may use it.
func (l *loop) post(f func()) {
	l.mu.Lock()
	l.posts = append(l.posts, f)
	l.mu.Unlock()
	select {
	case l.woken <- struct{}{}:
	default: // it will be found by the wake-up that is under way
	}
}

// aside runs something slow outside the loop. The function that it returns, if
// any, runs in the loop afterwards. The session doesn't end before that.
func (l *loop) aside(work func() (then func())) {
	l.pending++
	go func() {
		then := work()
		l.post(func() {
			l.pending--
			if then != nil {
				then()
			}
		})
	}()
}

// whenIdle runs f in the loop once nothing that the session started is under way.
func (l *loop) whenIdle(f func()) { l.idle = f }

// enter moves the session on.
func (l *loop) enter(p phase) {
	if err := l.life.to(p); err != nil {
		panic(err) // the table is wrong, or the code is: going on could only record what isn't
	}
}
