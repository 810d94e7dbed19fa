package workbench

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/link"
	"stepbox/ui/paint"
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

// noticeTime is how long a notice stands.
const noticeTime = 6 * time.Second

// notice is one thing that is told.
type notice struct {
	text  string
	token themes.Token
	until time.Time
	more  func() string // what is said behind it, as the keys are now; nil: nothing
	holds func() bool   // whether it is still so; nil: it was about what happened
	ofKey bool          // it answers a key: it stands on the last line, wherever the keys are
}

// notices are what is told to the person, one after the other.
type notices struct {
	clock  func() time.Time
	notice notice   // that stands now
	next   []notice // what is told after it, what warns first; at most maxNext
}

// tell tells something at once, in the place of what is told.
func (n *notices) tell(token themes.Token, format string, args ...any) {
	n.notice = notice{text: paint.Clean(fmt.Sprintf(format, args...)), token: token, until: n.clock().Add(noticeTime)}
}

// info tells something in the usual look, warn what is to be cared about, and fail why something failed.
func (n *notices) info(format string, args ...any) { n.tell(themes.Info, format, args...) }
func (n *notices) warn(format string, args ...any) { n.tell(themes.Warn, format, args...) }
func (n *notices) fail(err error)                  { n.warn("%s", paint.Failed(err)) }

// answerKey says why a key did nothing, and which does.
func (n *notices) answerKey(token themes.Token, words string) {
	n.tell(token, "%s", words)
	n.notice.ofKey = true
}

// maxNext bounds what waits to be told.
const maxNext = 8

// tellToo tells something beside what stands already: one is shown after the other, what
// warns before what doesn't.
func (n *notices) tellToo(token themes.Token, words string) {
	was := n.notice
	if was.text != "" && (token != themes.Warn || was.token == themes.Warn) {
		i := len(n.next)
		if token == themes.Warn {
			if i = slices.IndexFunc(n.next, func(o notice) bool { return o.token != themes.Warn }); i < 0 {
				i = len(n.next)
			}
		}
		n.next = slices.Insert(n.next, i, notice{text: words, token: token})
	} else {
		n.tell(token, "%s", words)
		if was.text != "" {
			n.next = append(n.next, was)
		}
	}
	n.next = n.next[:min(len(n.next), maxNext)]
}

// pass goes on to what is to be told next when a notice has stood for its time.
func (n *notices) pass() {
	if n.notice.text == "" || !n.clock().After(n.notice.until) {
		return
	}
	n.notice = notice{}
	if len(n.next) > 0 {
		n.tell(n.next[0].token, "%s", n.next[0].text)
		n.next = n.next[1:]
	}
}

// fresh says whether the person has hardly had the time to read the notice.
func (n *notices) fresh() bool {
	return n.notice.text != "" && n.notice.until.Sub(n.clock()) > noticeTime-2*time.Second
}
