package workbench

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/link"
	"stepbox/ui/pane/changes"
)

// Pauses before fetching again what keeps changing.
const (
	changesPause = 150 * time.Millisecond
	diffPause    = 60 * time.Millisecond
	failurePause = 2 * time.Second // after a request that failed
)

// fetcher keeps the Changes pane up to date: at most one request for the list
// and one for a diff are under way.
type fetcher struct {
	*core
	pane changes.Pane

	waiting, running         bool
	failed                   bool // the last request for the list
	diffWaiting, diffRunning bool
}

// idle says whether all that is wanted has been fetched.
func (f *fetcher) idle() bool {
	return !f.pane.Loading && !f.waiting && !f.running && !f.failed && !f.diffWaiting && !f.diffRunning
}

// scope shows the changes of an action, or of the session if that is shown already.
func (f *fetcher) scope(action int, focused bool) {
	if f.pane.Action == action || focused && f.pane.Action != 0 {
		action = 0
	}
	f.pane.SetScope(action)
	f.failed = false // of the scope that was shown before
}

// catchUp fetches the changes of the scope that is shown for as long as what is
// shown isn't all that is known to be there. It is asked after every message, and
// compares versions instead of waiting for word: whatever was missed or came in
// the wrong order, the next message puts it right.
func (f *fetcher) catchUp() tea.Cmd {
	lacks := f.pane.Lacks(f.st.Changes, f.Over())
	if f.waiting || f.running || lacks == changes.Nothing {
		return nil
	}
	f.waiting = true
	switch {
	case f.failed:
		return f.after(failurePause, f.fetchChanges)
	case lacks == changes.News:
		return f.after(changesPause, f.fetchChanges)
	}
	return f.fetchChanges()
}

func (f *fetcher) fetchChanges() tea.Cmd {
	f.waiting, f.running = false, true
	action, most := f.pane.Action, f.pane.Rows()
	return f.do(func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		got, err := c.Changes(ctx, id, api.Scope{Action: action}, most)
		return func() tea.Cmd {
			f.running, f.failed = false, err != nil
			if err == nil {
				f.pane.SetChanges(action, got)
			} else if action == f.pane.Action {
				f.pane.Loading, f.pane.Problem = false, problemWords(err)
			}
			return f.wantDiff(0)
		}
	})
}

// wantDiff fetches the selected file's diff when it isn't shown yet.
func (f *fetcher) wantDiff(pause time.Duration) tea.Cmd {
	if _, ok := f.pane.Wanted(); !ok || f.diffWaiting || f.diffRunning {
		return nil
	}
	f.diffWaiting = true
	if pause <= 0 {
		return f.fetchDiff()
	}
	return f.after(pause, f.fetchDiff)
}

func (f *fetcher) fetchDiff() tea.Cmd {
	f.diffWaiting = false
	w, ok := f.pane.Wanted()
	if !ok {
		return nil
	}
	f.diffRunning = true
	return f.do(func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		got, err := c.Diff(ctx, id, w.Key, api.Scope{Action: w.Action})
		var d *changes.Diff
		words := ""
		if err != nil {
			words = problemWords(err)
		} else {
			d = changes.Prepare(got)
		}
		return func() tea.Cmd {
			f.diffRunning = false
			f.pane.SetDiff(w, d, words)
			return f.wantDiff(0)
		}
	})
}
