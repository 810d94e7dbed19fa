package network

import (
	"fmt"
	"net/netip"
	"strings"

	"stepbox/policy"
	"stepbox/runner/egress"
	"stepbox/session/api"
)

// maxOutcomes destinations are remembered by what became of the last connection there.
const maxOutcomes = 4096

// outcomes are what became of the newest connection to each destination, in words. When
// full, those of some are forgotten. It is the session's loop's.
type outcomes map[policy.Destination]string

// placed is a destination whatever address stands for its name now.
func placed(to policy.Destination) policy.Destination {
	if to.Name != "" {
		to.Addr = netip.Addr{}
	}
	return to
}

// note takes an attempt that is over.
func (o *outcomes) note(at egress.Attempt) {
	if *o == nil {
		*o = make(outcomes)
	}
	for to := range *o {
		if len(*o) < maxOutcomes {
			break
		}
		delete(*o, to)
	}
	words := api.Escape(at.Rule)
	switch {
	case api.Verdict(at.Verdict) == api.Deny:
		words = Refused(words)
	case at.Failure != "":
		words = fmt.Sprintf("allowed: %s; it failed: %s", words, api.Escape(at.Failure))
	default:
		words = fmt.Sprintf("allowed: %s; %d bytes out, %d in", words, at.Sent, at.Received)
	}
	(*o)[placed(Destination(at))] = words
}

// Refused says of what was denied by which rule, or by whom.
func Refused(rule string) string {
	if strings.HasPrefix(rule, "denied ") {
		return rule
	}
	return "denied: " + rule
}

// LastTime says what became of the newest connection to a destination; "" where there
// was none.
func (n *Network) LastTime(to policy.Destination) string { return n.last[placed(to)] }
