package api

import "runtime/debug"

// Version is the API's. It counts up when something is added that a client may
// have to know of; what /v1 has never changes its meaning and never goes, so
// that a command of any version lists, joins, answers and ends the sessions of
// another. Who reads answers ignores fields and kinds of events that it doesn't
// know. A request is read strictly: a field that isn't known is a wish that
// wouldn't be fulfilled, and is refused.
const Version = 2

// About is what GET /v1 answers.
type About struct {
	API     int    `json:"api"`     // Version; of servers before 2 the path isn't there
	Stepbox string `json:"stepbox"` // Build
}

// Build is this program's own version, as the module system knows it.
func Build() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "(devel)"
}
