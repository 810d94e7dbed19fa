package workbench

import (
	"cmp"
	"context"
	"iter"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/link"
	"stepbox/ui/paint"
)

// travel carries out the intents about files as they were, and about what broke
// something.
func (s *Screen) travel(i intent.Intent) tea.Cmd {
	switch i := i.(type) {
	case intent.View:
		return s.readFile(false)
	case intent.Blame:
		return s.readFile(true)
	case intent.Bisect:
		s.asking.dialogs.Open(dialog.NewBisect(s.present().Session))
	case intent.GoTo:
		return s.toAction(i.Action, s.here())
	}
	return nil
}

// readFile opens the file that the cursor of Changes is on, as it is in what is shown.
func (s *Screen) readFile(who bool) tea.Cmd {
	key, m := s.changes.pane.File(), s.changes.moment()
	read := func(ctx context.Context, c link.Client, id string) (api.Blame, error) {
		return c.Blame(ctx, id, key, m)
	}
	return get(s.core, "reading the file", read, func(b api.Blame) { s.asking.dialogs.Open(dialog.NewFile(b, key, m, who)) })
}

// toChanges goes to an action, and to what it changed.
func (s *Screen) toChanges(action int) tea.Cmd {
	cmd := s.toAction(action, s.here())
	s.changes.show(api.Scope{Action: action})
	return cmd
}

// moment is when the files were as Changes shows them.
func (f *fetcher) moment() api.Moment {
	at := f.pane.Scope()
	if at.Action != 0 {
		return api.Moment(strconv.Itoa(at.Action))
	}
	return at.To
}

// write writes a new file on the host, for the dialog that asked for its name.
func (o *operations) write(d dialog.Dialog, done string, write func(ctx context.Context, id string) error) tea.Cmd {
	return o.long("saving", func(ctx context.Context, _ link.Client, id string) func() tea.Cmd {
		err := write(ctx, id)
		return func() tea.Cmd {
			if err != nil {
				d.Fail(paint.Failed(err))
				o.fail(err)
				return nil
			}
			o.dialogs.Close(d)
			o.tell(themes.OK, "%s", done)
			return nil
		}
	})
}

// bisecting is how the search for what broke something goes.
type bisecting struct {
	how   []string // what was found out so far
	done  *api.Bisected
	diffs []api.FileDiff // of the one that broke it
}

// maxDiffs is how many files of what broke it are shown in the answer.
const maxDiffs = 20

// read adds what the action changed that broke it.
func (b bisecting) read(ctx context.Context, c link.Client, id string) bisecting {
	if b.done == nil || len(b.done.Steps) != 1 {
		return b
	}
	for d, err := range c.Diffs(ctx, id, api.Scope{From: b.done.Steps[0].From, To: b.done.Steps[0].To}) {
		if err != nil {
			d.Note = paint.Failed(err)
		}
		if b.diffs = append(b.diffs, d); len(b.diffs) == maxDiffs {
			b.diffs = append(b.diffs, api.FileDiff{Note: "there may be more: Changes shows all of them"})
			break
		}
	}
	return b
}

// bisect looks for the action that broke a command, and tells the dialog. It ends with
// the dialog.
func (o *operations) bisect(d *dialog.Bisect, command string) tea.Cmd {
	ctx, cancel := context.WithCancel(o.link.Context())
	o.stopBisect = cancel
	return stream(ctx, o.core, func(ctx context.Context, c link.Client, id string) iter.Seq2[bisecting, error] {
		return func(yield func(bisecting, error) bool) {
			var now bisecting
			var steps []api.BisectStep
			for p, err := range c.Bisect(ctx, id, api.BisectRequest{Command: command}) {
				steps, now.done = append(steps, p.Steps...), cmp.Or(p.Done, now.done)
				if p.Run != nil && !p.Run.Stopped {
					now.how = append(now.how, p.Run.Words(steps))
				}
				if err == nil && p.Problem != nil {
					err = p.Problem
				}
				if now = now.read(ctx, c, id); !yield(now, err) {
					return
				}
			}
		}
	}, func(now bisecting) { d.Tell(now.how) }, func(last bisecting, err error) tea.Cmd {
		stopped := ctx.Err() != nil
		cancel()
		d.Tell(last.how)
		problem := paint.Failed(err)
		if last.done == nil {
			problem = cmp.Or(problem, "it ended without an answer")
		}
		if !stopped {
			d.End(last.done, last.diffs, problem)
		}
		return nil
	})
}
