package api

// Scope is the two states of a session's files that are compared. The zero
// Scope compares the project folder, as the session first saw it, with the
// session's newest state. At most one of Action, Since, and From with To is set.
type Scope struct {
	Action int   `json:"action,omitempty"` // what this action changed
	Since  int64 `json:"since,omitempty"`  // what has changed since this checkpoint

	// What changed between two moments of the record; From "" is the project folder
	// as the session first saw it, which "start" is too, and To "" the newest state.
	From Moment `json:"from,omitempty"`
	To   Moment `json:"to,omitempty"`
}

// PatchRequest says what a patch has: the changes of a scope, or a selection.
type PatchRequest struct {
	Scope
	Selection
}

// PatchLost begins a line of a patch that names a file whose content the record lost.
const PatchLost = "# lost from the record, and not in this patch: "

// Selection names some of a session's changes. Its fields narrow each other
// down; the zero Selection is all of them.
type Selection struct {
	Actions []int    `json:"actions,omitempty"` // what these actions changed, and nothing else
	Without []int    `json:"without,omitempty"` // but not what these changed
	Globs   []string `json:"globs,omitempty"`   // paths that match one of these, as src/**
	Files   []Choice `json:"files,omitempty"`   // these files, or hunks of them
}

// All says whether a selection leaves nothing out.
func (s Selection) All() bool {
	return len(s.Actions)+len(s.Without)+len(s.Globs)+len(s.Files) == 0
}

// Choice is a changed file, or some of its hunks. A renamed file is chosen by
// its new path.
type Choice struct {
	Key string `json:"key"` // a Change's

	// Hunks are indices in the Hunks of the FileDiff whose Hash is Of: the one of
	// the selection's only action, or of the session when it names none. Without
	// any, all of the file is chosen. What differs from Of by now is refused as stale.
	Hunks []int  `json:"hunks,omitempty"`
	Of    string `json:"of,omitempty"`
}

// Conflict is a file in which two changes meet: the one that is to be made, and
// what others made of the file since. It names three states: the base that both
// come from, what is there, and what is wanted.
type Conflict struct {
	Key  string `json:"key"`
	Path string `json:"path"` // escaped
	Why  string `json:"why"`  // in words: who changed it, and how

	// Clean says that both changes can be had together, and Merged shows what
	// that would change in what is there. Else Clashes shows where they meet, when
	// the file is text.
	Clean   bool    `json:"clean,omitempty"`
	Merged  []Hunk  `json:"merged,omitempty"`
	Clashes []Clash `json:"clashes,omitempty"`
}

// Clash is one place of a file where two changes meet: the lines of each state.
type Clash struct {
	Line   int      `json:"line"` // of the first one there
	Base   []string `json:"base"` // lines, escaped
	There  []string `json:"there"`
	Wanted []string `json:"wanted"`
}

// Way is how a conflict is resolved.
type Way string

const (
	WayMerge  Way = "merge"  // both changes; only of what is Clean, or with a Side for each clash
	WayWanted Way = "wanted" // the file as it is wanted; what others changed in it is lost there
	WayThere  Way = "there"  // the file stays as it is
)

// Resolution is a person's word on a conflict. Without one, what is in conflict
// stays as it is.
type Resolution struct {
	Key   string `json:"key"`
	Way   Way    `json:"way"`
	Sides []Way  `json:"sides,omitempty"` // of WayMerge: WayWanted or WayThere for each clash
}
