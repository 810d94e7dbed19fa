package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/find"
)

const filterHelp = "only `LINES` with these words, or that are denied, held, failed, exit≠0, edit, file:PATH, host:NAME, #12: as / has it in a session"

// filterFlag adds the flag that says what is listed.
func filterFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("filter", "", filterHelp)
}

// filter says of what is listed of a session whether it is asked for.
type filter struct {
	find.Filter
	hosts map[int][]string
	wrote find.Wrote
}

// filter reads what a line asks for: of actions, also where they connected and what they wrote.
func (c command) filter(s api.Session, line string) (filter, error) {
	f := filter{Filter: find.Parse(line)}
	if !f.Narrows() {
		return f, nil
	}
	attempts, err := c.client.Attempts(c.ctx, s.ID)
	if err == nil {
		f.hosts = find.Hosts(attempts)
		f.wrote, err = find.Writers(c.ctx, c.client.Find, s.ID, f.Paths())
	}
	return f, err
}

func (f filter) hasAction(a *api.Action) bool {
	r := find.OfAction(a, false, f.hosts[a.N], f.wrote.By(a.N))
	return f.Has(&r)
}

func (f filter) hasAttempt(a *api.Attempt) bool {
	r := find.OfAttempt(a)
	return f.Has(&r)
}

// hasEvent says it of an event as it is printed.
func (f filter) hasEvent(e api.Event, line string) bool {
	switch {
	case e.Action != nil:
		return f.hasAction(e.Action)
	case e.Attempt != nil:
		return f.hasAttempt(e.Attempt)
	}
	r := find.Row{Said: []string{line}}
	switch {
	case e.Exec != nil:
		r.N = e.Exec.Action
	case e.Decision != nil:
		r.N = e.Decision.Action
	}
	return f.Has(&r)
}

// actions are those that are asked for.
func (f filter) actions(all []api.Action) []api.Action {
	return slices.DeleteFunc(all, func(a api.Action) bool { return !f.hasAction(&a) })
}
