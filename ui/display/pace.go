package display

import (
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"golang.org/x/sys/unix"
)

// A line takes what is written long before it is seen: over ssh, buffers hold many seconds
// of it. So the terminal is asked now and then whether it is well, which it answers once it
// has drawn what came before the question. While too much is on its way, no frame is drawn.

// Bounds of what is on its way.
const (
	leastAway = 4 << 10   // bytes, however slow the line is
	mostAway  = 256 << 10 // however fast
	askEach   = 1 << 10   // bytes at least between two questions
	soon      = 100 * time.Millisecond
	slowly    = 300 * time.Millisecond
	// unheard is how long an answer is waited for: another terminal may be there by then.
	unheard = 5 * time.Second
)

// The question is VT100's DSR, which is the oldest and has the shortest answer: one that
// came in two pieces would be taken for keys.
const (
	areYouWell = "\x1b[5n"
	well       = uv.UnknownCsiEvent("\x1b[0n")
)

// asked is a question, how many bytes were written up to it, and when.
type asked struct {
	at   int
	when time.Time
}

// pace knows how much of what was written the terminal hasn't drawn yet.
type pace struct {
	written, drawn int
	last           int           // what was written by the last question
	asked          []asked       // as they will be answered; a few hundred at most
	answers        bool          // the terminal does
	room           int           // how much may be on its way
	full           bool          // it was, so that more would be of use
	best           time.Duration // that an answer took
}

func (p *pace) ask(now time.Time) {
	p.last = p.written
	p.asked = append(p.asked, asked{p.written, now})
}

// wrote counts what is written, and says whether a question is to follow it.
func (p *pace) wrote(n int, now time.Time) bool {
	p.written += n
	if p.written-p.last < askEach || !p.answers && len(p.asked) > 0 {
		return false
	}
	p.ask(now)
	return true
}

// answered takes the answer to the first question. The slower it came, the less may be on
// its way.
func (p *pace) answered(now time.Time) {
	if len(p.asked) == 0 {
		return // given up
	}
	took := now.Sub(p.asked[0].when)
	p.drawn, p.asked = p.asked[0].at, p.asked[1:]
	if !p.answers {
		p.answers, p.room, p.best = true, leastAway, took
	}
	p.best = min(p.best, took)
	switch {
	case took > p.best+slowly:
		p.room, p.full = max(leastAway, p.room/2), false
	case p.full && took < p.best+soon:
		p.room, p.full = min(mostAway, 2*p.room), false
	}
}

// silent says whether an answer takes a blink longer than it need.
func (p *pace) silent(now time.Time) bool {
	return p.answers && len(p.asked) > 0 && now.Sub(p.asked[0].when) > p.best+late
}

// waits says whether the next frame has to wait for an answer.
func (p *pace) waits(now time.Time) bool {
	if !p.answers || p.written-p.drawn < p.room {
		return false
	}
	if len(p.asked) == 0 || now.Sub(p.asked[0].when) >= unheard {
		*p = pace{} // asked anew, and believed until then to take everything
		return false
	}
	p.full = true
	return true
}

// drop drops answers that would come to whoever reads the terminal next.
func (p *pace) drop(t *tty) {
	if p.answers && len(p.asked) > 0 && t.in != nil {
		fd := int(t.in.Fd())
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(slowly/time.Millisecond))
		_ = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) // what can't be dropped is harmless to a shell
	}
	*p = pace{}
}
