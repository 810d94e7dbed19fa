package workbench

import (
	"cmp"
	"context"
	"iter"
	"path"
	"strconv"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/link"
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
		s.asking.dialogs.open(dialog.NewBisect(s.present().Session))
	case intent.GoTo:
		s.view.setFocus(intent.Actions)
		if !s.asking.list.Select(i.Action) {
			s.tell(themes.Info, "action %d isn't in the list that is shown", i.Action)
		}
	}
	return nil
}

// readFile opens the file that the cursor of Changes is on, as it is in what is shown.
func (s *Screen) readFile(who bool) tea.Cmd {
	key, at := s.changes.pane.File(), s.changes.pane.Scope()
	m := at.To
	if at.Action != 0 {
		m = api.Moment(strconv.Itoa(at.Action))
	}
	return s.long("reading the file", func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		b, err := c.Blame(ctx, id, key, m)
		return func() tea.Cmd {
			if err != nil {
				s.tell(themes.Warn, "%s", problemWords(err))
				return nil
			}
			s.asking.dialogs.open(dialog.NewFile(b, key, m, who))
			return nil
		}
	})
}

// saveFile writes the file that is read to one on the host.
func (s *Screen) saveFile(f *dialog.File, name string) tea.Cmd {
	save := s.cfg.Save
	return s.long("saving", func(ctx context.Context, _ link.Client, id string) func() tea.Cmd {
		err := save(ctx, id, f.Key, f.At, name)
		return func() tea.Cmd {
			if err != nil {
				s.tell(themes.Warn, "%s", problemWords(err))
				return nil
			}
			s.tell(themes.OK, "✓ saved as %s", name)
			return nil
		}
	})
}

// travelled carries out what follows from a dialog about files as they were.
func (s *Screen) travelled(d dialog.Dialog, i intent.Intent) tea.Cmd {
	switch i := i.(type) {
	case intent.GoTo:
		s.asking.dialogs.close(d)
		return s.travel(i)
	case intent.Save:
		f, ok := d.(*dialog.File)
		if !ok || s.cfg.Save == nil {
			s.tell(themes.Info, "stepbox cat -o saves a file")
			return nil
		}
		name, _ := api.PathOf(f.Key)
		s.asking.dialogs.open(dialog.NewSaveFile(path.Base(name)))
	case intent.SaveAs:
		s.asking.dialogs.close(d)
		if f, ok := s.asking.dialogs.top().(*dialog.File); ok {
			return s.saveFile(f, i.Name)
		}
	case intent.BisectFor:
		if b, ok := d.(*dialog.Bisect); ok {
			return s.bisect(b, i.Command)
		}
	}
	return nil
}

// bisect looks for the action that broke a command, and tells the dialog. It ends with
// the dialog.
func (s *Screen) bisect(d *dialog.Bisect, command string) tea.Cmd {
	ctx, cancel := context.WithCancel(s.link.Context())
	s.stopBisect = cancel
	var done *api.Bisected // written before the stream ends, read after
	told := make(chan string, 64)
	run := func(ctx context.Context, c link.Client, id string) iter.Seq2[api.Progress, error] {
		return func(yield func(api.Progress, error) bool) {
			var steps []api.BisectStep
			for p, err := range c.Bisect(ctx, id, api.BisectRequest{Command: command}) {
				steps = append(steps, p.Steps...)
				out := api.Progress{Problem: p.Problem}
				switch {
				case p.Done != nil:
					done = p.Done
				case p.Run != nil && !p.Run.Stopped:
					select {
					case told <- p.Run.Words(steps):
					default: // more runs at once than anybody reads
					}
				}
				if !yield(out, err) {
					return
				}
			}
		}
	}
	hear := func() {
		for {
			select {
			case words := <-told:
				d.Tell(words)
			default:
				return
			}
		}
	}
	return s.stream(ctx, run, func(api.Progress) { hear() }, func(last api.Progress, err error) tea.Cmd {
		hear()
		stopped := ctx.Err() != nil
		cancel()
		problem := problemWords(err)
		if last.Problem != nil {
			problem = problemWords(last.Problem)
		}
		if done == nil {
			problem = cmp.Or(problem, "it ended without an answer")
		}
		if !stopped {
			d.End(done, problem)
		}
		return nil
	})
}
