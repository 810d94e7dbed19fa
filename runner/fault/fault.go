// Package fault says what a panic was about, to whoever can report it. It has no state.
package fault

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// most bounds what is said of a panic's value, in bytes.
const most = 200

// Of is what a panic was about and where it began, in one line and quoted. It is for the deferred
// function that recovers, which calls it itself.
func Of(cause any) string {
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
	said := fmt.Sprint(cause)
	return fmt.Sprintf("please report this: %q at %s", strings.ToValidUTF8(said[:min(len(said), most)], ""), place)
}
