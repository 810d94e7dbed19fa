package gate

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// allow carries out an approval.
func (g *Gate) allow(e *Exec) {
	verified := e.allowed&Unverified == 0
	if verified {
		// It is asked again when the image is there; here it avoids having
		// to kill.
		if err := e.Same(); err != nil {
			g.refuse(e, err.Error())
			return
		}
	}
	if e.line != "" {
		if err := e.write(lineOf(plain, e.line)); err != nil {
			g.o.Log(err.Error())
		}
	}
	if g.exits.hand(e) {
		return
	}
	keep := e.allowed&HoldExit != 0 || g.exits.trace && e.allowed&NoExit == 0 || g.exits.traces(e.PID)
	if !verified && !keep {
		g.allowUnverified(e)
		return
	}
	onThread(func() (used bool) {
		if !g.begin() {
			e.close()
			return false
		}
		err := g.launch(e, keep)
		g.finish()
		debugged := false
		if errors.Is(err, errTraced) {
			_, debugged = g.tracer(e)
		}
		switch {
		case err == nil:
			return g.see(e, keep)
		case verified && !debugged:
			g.refuse(e, err.Error())
		default:
			if debugged { // when it begins can't be seen
				e.shownAs().unchecked = true
				if err := e.begins(); err != nil {
					g.refuse(e, err.Error())
					return false
				}
			}
			g.allowUnverified(e)
		}
		return false
	})
}

var errTraced = errors.New("it cannot be checked, as another process traces its caller")

// allowUnverified lets an exec happen and looks no further, unless somebody
// traces the caller who may not.
func (g *Gate) allowUnverified(e *Exec) {
	if traced, may := g.tracer(e); traced && !may {
		g.refuse(e, errTraced.Error())
		return
	}
	if !g.begin() {
		e.close()
		return
	}
	g.answered(e.ID)
	err := g.l.proceed(e.ID)
	g.finish()
	if err != nil {
		g.failed(e, whyGone)
		return
	}
	if e.allowed&NoExit == 0 {
		g.exits.follow(e)
	}
	e.close()
}

// launch seizes a held thread and lets its exec happen. The interrupt makes
// sure that there is always something to wait for: the thread stops in the
// new image, or, when the kernel refused the exec, on its way back to the old
// one. It has no effect on an exec that works, as letting go of a thread
// clears it. Should this process die before it has looked, the kernel kills
// the other.
func (g *Gate) launch(e *Exec, keep bool) error {
	options := uintptr(unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACEEXEC)
	if keep {
		options |= unix.PTRACE_O_TRACEEXIT
	}
	if err := seize(e.TID, options); err != nil {
		if errors.Is(err, unix.EPERM) {
			return errTraced
		}
		return fmt.Errorf("it cannot be checked: %w", err)
	}
	g.release(e)
	return nil
}

// release lets the exec of a seized thread happen. An error means that the
// thread is being killed, and waiting for it will tell.
func (g *Gate) release(e *Exec) {
	_ = interrupt(e.TID)
	g.answered(e.ID)
	_ = g.l.proceed(e.ID)
}

// see waits for the outcome of a launched exec on the thread that launched it.
// It says whether the thread is used up.
func (g *Gate) see(e *Exec, keep bool) (used bool) {
	for {
		s, err := await()
		switch {
		case err != nil || s.ended():
			g.failed(e, whyKilled)
			return false
		case s.event() == unix.PTRACE_EVENT_EXEC:
			if e.allowed&Unverified == 0 {
				if err := e.verify(); err != nil {
					g.kill(e, err)
					return false
				}
			}
			if keep {
				return g.exits.lead(e)
			}
			g.released(e)
			return false
		case s.event() == unix.PTRACE_EVENT_EXIT:
			_, _ = ptrace(unix.PTRACE_CONT, s.tid, 0, 0)
		default:
			// Back from the call without a new image.
			errno := g.returned(s)
			again := g.putOff(e, errno)
			signal := s.signal()
			if s.event() != 0 {
				signal = 0
			}
			g.whenOpen(func() { letGo(s.tid, signal) })
			if !again {
				g.refused(e, errno)
			}
			return false
		}
	}
}

// released lets a checked program go.
func (g *Gate) released(e *Exec) {
	// Before it can end: a watch from an exec before this one may tell, once.
	if e.allowed&NoExit == 0 {
		g.exits.follow(e)
	}
	g.whenOpen(func() { letGo(e.PID, 0) })
	g.recheck(e)
	e.close()
}

// recheck looks after other threads of a process that has just become
// another program: they were held, and are no more.
func (g *Gate) recheck(e *Exec) {
	for _, o := range g.heldExecs(e.PID) {
		if !g.waits(o.ID) {
			g.gone(o)
		}
	}
}

// returned is the error that a failed exec has come back with.
func (g *Gate) returned(s stop) unix.Errno {
	r, err := result(s.tid)
	if err != nil || r >= 0 || r < -4095 {
		return 0
	}
	return unix.Errno(-r)
}

// kill ends a process whose new image isn't the one that was allowed. It has
// not run an instruction of it.
func (g *Gate) kill(e *Exec, why error) {
	if err := unix.Kill(e.PID, unix.SIGKILL); err != nil {
		g.o.Log(fmt.Sprintf("cannot kill the process %d: %v", e.PID, err))
	}
	bury()
	g.o.Log(fmt.Sprintf("killed process %d before it ran: %v", e.PID, why))
	g.failed(e, "killed before it ran: "+why.Error())
}

// The kernel's own words for "call again", which no program sees (linux/errno.h).
const (
	restartFirst = 512
	restartLast  = 517
)

// againWithin is how soon an interrupted call comes again.
const againWithin = time.Second

// refused tells that the kernel didn't do an exec that was allowed.
func (g *Gate) refused(e *Exec, errno unix.Errno) {
	g.failed(e, errno.Error())
}

// putOff says whether the kernel only put a decided exec off: it comes again
// as a new notification, which isn't to be asked about. That happens when two
// threads of a process exec at once, and, before Linux 6.17, when a signal
// meets the answer. It comes before the thread is let go.
//
// Where the kernel rewinds a call before it stops for its tracer (arm64),
// there is no error to be seen.
func (g *Gate) putOff(e *Exec, errno unix.Errno) bool {
	if errno != 0 && (errno < restartFirst || errno > restartLast) {
		return false
	}
	g.mu.Lock()
	g.again[e.TID] = e
	g.mu.Unlock()
	g.end(e, func() {
		timer := time.NewTimer(againWithin)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-g.done:
		}
		g.mu.Lock()
		mine := g.again[e.TID] == e
		if mine {
			delete(g.again, e.TID)
		}
		g.mu.Unlock()
		switch {
		case mine && e.denied:
			e.close()
		case mine:
			g.failed(e, "a signal kept it from happening")
		}
	})
	return true
}

// resume carries out what was decided on an exec before, which a signal kept
// from happening.
func (g *Gate) resume(e *Exec) bool {
	g.mu.Lock()
	before := g.again[e.TID]
	if before == nil || before.Start != e.Start || before.Digest != e.Digest || before.contents != e.contents || before.Cwd != e.Cwd || before.input != e.input {
		g.mu.Unlock()
		return false
	}
	delete(g.again, e.TID)
	g.mu.Unlock()
	e.origin, e.allowed = before.shownAs(), before.allowed
	e.covered.Store(before.covered.Load())
	denied, reason := before.denied, before.reason
	before.close()
	if !e.resolve() {
		return true
	}
	g.end(e, func() {
		if denied {
			g.deny(e, reason)
		} else {
			g.allow(e)
		}
	})
	return true
}
