package workbench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

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
				o.fail(err)
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
	return ask(o.core, "", diffs, func(diffs []api.FileDiff, err error) { d.SetDiffs(diffs, paint.Failed(err)) })
}

// execs fetches the programs of an action, for its details.
func (o *operations) execs(n int, d *dialog.Details) tea.Cmd {
	read := func(ctx context.Context, c link.Client, id string) ([]api.Exec, error) { return c.Execs(ctx, id, n) }
	return ask(o.core, "", read, func(execs []api.Exec, err error) { d.SetExecs(execs, paint.Failed(err)) })
}

// signInTime is for how long a port is published that a page leads back to.
const signInTime = 10 * time.Minute

// offers are the palette's commands for the pages that the agent wants opened, the newest
// first, and for its servers. What they say of them is the agent's word.
func (o *operations) offers() (out []keys.Binding) {
	if !o.live() {
		return nil
	}
	ses := &o.present().Session
	for _, p := range slices.Backward(ses.Pages) {
		out = append(out,
			keys.Command("open page", p.Host+": show its address, to open it in your browser", intent.WebPage{Page: p, Open: true}),
			keys.Command("copy page", p.Host+": show its address, to copy it", intent.WebPage{Page: p}))
	}
	for _, p := range ses.Ports {
		at := fmt.Sprintf("localhost:%d", p.At)
		out = append(out,
			keys.Command("copy "+at, "the address of the agent's server, to the clipboard", intent.Copy{Text: p.URL()}),
			keys.Command("open "+at, "the agent's server, in your browser", intent.Browse{URL: p.URL()}),
			keys.Command(fmt.Sprintf("unpublish port %d", p.Port), "this machine doesn't reach it any more", intent.Unpublish{Port: p.Port}))
	}
	for _, p := range ses.Servers {
		what := "a server of the agent's"
		if p.Program != "" {
			what = p.Program + " listens there"
		}
		out = append(out, keys.Command(fmt.Sprintf("publish port %d", p.Port), what+": reach it from this machine, at localhost", intent.Publish{Port: p.Port}))
	}
	return out
}

// serve carries out what is about servers and pages.
func (o *operations) serve(i intent.Intent) tea.Cmd {
	switch i := i.(type) {
	case intent.Publish:
		return get(o.core, "publishing", func(ctx context.Context, c link.Client, id string) (api.Port, error) {
			return c.Publish(ctx, id, api.Publishing{Port: i.Port})
		}, func(p api.Port) {
			o.tell(themes.OK, "✓ port %d is at %s: the palette copies or opens it", p.Port, p.URL())
		})
	case intent.Unpublish:
		return o.onSession("unpublishing", themes.OK, fmt.Sprintf("port %d isn't published any more", i.Port), func(c link.Client, ctx context.Context, id string) (api.Session, error) {
			return c.Unpublish(ctx, id, i.Port)
		})
	case intent.Copy:
		return o.cfg.Copy(i.Text, cmp.Or(i.What, i.Text))
	case intent.Browse:
		return o.browse(i.URL, nil)
	case intent.WebPage:
		p, err := api.ParseWebPage(i.Page.URL) // whatever the session says of it
		if err != nil {
			o.warn("it can't be opened: %v", err)
			return nil
		}
		o.dialogs.Open(dialog.ConfirmPage(p, i.Open))
	}
	return nil
}

// browse opens an address in the person's browser, after something that may fail.
func (o *operations) browse(url string, first func(context.Context, link.Client, string) error) tea.Cmd {
	open := o.cfg.Browse
	return get(o.core, "opening it", func(ctx context.Context, c link.Client, id string) (none struct{}, err error) {
		if first != nil {
			err = first(ctx, c, id)
		}
		if err == nil {
			err = open(ctx, url)
		}
		return none, err
	}, func(struct{}) { o.tell(themes.OK, "✓ your browser was told to open it") })
}

// page opens a page or copies its address. First it has the port answer that the page is
// at or leads back to: that very one, or the page isn't opened.
func (o *operations) page(p api.WebPage, open bool) tea.Cmd {
	published := p.Port == 0 || slices.ContainsFunc(o.present().Session.Ports, func(is api.Port) bool { return is.Port == p.Port && is.At == p.Port })
	publish := func(ctx context.Context, c link.Client, id string) error {
		if published {
			return nil
		}
		_, err := c.Publish(ctx, id, api.Publishing{Port: p.Port, At: p.Port, Exactly: true, For: signInTime})
		return err
	}
	if open {
		return o.browse(p.URL, publish)
	}
	return o.long("publishing its port", func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		err := publish(ctx, c, id)
		return func() tea.Cmd {
			if err != nil {
				o.fail(err)
				return nil
			}
			return o.cfg.Copy(p.URL, "the address")
		}
	})
}
