// Package loop is the goroutine that owns a session's state, and the ways into it:
// requests from outside come through a bounded inbox (full: the asker waits),
// results of work that the session itself started come through posts, of which
// there are never more than work under way. Everything slow runs elsewhere and
// posts back. So there are no locks around the state.
//
// A Loop knows the session's phase and what it has under way, and nothing of what
// it does. Methods may be called from any goroutine, but for those that say that
// they are the loop's own.
package loop

import (
	"context"
	"sync"
)

// Loop goes on until the session is closed.
type Loop struct {
	life
	over  error         // what is told to those who come too late
	inbox chan func()   // full: who asks waits
	woken chan struct{} // holds one: there are posts

	mu    sync.Mutex
	posts []func() // guarded by mu; never more than work under way

	// Below: owned by the loop.
	worker  worker
	pending int    // what the session itself has under way
	idle    func() // waits for all of that
}

// New makes a loop. Over is the error for requests that come when it has ended.
func New(over error) *Loop {
	return &Loop{life: newLife(), over: over, inbox: make(chan func(), 64), woken: make(chan struct{}, 1)}
}

// Run is the loop's goroutine.
func (l *Loop) Run() {
	for l.now != Closed {
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

// Done is closed when the session is.
func (l *Loop) Done() <-chan struct{} { return l.In(Closed) }

// Call runs f in the loop and waits for it.
func (l *Loop) Call(ctx context.Context, f func()) error {
	return l.Do(ctx, func(done func(error)) { f(); done(nil) })
}

// Do has the loop do something that takes until done is called, once, and waits.
func (l *Loop) Do(ctx context.Context, f func(done func(error))) error {
	_, err := ask(ctx, l, func(reply func(struct{}, error)) {
		f(func(err error) { reply(struct{}{}, err) })
	})
	return err
}

// Request is Call for what changes something; see Ask.
func (l *Loop) Request(ctx context.Context, f func()) error {
	_, err := Ask(ctx, l, func(reply func(struct{}, error)) { f(); reply(struct{}{}, nil) })
	return err
}

// Ask has the loop do something for a client that takes until reply is called, once,
// and returns that. Nothing is done once the agent is gone, and what the end makes of
// it all is being recorded.
func Ask[T any](ctx context.Context, l *Loop, f func(reply func(T, error))) (T, error) {
	return ask(ctx, l, func(reply func(T, error)) {
		if l.now >= Draining {
			var none T
			reply(none, l.over)
			return
		}
		f(reply)
	})
}

func ask[T any](ctx context.Context, l *Loop, f func(reply func(T, error))) (none T, err error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	select {
	case l.inbox <- func() { f(func(v T, err error) { done <- result{v, err} }) }:
	case <-l.Done():
		return none, l.over
	case <-ctx.Done():
		return none, ctx.Err()
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-l.Done():
		select {
		case r := <-done: // the end came after it
			return r.value, r.err
		default:
			return none, l.over
		}
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Submit hands something that the sandbox did to the loop. It blocks while the
// session is busy, which is the back-pressure that reaches the agent.
func (l *Loop) Submit(f func()) {
	select {
	case l.inbox <- f:
	case <-l.Done():
	}
}

// Started waits for the session to run; false: it won't.
func (l *Loop) Started() bool {
	select {
	case <-l.In(Running):
		return true
	case <-l.In(Stopping):
	}
	select {
	case <-l.In(Running): // and has ended since
		return true
	default:
		return false
	}
}

// WhenStarted is Submit for what needs a sandbox to act on.
func (l *Loop) WhenStarted(f func()) {
	if l.Started() {
		l.Submit(f)
	}
}

// Post runs f in the loop, later. It never blocks, so only completions of what
// the session itself started may use it.
func (l *Loop) Post(f func()) {
	l.mu.Lock()
	l.posts = append(l.posts, f)
	l.mu.Unlock()
	select {
	case l.woken <- struct{}{}:
	default: // it will be found by the wake-up that is under way
	}
}

// Begin notes that something is under way. What it returns ends that, from any
// goroutine and once: then, if any, runs in the loop. The session doesn't end
// before that. Begin is the loop's own to call.
func (l *Loop) Begin() (end func(then func())) {
	l.pending++
	return func(then func()) {
		l.Post(func() {
			l.pending--
			if then != nil {
				then()
			}
		})
	}
}

// Aside runs something slow outside the loop. The function that it returns, if
// any, runs in the loop afterwards. The session doesn't end before that. Aside is
// the loop's own to call.
func (l *Loop) Aside(work func() (then func())) {
	end := l.Begin()
	go func() { end(work()) }()
}

// WhenIdle runs f in the loop once nothing that the session started is under way.
// It is the loop's own to call.
func (l *Loop) WhenIdle(f func()) { l.idle = f }

// Enter moves the session on. It is the loop's own to call.
func (l *Loop) Enter(p Phase) {
	if err := l.to(p); err != nil {
		panic(err) // the table is wrong, or the code is: going on could only record what isn't
	}
}
