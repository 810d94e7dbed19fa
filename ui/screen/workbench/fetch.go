package workbench

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/paint"
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

	looked int64 // the checkpoint that the person has looked at last; 0 for none

	waiting, running         bool
	failed                   bool // the last request for the list
	diffWaiting, diffRunning bool
}

// idle says whether all that is wanted has been fetched.
func (f *fetcher) idle() bool {
	return !f.pane.Loading && !f.waiting && !f.running && !f.failed && !f.diffWaiting && !f.diffRunning
}

// scope shows the changes of an action, or of the session if that is shown
// already. From Changes itself it goes on to the next scope that there is: the
// session's, what came since the person looked, the action's.
func (f *fetcher) scope(action int, focused bool) {
	now, next := f.pane.Scope(), api.Scope{}
	switch {
	case focused && now.Action == 0 && now.Since == 0 && f.looked != 0 && !f.past():
		next.Since = f.looked
	case now.Action == 0 || !focused && now.Action != action:
		next.Action = action
	}
	f.show(next)
}

func (f *fetcher) show(scope api.Scope) {
	f.pane.SetScope(scope)
	f.failed = false // of the scope that was shown before
}

// recall asks what the person has looked at before.
func (f *fetcher) recall() tea.Cmd {
	memory := f.cfg.Kept.Looked()
	return f.do(func(_ context.Context, _ link.Client, id string) func() tea.Cmd {
		at := memory.At(id)
		return func() tea.Cmd {
			f.looked = max(f.looked, at)
			return nil
		}
	})
}

// mark remembers that the person has looked at what is shown.
func (f *fetcher) mark() tea.Cmd {
	at, memory := f.pane.Looked(), f.cfg.Kept.Looked()
	switch {
	case f.pane.Action != 0:
		f.info("this is one action's changes: m marks the session's (s)")
		return nil
	case at == 0:
		f.info("nothing to mark as looked at yet: there is no checkpoint of what is shown")
		return nil
	}
	f.looked = at
	f.tell(themes.OK, "marked as looked at: %s shows what changes from here on", keys.First(intent.Scope{}, keys.Changes))
	if f.pane.Since != 0 {
		f.show(api.Scope{Since: at})
	}
	return f.do(func(_ context.Context, _ link.Client, id string) func() tea.Cmd {
		err := memory.Set(id, at)
		return func() tea.Cmd {
			if err != nil {
				f.warn("%s", err)
			}
			return nil
		}
	})
}

// selection is what is chosen to be applied, the scope that it was chosen in, and
// what lets go of it once it was.
func (f *fetcher) selection() (api.Selection, api.Scope, func()) {
	return f.pane.Selection(), f.pane.Scope(), func() { f.pane.Clear() }
}

// under is what is chosen to be taken back: the selection, else what the cursor is on.
func (f *fetcher) under() (api.Selection, api.Scope, func()) {
	if f.pane.Selected() > 0 || f.pane.Action != 0 {
		return f.selection()
	}
	sel, _ := f.pane.Under()
	return sel, f.pane.Scope(), func() {}
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
	scope, most := f.pane.Scope(), f.pane.Rows()
	return f.do(func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		got, err := c.Changes(ctx, id, scope, most)
		tree := changes.NewTree(got)
		return func() tea.Cmd {
			f.running, f.failed = false, err != nil
			if err == nil {
				f.pane.SetChanges(scope, tree)
			} else if scope == f.pane.Scope() {
				f.pane.Loading, f.pane.Problem = false, paint.Failed(err)
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
		got, err := c.Diff(ctx, id, w.Key, w.Scope)
		var d *changes.Diff
		if err == nil {
			d = changes.Prepare(got)
		}
		return func() tea.Cmd {
			f.diffRunning = false
			f.pane.SetDiff(w, d, paint.Failed(err))
			return f.wantDiff(0)
		}
	})
}
