package api

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// Moment names a point of a session's course, as people write it:
//
//	""       the end; of a live session, now
//	"start"  before anything happened
//	"12"     just after action 12 had ended
//	"12^"    just before action 12 began
//	"+1h2m"  that long after the session began
//	"=345"   just after event 345 of the record
//
// What isn't one of these is refused by Parse, and so by whoever serves it.
type Moment string

// Parts is what a Moment says. Exactly one field is set, but for Before, which
// goes with Action; the zero Parts is the end.
type Parts struct {
	Start  bool
	Action int
	Before bool
	After  *time.Duration // since the session began
	Event  uint64
}

// Parse reads a moment; a *Problem with CodeUsage says what is wrong with it.
func (m Moment) Parse() (Parts, error) {
	s := string(m)
	bad := func() (Parts, error) {
		return Parts{}, Problemf(CodeUsage, "%q is no moment: use an action's number, 12 for after it or 12^ for before it, +1h2m since the start, start, or end", Escape(Trim(s, 80)))
	}
	switch {
	case s == "" || s == "end":
		return Parts{}, nil
	case s == "start":
		return Parts{Start: true}, nil
	case s[0] == '+':
		d, err := time.ParseDuration(s[1:])
		if err != nil || d < 0 {
			return bad()
		}
		return Parts{After: &d}, nil
	case s[0] == '=':
		n, err := strconv.ParseUint(s[1:], 10, 63)
		if err != nil || n == 0 {
			return bad()
		}
		return Parts{Event: n}, nil
	}
	number, before := strings.CutSuffix(s, "^")
	n, err := strconv.ParseInt(strings.TrimPrefix(number, "#"), 10, 31)
	if err != nil || n < 1 {
		return bad()
	}
	return Parts{Action: int(n), Before: before}, nil
}

// CutRange splits "A..B". Without ".." it is what happened from the start to A.
func CutRange(s string) (from, to Moment) {
	if a, b, ok := strings.Cut(s, ".."); ok {
		a = cmp.Or(a, "start")
		return Moment(a), Moment(b)
	}
	return "", Moment(s)
}

// MomentOf is the moment just after an event.
func MomentOf(seq uint64) Moment {
	if seq == 0 {
		return "start"
	}
	return Moment("=" + strconv.FormatUint(seq, 10))
}

// At is where a moment is in a session's course.
type At struct {
	Seq        uint64        `json:"seq"`        // the last event up to it; 0: none
	Time       time.Time     `json:"time"`       // of that event, or what was asked for
	Offset     time.Duration `json:"offset"`     // of Time since the session began, in nanoseconds
	Checkpoint int64         `json:"checkpoint"` // the state of all files then; 0: nothing had changed, or none was taken yet
	Action     int           `json:"action"`     // the newest action by then; 0: none
}
