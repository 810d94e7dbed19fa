package session

import (
	"fmt"

	"stepbox/session/api"
	"stepbox/session/files"
)

// Bounds of what the agent is told of a roll back.
const (
	toldTitle = 60 // bytes of a command
	toldFiles = 4
	toldPath  = 60 // bytes each
)

// tellOf is what the agent is told of what a roll back did to its files: the next
// command that it starts finds it on its standard error, which is where agents read
// what went wrong, and where a person at a shell sees it.
func tellOf(o *files.Outcome, actions *actions) string {
	what := "changes of the session"
	if n := len(o.Shown.Actions); n > 0 {
		what = "your changes of `" + api.Trim(actions.at(o.Shown.Actions[0]).Title, toldTitle) + "`"
		if n > 1 {
			what += fmt.Sprintf(" and of %d more", n-1)
		}
	}
	did := "were rolled back"
	if o.PutsIn() {
		did = "were put in again"
	}
	var names []string
	for _, c := range o.Changed() {
		word := "restored"
		if c.New == nil {
			word = "removed"
		}
		if names = append(names, api.Escape(api.Trim(c.Path, toldPath))+" "+word); len(names) == toldFiles {
			break
		}
	}
	return fmt.Sprintf("%s %s by the person: %s", what, did, listed(names, o.Files(), toldFiles))
}
