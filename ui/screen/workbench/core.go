package workbench

import (
	"context"
	"iter"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/link"
	"stepbox/ui/state"
)

// core is what the controllers of a screen share: the connection, what is known
// of the session, what is said to the person, and how requests are made.
type core struct {
	notices

	cfg    Config
	spin   string // the mark beside what takes long, or ""; as it was drawn last
	link   *link.Link
	st     state.State  // as it is shown
	now    *state.State // while what was is shown: as it stands now; else nil
	wanted bool         // what was is to be shown, or is: no key is the agent's
	caught bool         // what was recorded before has been read
	over   bool         // nothing more will come
	gone   bool         // it was removed
	lostEv string       // why the events can't be read, or ""
	lostTm string       // why the terminal can't
	used   state.History
	doing  []string // what takes long, in words
}

// past says whether what was is shown.
func (c *core) past() bool { return c.now != nil }

// present is how the session stands now, whatever is shown.
func (c *core) present() *state.State {
	if c.past() {
		return c.now
	}
	return &c.st
}

// Over says whether the session is known to have ended.
func (c *core) Over() bool {
	s := &c.present().Session
	return c.over || s.State != "" && !s.Live()
}

// live says whether there is an agent to type to and to decide on.
func (c *core) live() bool { return !c.past() && !c.Over() }

// types says whether keys in the Terminal are the agent's, and its size this screen's.
func (c *core) types() bool { return c.live() && !c.wanted && !c.cfg.Watching }

// said is what stands where notices are.
func (c *core) said() notice {
	if n := len(c.doing); n > 0 && c.spin != "" {
		return notice{text: c.spin + " " + c.doing[n-1], token: themes.Info}
	}
	n := c.notice
	if n.holds != nil && !n.holds() {
		return notice{}
	}
	if n.more != nil {
		n.text += n.more()
	}
	return n
}

// Busy says whether something takes long that the person waits for.
func (c *core) Busy() bool {
	return len(c.doing) > 0 || !c.Over() && c.present().Session.State == api.SessionStarting
}

// requestTime bounds every request, but for plans: those read what they are for.
const (
	requestTime = 30 * time.Second
	planTime    = 10 * time.Minute
)

// result is what a command found out, for the screen of the link it was for.
type result struct {
	link *link.Link
	then func() tea.Cmd
}

// request is made off the goroutine that owns the screen, and returns what to do
// with its answer on it.
type request func(ctx context.Context, client link.Client, id string) func() tea.Cmd

// do makes a command of a request.
func (c *core) do(f request) tea.Cmd { return c.within(requestTime, f) }

func (c *core) within(most time.Duration, f request) tea.Cmd {
	l, client := c.link, c.cfg.Client
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(l.Context(), most)
		defer cancel()
		return result{link: l, then: f(ctx, client, l.ID)}
	}
}

// long is do for what may take long: until it is done, its words stand where
// notices are.
func (c *core) long(doing string, f request) tea.Cmd {
	c.doing = append(c.doing, doing)
	return c.do(func(ctx context.Context, client link.Client, id string) func() tea.Cmd {
		then := f(ctx, client, id)
		return func() tea.Cmd {
			i := slices.Index(c.doing, doing)
			c.doing = slices.Delete(c.doing, i, i+1)
			return then()
		}
	})
}

// ask is long, or do without words for it, of a request with one answer.
func ask[T any](c *core, doing string, f func(ctx context.Context, client link.Client, id string) (T, error), then func(T, error)) tea.Cmd {
	asked := func(ctx context.Context, client link.Client, id string) func() tea.Cmd {
		v, err := f(ctx, client, id)
		return func() tea.Cmd {
			then(v, err)
			return nil
		}
	}
	if doing == "" {
		return c.do(asked)
	}
	return c.long(doing, asked)
}

// get is ask for who can do without an answer: why there is none is said.
func get[T any](c *core, doing string, f func(ctx context.Context, client link.Client, id string) (T, error), then func(T)) tea.Cmd {
	return ask(c, doing, f, func(v T, err error) {
		if err != nil {
			c.fail(err)
		} else {
			then(v)
		}
	})
}

// stream makes commands of a request that is answered in parts and takes as long
// as it takes, until ctx is done. Only the newest part is taken; then the end.
func stream[T any](ctx context.Context, c *core, f func(ctx context.Context, client link.Client, id string) iter.Seq2[T, error],
	part func(T), end func(T, error) tea.Cmd) tea.Cmd {
	l, client := c.link, c.cfg.Client
	parts := make(chan T, 1) // who fills it empties it first: one is enough, the newest
	run := func() tea.Msg {
		defer close(parts)
		var last T
		var failed error
		for p, err := range f(ctx, client, l.ID) {
			if failed = err; err != nil {
				break
			}
			last = p
			select {
			case <-parts:
			default:
			}
			parts <- p
		}
		return result{link: l, then: func() tea.Cmd { return end(last, failed) }}
	}
	var next func() tea.Msg
	next = func() tea.Msg {
		p, more := <-parts
		if !more {
			return nil
		}
		return result{link: l, then: func() tea.Cmd { part(p); return next }}
	}
	return tea.Batch(run, next)
}

// after makes a command that waits.
func (c *core) after(d time.Duration, then func() tea.Cmd) tea.Cmd {
	l := c.link
	return func() tea.Msg {
		if !link.Pause(l.Context(), d) {
			return nil
		}
		return result{link: l, then: then}
	}
}

// miss notes that a session was removed, where that is why a request failed.
func (c *core) miss(err error) { c.gone = c.gone || api.CodeOf(err) == api.CodeNotFound }
