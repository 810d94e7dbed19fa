package session

import (
	"fmt"
	"strings"

	"stepbox/session/api"
)

// What of a hostile argument list is kept in the record and shown, at most.
const (
	maxArgs = 256
	maxArg  = 4096 // bytes each
)

// bounded cuts an argument list to what the record keeps of it.
func bounded(argv []string) []string {
	more := len(argv) - maxArgs
	if more > 0 {
		argv = append(argv[:maxArgs:maxArgs], fmt.Sprintf("… and %d more", more))
	}
	out := make([]string, len(argv))
	for i, a := range argv {
		out[i] = marked(a, maxArg)
	}
	return out
}

// marked cuts a text to so many bytes, and says so: what isn't shown of it may be what
// matters.
func marked(text string, most int) string {
	short := api.Trim(text, most)
	if short == text {
		return text
	}
	return short + fmt.Sprintf("… and %d bytes more", len(text)-len(short))
}

// listed joins the first few of a number of names.
func listed(names []string, total, most int) string {
	if total <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), total-most+1)
}
