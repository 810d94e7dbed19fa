package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"stepbox/session/api"
)

// follow is run without a terminal: the agent's output goes to out as the agent
// wrote it, without what its terminal made of it (newlines), input comes from
// in, and what is held is said on diag. It returns when the session is over and
// out has all that the agent printed, however much of it came before, or after
// its supervisor had gone: the rest is in the record. An end of ctx makes it
// return early. With events, what happens goes there as JSON, one event on a line, instead
// of what is said on diag; that it can't be written there any more, or nobody reads it, is
// an error at once, as nobody learns then what is held.
func follow(ctx context.Context, c *api.Client, id string, in io.Reader, out, diag, events io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	plain := &newlines{w: out}
	f := &follower{client: c, id: id, out: plain, diag: diag, events: events, conns: make(chan *api.TerminalConn, 1), stop: cancel}
	if err := f.begin(ctx); err != nil {
		return err
	}
	if pipe, ok := events.(*os.File); ok {
		stop, err := whenUnread(pipe, func() { f.lost(ctx, syscall.EPIPE) })
		if err != nil {
			return err
		}
		defer stop()
	}
	go f.feed(ctx, in)
	over := make(chan error, 1)
	go func() { over <- f.announce(ctx) }()
	err := f.copy(ctx)
	if err == nil {
		err = plain.flush()
	}
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		cancel(nil)
		<-over
		return err
	}
	return <-over // with the session
}

// lost ends the following of a session that isn't over, as its events can't be told.
func (f *follower) lost(ctx context.Context, why error) {
	s, err := f.client.Session(ctx, f.id)
	if err == nil && !s.Live() || ctx.Err() != nil {
		return
	}
	f.losing.Do(func() {
		fmt.Fprintf(f.diag, "stepbox: what happens can't be told any more: %v\n", why)
		f.stop(why)
	})
}

type follower struct {
	client    *api.Client
	id        string
	out, diag io.Writer
	events    io.Writer              // nil: what is held is said on diag
	conns     chan *api.TerminalConn // holds the newest one that takes input
	written   int64                  // bytes that out has, or isn't to have, owned by copy
	resumed   int                    // how often the session was, with this time
	asking    api.Asking
	stop      context.CancelCauseFunc
	losing    sync.Once // by whoever notices first
}

// again is the wait before a lost connection is made anew.
const again = 50 * time.Millisecond

// copy copies until all is copied. A connection that breaks is made again: the
// supervisor may have died, and then the record goes on where it stopped.
func (f *follower) copy(ctx context.Context) error {
	for {
		s, err := f.client.Session(ctx, f.id)
		if err != nil {
			return err
		}
		whole, err := f.stream(ctx, s.Live())
		switch {
		case err != nil || whole:
			return err
		case !s.Live():
			return fmt.Errorf("cannot read the output of session %s to its end: its record is damaged; stepbox log %s has the rest", s.Name, s.ID)
		}
		if err := wait(ctx); err != nil {
			return err
		}
	}
}

func wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(again):
		return nil
	}
}

// begin leaves out what the agent that ran before a session was resumed printed,
// and was asked.
func (f *follower) begin(ctx context.Context) error {
	s, err := f.client.Session(ctx, f.id)
	f.written, f.resumed, f.asking = s.Printed, s.Resumed, s.Asking
	if f.events == nil {
		sayBrought(f.diag, s)
	}
	return err
}

// stream copies what one connection brings beyond what was written already. It
// says whether that was all there is; an error is one of writing.
func (f *follower) stream(ctx context.Context, live bool) (whole bool, err error) {
	conn, err := f.client.Output(ctx, f.id)
	if err != nil {
		return false, ctx.Err() // the session may just have ended: it is looked at again
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if live {
		select { // the newest replaces one that nobody took
		case <-f.conns:
		default:
		}
		f.conns <- conn
	}
	for skip := f.written; ; {
		frame, err := conn.Read()
		if err != nil {
			return false, ctx.Err()
		}
		switch frame.Kind {
		case api.FrameEnd:
			return true, nil
		case api.FrameOutput:
			old := min(skip, int64(len(frame.Data)))
			skip -= old
			n, err := f.out.Write(frame.Data[old:])
			f.written += int64(n)
			if err != nil {
				return false, err
			}
		}
	}
}

// feed sends the input. It is left behind in a read that never ends.
func (f *follower) feed(ctx context.Context, in io.Reader) {
	var conn *api.TerminalConn
	send := func(p []byte) bool {
		for {
			if conn == nil {
				select {
				case conn = <-f.conns:
				case <-ctx.Done():
					return false
				}
			}
			if conn.Input(p) == nil {
				return true
			}
			conn = nil
		}
	}
	buf := make([]byte, 32<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 && !send(bytes.Clone(buf[:n])) {
			return
		}
		if err != nil {
			send(nil)
			return
		}
	}
}

// announce says what is held, and what else waits for a person, until the session is over.
func (f *follower) announce(ctx context.Context) error {
	if f.events != nil {
		lines := values(f.events)
		return f.each(ctx, f.client.Events, func(e api.Event) error {
			err := lines.Encode(e)
			if err != nil {
				f.lost(ctx, err)
			}
			return err
		})
	}
	said, paused := map[int64]bool{}, false
	waits := func(ctx context.Context, id string, from uint64) iter.Seq2[api.Event, error] {
		return f.client.EventsOf(ctx, id, "question", from, "session", "note")
	}
	return f.each(ctx, waits, func(e api.Event) error {
		if e.Session != nil {
			f.asking = e.Session.Asking // a policy may say something else now
		}
		if q := e.Question; q != nil {
			f.say(*q, said)
		}
		if n := e.Note; n != nil && n.Warn {
			fmt.Fprintln(f.diag, "stepbox:", api.Escape(n.Text))
		}
		if s := e.Session; s != nil && (s.State == api.SessionPaused) != paused {
			paused = !paused
			f.sayPaused(paused, s.Name)
		}
		return nil
	})
}

// each gives events to do until the session is over, but for those before it was resumed:
// these are told by their place in the record, as clocks are set. A stream that breaks is
// begun again.
func (f *follower) each(ctx context.Context, events func(context.Context, string, uint64) iter.Seq2[api.Event, error], do func(api.Event) error) error {
	var seq uint64
	now := f.resumed == 0
	for {
		for e, err := range events(ctx, f.id, seq+1) {
			if err != nil {
				break
			}
			seq = max(seq, e.Seq)
			if now = now || e.Session != nil && e.Session.Resumed >= f.resumed; !now {
				continue
			}
			if err := do(e); err != nil {
				return err
			}
		}
		s, err := f.client.Session(ctx, f.id)
		if err != nil {
			return err
		}
		if !s.Live() {
			return nil
		}
		if err := wait(ctx); err != nil {
			return err
		}
	}
}

// say says once of a question that it waits, and that it was denied as nobody answered.
func (f *follower) say(q api.Question, said map[int64]bool) {
	switch {
	case q.Open() && f.asking.On != api.OnAskDeny && !said[q.ID]:
		said[q.ID] = true
		fmt.Fprintln(f.diag, heldLine(f.id, q))
	case q.Closed == "deny" && q.ClosedBy == api.Nobody:
		why := "nobody is asked in this session: " + cmp.Or(f.asking.By, "--on-ask deny")
		if f.asking.On != api.OnAskDeny {
			why = fmt.Sprintf("nobody answered within %s: %s", f.asking.Timeout, cmp.Or(f.asking.By, "--ask-timeout"))
		}
		fmt.Fprintf(f.diag, "stepbox: denied: %s (%s)\n", cut(q.Title, lineMost), why)
	}
}

// sayPaused says that the agent is frozen, and how it goes on.
func (f *follower) sayPaused(paused bool, name string) {
	if paused {
		fmt.Fprintf(f.diag, "stepbox: paused: every process of %s is frozen (stepbox log %s says why, stepbox continue %s lets it go on, stepbox kill %s ends it)\n", name, f.id, f.id, f.id)
	}
}

// heldLine says on one line what is held and how it is answered.
func heldLine(id string, q api.Question) string {
	verbs := fmt.Sprintf("stepbox approve %s %d, or deny", id, q.Action)
	what := cut(q.Title, lineMost)
	switch q.Subject {
	case api.SubjectLimit:
		what += ": " + q.Rule
	case api.SubjectCall:
		verbs += fmt.Sprintf(" --reason TEXT; it allows nothing: %s", q.Rule)
	case api.SubjectEdit:
		verbs = fmt.Sprintf("stepbox keep %s %d, or rollback --to-before %d", id, q.Action, q.Action)
	case api.SubjectNested:
		verbs = fmt.Sprintf("stepbox approve %s %d --hash %s, or deny", id, q.Action, q.Hash)
	case api.SubjectRequest:
		verbs = fmt.Sprintf("stepbox approve %s q%d, or deny", id, q.ID)
	case api.SubjectConnection:
		if sent := q.Connection.Sent(); len(sent) > 0 {
			what += ": " + cut(strings.Join(sent, "; "), lineMost)
		}
		switch c := q.Connection; {
		case c == nil: // it is told with the next event
		case c.Host == "": // too many to be allowed together
			verbs = fmt.Sprintf("stepbox deny --once %s '*', or allow %s HOST", id, id)
		case c.Limit != "": // a rule isn't an answer to that
			verbs = fmt.Sprintf("stepbox allow --once %s %s, or deny --once", id, c.Rule)
		default:
			verbs = fmt.Sprintf("stepbox allow %s %s, or deny", id, c.Rule)
		}
	}
	return fmt.Sprintf("stepbox: held: %s (%s)", what, verbs)
}
