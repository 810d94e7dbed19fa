package api

import (
	"fmt"
	"time"
)

// Asking is what becomes of a session's questions when nobody answers them. The zero
// value has them wait.
type Asking struct {
	On OnAsk `json:"on,omitempty"`
	// Timeout is how long a question stands before it is denied, in nanoseconds; 0: until
	// it is answered.
	Timeout time.Duration `json:"timeout,omitempty"`
	// By is where what counts of it is said: a flag, or the file and line of a policy or of
	// a person's settings. Escaped in what a supervisor tells.
	By string `json:"by,omitempty"`
}

// Nobody is who denies, in the record, what no person answered.
const Nobody = "stepbox"

// OnAsk says whether a session's questions wait for an answer.
type OnAsk string

const (
	OnAskWait OnAsk = "wait" // also what "" means
	OnAskDeny OnAsk = "deny" // each is denied at once, whoever is attached
)

// Fault says what is wrong with it, in words; "" is nothing.
func (a Asking) Fault() string {
	switch {
	case a.On != "" && a.On != OnAskWait && a.On != OnAskDeny:
		return fmt.Sprintf("there is no %q: use wait or deny", Escape(Trim(string(a.On), 40)))
	case a.Timeout < 0:
		return fmt.Sprintf("%s is no time to wait: use one like 10m, or 0 for ever", a.Timeout)
	}
	return ""
}

// Words say it, "" for what is usual.
func (a Asking) Words() string {
	by := ""
	if a.By != "" {
		by = " (" + a.By + ")"
	}
	switch {
	case a.On == OnAskDeny:
		return "nobody: what asks is denied" + by
	case a.Timeout > 0:
		return fmt.Sprintf("for %s, then it is denied%s", a.Timeout, by)
	}
	return ""
}

// Stricter is what holds when both do: to deny is stricter than to wait, and a shorter
// wait than a longer one.
func (a Asking) Stricter(b Asking) Asking {
	out := a
	sooner := b.Timeout > 0 && (a.Timeout == 0 || b.Timeout < a.Timeout)
	if sooner {
		out.Timeout = b.Timeout
	}
	if b.On == OnAskDeny {
		out.On = OnAskDeny
	}
	if a.On != OnAskDeny && (b.On == OnAskDeny || sooner) {
		out.By = b.By
	}
	return out
}
