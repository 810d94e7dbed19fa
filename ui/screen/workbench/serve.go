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
			o.tell(themes.Warn, "it can't be opened: %v", err)
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
	return ask(o.core, "publishing its port", func(ctx context.Context, c link.Client, id string) (struct{}, error) {
		return struct{}{}, publish(ctx, c, id)
	}, func(_ struct{}, err error) tea.Cmd {
		if err != nil {
			o.tell(themes.Warn, "%s", paint.Failed(err))
			return nil
		}
		return o.cfg.Copy(p.URL, "the address")
	})
}
