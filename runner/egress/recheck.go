package egress

// Recheck ends what is open, or dialled, and is denied by now: connections are reset, and
// the next datagram or ping is an attempt of its own. Options.Denied is asked about each,
// on the caller's goroutine. It is safe for concurrent use.
func (g *Gateway) Recheck() {
	is := func(r *record) bool {
		a := r.snapshot(r.a.At)
		if a.Verdict != verdictAllow || !a.Open {
			return false
		}
		rule, no := g.o.Denied(a)
		if no {
			r.fail(errRuled.Error() + ": " + rule)
		}
		return no
	}
	g.mu.Lock()
	for p := range g.pending {
		if p.rec != nil && is(p.rec) {
			p.giveUp(errRuled)
		}
	}
	var open []*flow
	for f := range g.flows {
		if is(f.rec) {
			open = append(open, f)
		}
	}
	g.mu.Unlock()
	for _, f := range open {
		f.abort(errRuled.Error())
	}
	g.udp.recheck(is)
	g.echo.recheck(is)
}

func (u *udpTable) recheck(is func(*record) bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, f := range u.flows {
		if !f.denied && is(f.rec) {
			u.drop(f, errRuled)
		}
	}
}

func (e *echoTable) recheck(is func(*record) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.flows {
		if f.rec != nil && !f.refused && is(f.rec) {
			delete(e.flows, f.t)
			f.giveUp(errRuled)
		}
	}
}
