package api

import (
	"errors"
	"fmt"
)

// Problem is the body of every answer that isn't a success.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (p *Problem) Error() string { return p.Message }

// NoSession is the error for a session that isn't there.
func NoSession(id string) error {
	return Problemf(CodeNotFound, "there is no session %q", Escape(Trim(id, 80)))
}

// Problemf makes a Problem of a code and words.
func Problemf(code, format string, args ...any) error {
	return &Problem{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeOf is the code of the Problem that an error is or wraps; "": it is none.
func CodeOf(err error) string {
	if p := (*Problem)(nil); errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// Codes of Problem that a caller can act on.
const (
	CodeNotFound = "not_found"
	CodeInvalid  = "invalid"  // the request can't be carried out as it is
	CodeUsage    = "usage"    // a word of the request isn't one that can be used there
	CodeDecided  = "decided"  // another client answered first
	CodeStale    = "stale"    // what is held isn't what was shown
	CodeGone     = "gone"     // nothing is held any more
	CodeNotLive  = "not_live" // the session has ended
	CodeBusy     = "busy"     // cannot be done now, but may be later
	CodeUnknown  = "unknown"  // the session's Stepbox, another one than the command's, has no such request
	CodeChecked  = "checked"  // a check failed, so nothing was applied
	CodeWatching = "watching" // the client only watches: it decides and changes nothing
	CodeInternal = "internal"
)
