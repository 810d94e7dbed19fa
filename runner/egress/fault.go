package egress

import "stepbox/runner/fault"

// What the sandbox sends is read by much code, of the stack's and ours. Should any
// of it panic, the packet or flow in its hands ends, which the attempt's record says,
// and nothing else does: least of all the supervisor, which ends the session.

// survive is deferred where a packet or a flow is handled. After a panic it has end
// close what was being handled, and record why; what panics there is over, too.
func survive(end func(why string)) {
	cause := recover()
	if cause == nil {
		return
	}
	defer func() { _ = recover() }()
	end("stepbox failed at it and ended it, " + fault.Of(cause))
}
