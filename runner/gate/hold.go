package gate

// begin waits until answers may go out. When it says yes, none is stopped
// until finish is called, which must be soon.
func (g *Gate) begin() bool {
	for {
		ok, open := g.tryBegin()
		if ok {
			return true
		}
		select {
		case <-open:
		case <-g.done:
			return false
		}
	}
}

// tryBegin is begin without waiting. The channel is closed when it is worth
// another try.
func (g *Gate) tryBegin() (ok bool, open <-chan struct{}) {
	g.sending.RLock()
	if g.holds == 0 && !g.closed {
		return true, nil
	}
	defer g.sending.RUnlock()
	if g.closed {
		return false, nil
	}
	return false, g.open
}

func (g *Gate) finish() { g.sending.RUnlock() }

// whenOpen does something that lets a process run, as soon as no answers are
// held, or when the gate closes.
func (g *Gate) whenOpen(f func()) {
	if g.begin() {
		defer g.finish()
	}
	f()
}

// Hold stops all answers: when it returns, none is on its way, and none will
// be until Release was called as often as Hold. Decisions may go on; they
// queue up. Calls that come meanwhile wait where a signal finds them.
func (g *Gate) Hold() {
	g.sending.Lock()
	defer g.sending.Unlock()
	if g.doomed {
		return
	}
	if g.holds++; g.holds == 1 {
		g.open = make(chan struct{})
	}
}

// Doom says that every process of the sandbox is being killed: nothing is held
// any more, now or later. One that stands in a stop of its tracer's can't end
// before it was let go, and neither can a sandbox before all of it has.
func (g *Gate) Doom() {
	g.sending.Lock()
	defer g.sending.Unlock()
	g.doomed = true
	if g.holds > 0 {
		g.holds = 0
		close(g.open)
	}
}

// Release undoes one Hold.
func (g *Gate) Release() {
	g.sending.Lock()
	defer g.sending.Unlock()
	if g.holds == 0 {
		return
	}
	if g.holds--; g.holds == 0 {
		close(g.open)
	}
}
