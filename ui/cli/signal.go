package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

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
