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

// maxFault bounds what is said of a panic, in bytes.
const maxFault = 200

// survive is deferred where a packet or a flow is handled. After a panic it has end
// close what was being handled, and record why; what panics there is over, too.
func survive(end func(why string)) {
	cause := recover()
	if cause == nil {
		return
	}
	defer func() { _ = recover() }()
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
