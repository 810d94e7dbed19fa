package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"stepbox/session/api"
)

// Follow is run without a terminal: the agent's output goes to out as the agent
// wrote it, without what its terminal made of it (newlines), input comes from
// in, and what is held is said on diag. It returns when the session is over and
// out has all that the agent printed, however much of it came before, or after
// its supervisor had gone: the rest is in the record. An end of ctx makes it
// return early.
func Follow(ctx context.Context, c *api.Client, id string, in io.Reader, out, diag io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	plain := &newlines{w: out}
	f := &follower{client: c, id: id, out: plain, diag: diag, conns: make(chan *api.TerminalConn, 1)}
	if err := f.begin(ctx); err != nil {
		cancel()
		return err
	}
	go f.feed(ctx, in)
	over := make(chan error, 1)
	go func() { over <- f.announce(ctx) }()
	err := f.copy(ctx)
	if err == nil {
		err = plain.flush()
	}
	if err != nil {
		cancel()
		<-over
		return err
	}
	defer cancel()
	return <-over // with the session
}

type follower struct {
	client    *api.Client
	id        string
	out, diag io.Writer
	conns     chan *api.TerminalConn // holds the newest one that takes input
	written   int64                  // bytes that out has, or isn't to have, owned by copy
	since     time.Time              // when the session was resumed
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
	f.written, f.since = s.Printed, s.ResumedAt
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

// announce says what is held until the session is over.
func (f *follower) announce(ctx context.Context) error {
	var seq uint64
	for {
		for e, err := range f.client.EventsOf(ctx, f.id, "question", seq+1) {
			if err != nil {
				break
			}
			seq = max(seq, e.Seq)
			if q := e.Question; q != nil && q.Open() && !q.HeldAt.Before(f.since) {
				fmt.Fprintln(f.diag, heldLine(f.id, *q))
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

// heldLine says on one line what is held and how it is answered.
func heldLine(id string, q api.Question) string {
	verbs := fmt.Sprintf("stepbox approve %s %d, or deny", id, q.Action)
	switch q.Subject {
	case api.SubjectEdit:
		verbs = fmt.Sprintf("stepbox keep %s %d, or rollback --to-before %d", id, q.Action, q.Action)
	case api.SubjectNested:
		verbs = fmt.Sprintf("stepbox approve %s %d --hash %s, or deny", id, q.Action, q.Hash)
	}
	return fmt.Sprintf("stepbox: held: %s (%s)", cut(q.Title, lineMost), verbs)
}
