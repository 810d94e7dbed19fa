package egress

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// What the sandbox sends is read by much code, of the stack's and ours. Should any
// of it panic, the packet or flow in its hands ends, which the attempt's record says,
// and nothing else does: least of all the supervisor, which ends the session.

// ruleFault is the rule of what a fault has ended before there was a verdict.
const ruleFault = "gateway: a fault of its own"

// maxFault bounds what is said of a panic, in bytes.
const maxFault = 200

// survive is deferred where a packet or a flow is handled. After a panic it has end
// close what was being handled, and record why.
func (g *Gateway) survive(end func(why string)) {
	cause := recover()
	if cause == nil {
		return
	}
	defer func() {
		if recover() != nil { // it can't even be recorded by itself
			g.flood()
		}
	}()
	end(faultOf(cause))
}

// faultOf says what a panic was about and where it began, in one line.
func faultOf(cause any) string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers)])
	place := "an unknown place"
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if !slices.ContainsFunc([]string{"runtime.", "internal/", "sync."}, func(p string) bool { return strings.HasPrefix(frame.Function, p) }) {
			place = fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
			break
		}
	}
	return fmt.Sprintf("stepbox failed at it and ended it, please report this: %q at %s", cut(fmt.Sprint(cause), maxFault), place)
}

// fault ends the record of what a panic has ended; an attempt without verdict is denied.
func (g *Gateway) fault(r *record, why string) {
	r.mu.Lock()
	allowed := r.a.Verdict == verdictAllow
	r.mu.Unlock()
	if !allowed {
		g.refuse(r, Verdict{Rule: ruleFault}, why)
		return
	}
	r.finish(why)
	g.journal.untrack(r)
}

// faultPacket records a packet that a panic has ended.
func (g *Gateway) faultPacket(t tuple, why string) {
	if !g.tap.news(swallowed{kind: "fault", what: why}) {
		return
	}
	if r := g.open("fault", t); r != nil {
		g.fault(r, why)
	}
}
