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

// few names some paths, which are escaped.
func few(paths []string) string {
	const most = 3
	return listed(api.EscapeAll(paths[:min(len(paths), most)]), len(paths), most)
}

// fewOf is few for what has paths.
func fewOf[T any](all []T, path func(T) string) string {
	paths := make([]string, len(all))
	for i, x := range all {
		paths[i] = path(x)
	}
	return few(paths)
}

// listed joins the first few of a number of names.
func listed(names []string, total, most int) string {
	if total <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), total-most+1)
}
