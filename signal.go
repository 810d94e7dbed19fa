package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopped is why a command ended early: the signal that asked for it.
type stopped struct{ signal syscall.Signal }

func (s stopped) Error() string { return fmt.Sprintf("ended by %v", s.signal) }

// code is the exit code that shells give a program that the signal ended.
func (s stopped) code() int { return 128 + int(s.signal) }

// stoppedBy says which signal ended a context of interruptible's, if one did.
func stoppedBy(ctx context.Context) (s stopped, ok bool) {
	return s, errors.As(context.Cause(ctx), &s)
}

// twice is how long a signal may arrive again without meaning more: timeout(1)
// sends one to the program and one to its group.
const twice = 500 * time.Millisecond

// interruptible gives a context that the first SIGINT, SIGTERM or SIGHUP ends,
// whose cause is a stopped. Another, a moment later, ends the program at once,
// whatever it is still doing. What was ignored when the program began stays ignored: nohup
// and a shell's background jobs mean it (nohup(1), sh(1)).
func interruptible(parent context.Context) (context.Context, func()) {
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
			cancel(stopped{s.(syscall.Signal)}) // what Notify sends on Linux
		case <-over:
			return
		}
		for first := time.Now(); ; {
			select {
			case s := <-arrived:
				if time.Since(first) > twice {
					os.Exit(stopped{s.(syscall.Signal)}.code())
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
