package workbench

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/paint"
)

// operations are what a person has the session do besides answering.
type operations struct {
	*core
	dialogs    *dialog.Stack
	plan       *dialog.Plan // the plan that is open, or was
	cancel     func()       // cancels what is carried out of it
	reading    bool         // a file's differences are being fetched for it
	taken      func(int64)  // called when the edit that a question is about was taken back
	done       func()       // called when what the plan is for was done
	stopBisect func()       // ends the search for what broke something
}

// follow carries out what follows from a dialog.
func (o *operations) follow(d dialog.Dialog, i intent.Intent) tea.Cmd {
	switch i := i.(type) {
	case intent.Replan:
		return o.replan()
	case intent.CarryOut:
		return o.carryOut()
	case intent.Stop:
		o.cancel()
	case intent.AskCheck:
		o.dialogs.Open(dialog.NewCheck(i))
	case intent.Save:
		if f, ok := d.(*dialog.File); ok {
			o.dialogs.Open(dialog.NewSaveFile(f))
		}
	case intent.SaveAs:
		return o.write(d, "✓ saved as "+i.Name, func(ctx context.Context, id string) error { return o.cfg.Save(ctx, id, i.Key, i.At, i.Name) })
	case intent.ExportTo:
		return o.write(d, "✓ written: "+i.File+"; git apply takes it", func(ctx context.Context, id string) error { return o.cfg.Export(ctx, id, i.File) })
	case intent.BisectFor:
		if b, ok := d.(*dialog.Bisect); ok {
			return o.bisect(b, i.Command)
		}
	case intent.SetCheck:
		o.dialogs.Close(d)
		o.plan.Handle(i)
		return o.replan()
	case intent.UndoApply:
		o.dialogs.Close(d)
		return o.undo(i.ID)
	case intent.DoPage:
		o.dialogs.Close(d)
		return o.page(i.Page, i.Open)
	case intent.DoKill:
		o.dialogs.Close(d)
		return o.kill(i.Action)
	case intent.DoMode:
		o.dialogs.Close(d)
		return o.setMode(i.Mode)
	}
	return nil
}

// simple sends a request whose only answer is whether it worked.
func (o *operations) simple(doing string, token themes.Token, done string, f func(context.Context, link.Client, string) (api.Event, error)) tea.Cmd {
	return get(o.core, doing, f, func(e api.Event) {
		o.present().Apply(e)
		o.tell(token, "%s", done)
	})
}

// keep marks the changes of actions as reviewed. Then does what follows when all
// of them are.
func (o *operations) keep(acts []int, then func()) tea.Cmd {
	return o.long("keeping", func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		var kept []api.Action
		var err error
		for _, n := range acts {
			var a api.Action
			if a, err = c.Keep(ctx, id, n); err != nil {
				break
			}
			kept = append(kept, a)
		}
		return func() tea.Cmd {
			for i := range kept {
				o.present().Apply(api.Event{Action: &kept[i]})
			}
			if err != nil {
				o.tell(themes.Warn, "%s", paint.Failed(err))
				return nil
			}
			o.tell(themes.OK, "✓ kept %s", api.Numbered(acts))
			then()
			return nil
		}
	})
}

// onSession is simple for what answers with the session.
func (o *operations) onSession(doing string, token themes.Token, done string, f func(link.Client, context.Context, string) (api.Session, error)) tea.Cmd {
	return o.simple(doing, token, done, func(ctx context.Context, c link.Client, id string) (api.Event, error) {
		ses, err := f(c, ctx, id)
		return api.Event{Session: &ses}, err
	})
}

func (o *operations) kill(n int) tea.Cmd {
	if n == 0 {
		return o.onSession("ending the sandbox", themes.Warn, "the sandbox was killed", link.Client.Kill)
	}
	return o.simple("killing", themes.Warn, fmt.Sprintf("killed #%d", n), func(ctx context.Context, c link.Client, id string) (api.Event, error) {
		a, err := c.KillAction(ctx, id, n)
		return api.Event{Action: &a}, err
	})
}

// thaws says whether an intent lets a paused agent go on.
func (c *core) thaws(i intent.Intent) bool {
	mode, _ := i.(intent.SetMode)
	return c.st.Session.State == api.SessionPaused && (i == intent.Pause{} || mode.Mode == api.ModePolicy)
}

func (o *operations) setMode(m api.Mode) tea.Cmd {
	thaw := o.thaws(intent.SetMode{Mode: m})
	return o.onSession("changing the mode", themes.OK, fmt.Sprintf("mode %s: %s", m, dialog.ModeWords(m)), func(c link.Client, ctx context.Context, id string) (api.Session, error) {
		ses, err := c.SetMode(ctx, id, m)
		if err == nil && thaw {
			ses, err = c.Continue(ctx, id)
		}
		return ses, err
	})
}

func (o *operations) pause() tea.Cmd {
	if o.thaws(intent.Pause{}) {
		return o.onSession("letting it go on", themes.OK, "✓ goes on", link.Client.Continue)
	}
	return o.onSession("pausing", themes.Info, "paused: "+keys.First(intent.Pause{}, keys.Panes)+" goes on", link.Client.Pause)
}

// changed fetches what an action changed, if its details lack that.
func (o *operations) changed(top dialog.Dialog) tea.Cmd {
	d, ok := top.(*dialog.Details)
	if !ok || !d.Lacks() {
		return nil
	}
	diffs := func(ctx context.Context, c link.Client, id string) ([]api.FileDiff, error) {
		return dialog.Differences(c.Diffs(ctx, id, api.Scope{Action: d.Action}))
	}
	return ask(o.core, "", diffs, func(diffs []api.FileDiff, err error) tea.Cmd {
		d.SetDiffs(diffs, paint.Failed(err))
		return nil
	})
}

// execs fetches the programs of an action, for its details.
func (o *operations) execs(n int, d *dialog.Details) tea.Cmd {
	read := func(ctx context.Context, c link.Client, id string) ([]api.Exec, error) { return c.Execs(ctx, id, n) }
	return ask(o.core, "", read, func(execs []api.Exec, err error) tea.Cmd {
		d.SetExecs(execs, paint.Failed(err))
		return nil
	})
}
