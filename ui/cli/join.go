package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

// Joining is what Join works with.
type Joining struct {
	Connect Connect
	// Begin starts the session, and returns its ID and what is closed once its supervisor is gone.
	Begin func(context.Context) (id string, gone <-chan struct{}, err error)
	// Screen shows the session that begin starts, until the person leaves.
	Screen func(ctx context.Context, client *api.Client, begin func(context.Context) (string, error)) error
	// Socket is where a session's API is.
	Socket       func(id string) (string, error)
	Detach, JSON bool
}

// Exit is an error with an exit code of its own. Without a message there is nothing to add:
// the agent has said what was wrong.
type Exit struct {
	Code    int
	Message string
}

func (e *Exit) Error() string {
	return cmp.Or(e.Message, fmt.Sprintf("the agent ended with %d", e.Code))
}

// Is says that nothing is to be added.
func (e *Exit) Is(target error) bool { return target == ErrSaid && e.Message == "" }

// Join starts a session and shows it, or says that it runs, and ends as its agent does.
func Join(cmd *cobra.Command, j Joining) (err error) {
	ctx, screen := cmd.Context(), Terminal() && !j.JSON && !j.Detach
	var id string
	var gone <-chan struct{}
	if !screen {
		if id, gone, err = j.Begin(ctx); err != nil {
			return err
		}
	}
	client, done, err := j.Connect(context.WithoutCancel(ctx))
	switch {
	case err != nil && screen:
		return err
	case err != nil:
		return &Exit{ExitNoRun, fmt.Sprintf("session %s runs, and its record can't be read: %v", id, err)}
	}
	defer done()
	if j.Detach {
		return started(ctx, cmd.OutOrStdout(), client, id)
	}
	defer func() {
		if id != "" {
			closed(context.WithoutCancel(ctx), client, id, gone)
		}
	}()
	// A reader of the output that is gone is an error here, and not this program's end.
	broken := make(chan os.Signal, 1) // full is fine: it is only kept from doing harm
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	if screen { // which is there while the sandbox is still being made
		var failed error
		err = j.Screen(ctx, client, func(ctx context.Context) (string, error) {
			id, gone, failed = j.Begin(ctx)
			return id, failed
		}) // leave says it, wherever the person leaves from
		if by, stopped := StoppedBy(ctx); stopped && failed != nil {
			return by
		} else if err == nil && failed != nil {
			return &Exit{ExitNoRun, "you left before the session had begun: nothing runs"}
		} else if id == "" {
			return err
		}
	}
	switch {
	case screen:
	case j.JSON:
		if err = j.begun(ctx, cmd, client, id); err == nil {
			err = follow(ctx, client, id, os.Stdin, cmd.ErrOrStderr(), cmd.ErrOrStderr(), cmd.OutOrStdout())
		}
	default:
		err = follow(ctx, client, id, os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr(), nil)
	}
	if s, ok := StoppedBy(ctx); ok {
		return afterSignal(context.WithoutCancel(ctx), cmd, client, id, s, screen)
	}
	if errors.Is(err, syscall.EPIPE) { // as it would end the program itself, signal(7)
		return afterSignal(context.WithoutCancel(ctx), cmd, client, id, Stopped{Signal: syscall.SIGPIPE}, screen)
	}
	if err != nil {
		if !screen { // what it prints has nowhere to go, as when a pipe breaks
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), EndWait)
			defer cancel()
			_, _ = client.Kill(end, id) // it may have ended; the error says what matters
		}
		return err
	}
	return leave(ctx, cmd, client, id)
}

// begun is the first line of run --json: which session it is, and where its API is.
func (j Joining) begun(ctx context.Context, cmd *cobra.Command, client *api.Client, id string) error {
	s, err := client.Session(ctx, id)
	if err != nil {
		return err
	}
	at, err := j.Socket(id)
	if err != nil {
		return err
	}
	return values(cmd.OutOrStdout()).Encode(struct {
		Kind    string      `json:"kind"`
		Session api.Session `json:"session"`
		Socket  string      `json:"socket"`
	}{"run", s, at})
}

// EndWait bounds how long a signal waits for the sandbox to be ended and its
// record completed: the agent itself is killed at its beginning.
const EndWait = 10 * time.Second

// closed waits until a session that is over has closed its record, for whoever copies
// or removes that next; for a second, as what it printed may still be being indexed.
func closed(ctx context.Context, client *api.Client, id string, gone <-chan struct{}) {
	if s, err := client.Session(ctx, id); err == nil && s.Live() {
		return
	}
	select {
	case <-gone:
	case <-time.After(time.Second):
	}
}

// afterSignal ends the run command after a signal. A hang-up, or a screen that
// is closed, leaves the session running; a program without a screen ends with
// what it ran, as timeout(1) and Ctrl-C expect it.
func afterSignal(ctx context.Context, cmd *cobra.Command, client *api.Client, id string, by Stopped, screen bool) error {
	ctx, cancel := context.WithTimeout(ctx, EndWait)
	defer cancel()
	if by.Signal == syscall.SIGHUP || screen {
		if s, err := client.Session(ctx, id); err == nil && s.Live() {
			_ = detached(ctx, cmd.ErrOrStderr(), client, id) // the terminal may be gone: nobody to tell
		}
		return by
	}
	s, err := client.Kill(ctx, id)
	if api.CodeOf(err) == api.CodeNotLive {
		s, err = client.Session(ctx, id) // it has ended by itself
	}
	unapplied(cmd.ErrOrStderr(), s)
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "stepbox: cannot end session %s: %v; stepbox kill %s tries again\n", id, err, id)
	}
	return by
}

// leave ends the run command: as the agent did, or with a word on where it went on.
func leave(ctx context.Context, cmd *cobra.Command, client *api.Client, id string) error {
	s, err := client.Session(ctx, id)
	if err != nil {
		return err
	}
	if s.Live() {
		return detached(ctx, cmd.ErrOrStderr(), client, id)
	}
	if s.State == api.SessionInterrupted {
		return &Exit{ExitNoRun, "the session was interrupted: its supervisor died or could not record what happens; " +
			"see whether the disk is full, and stepbox log " + s.ID + "; stepbox resume " + s.ID + " goes on with it"}
	}
	if Terminal() {
		ended(cmd.ErrOrStderr(), s)
	} else {
		unapplied(cmd.ErrOrStderr(), s)
	}
	switch s.EndedBy {
	case api.ByFailure:
		return &Exit{ExitNoRun, "Stepbox ended the session, as it couldn't go on: " + s.Reason}
	case api.ByLimit, api.ByPerson:
		fmt.Fprintf(cmd.ErrOrStderr(), "stepbox: the session was ended: %s\n", s.Reason)
	}
	if s.Exit != nil && s.Exit.Code != 0 {
		return &Exit{Code: s.Exit.Code}
	}
	return nil
}

// Stopped is why a command ended early: the signal that asked for it.
type Stopped struct{ Signal syscall.Signal }

func (s Stopped) Error() string { return fmt.Sprintf("ended by %v", s.Signal) }

// Code is the exit code that shells give a program that the signal ended.
func (s Stopped) Code() int { return 128 + int(s.Signal) }

// StoppedBy says which signal ended a context of Interruptible's, if one did.
func StoppedBy(ctx context.Context) (s Stopped, ok bool) {
	return s, errors.As(context.Cause(ctx), &s)
}

// twice is how long a signal may arrive again without meaning more: timeout(1)
// sends one to the program and one to its group.
const twice = 500 * time.Millisecond

// Interruptible gives a context that the first SIGINT, SIGTERM or SIGHUP ends,
// whose cause is a Stopped. Another, a moment later, ends the program at once,
// whatever it is still doing. What was ignored when the program began stays
// ignored: nohup and a shell's background jobs mean it (nohup(1), sh(1)).
func Interruptible(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	arrived := make(chan os.Signal, 2)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(arrived, s)
		}
	}
	over := make(chan struct{})
	go func() {
		select {
		case s := <-arrived:
			cancel(Stopped{s.(syscall.Signal)}) // what Notify sends on Linux
		case <-over:
			return
		}
		for first := time.Now(); ; {
			select {
			case s := <-arrived:
				if time.Since(first) > twice {
					os.Exit(Stopped{s.(syscall.Signal)}.Code())
				}
			case <-over:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(arrived)
		close(over)
		cancel(nil)
	}
}
