package session

import "sync"

// posts is the queue of completions: unbounded in form, bounded by the work
// under way in fact.
type posts struct {
	wake chan struct{}
	mu   sync.Mutex
	list []func() // guarded by mu
}

func newPosts() *posts { return &posts{wake: make(chan struct{}, 1)} }

func (p *posts) add(f func()) {
	p.mu.Lock()
	p.list = append(p.list, f)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default: // it will be found by the wake-up that is under way
	}
}

func (p *posts) take() []func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.list
	p.list = nil
	return l
}
