package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// Emulator makes what an agent printed into lines.
type Emulator interface {
	Write(p []byte) (int, error) // passes on the lines that leave the screen
	Resize(cols, rows int)
	Rest() // passes on those on the screen that are others than before
}

// Player is what the replay command needs.
type Player struct {
	Connect  Connect
	Emulator func(cols, rows int, keyframe []byte, line func(string)) Emulator
	Screen   func(ctx context.Context, session string, at api.Moment, speed float64) error // shows a session's replay
}

// Replay is the command that plays a session again: in the workbench, or as lines.
func Replay(p Player) *cobra.Command {
	var at string
	var plain bool
	speed, idle := 1.0, time.Second
	cmd := &cobra.Command{
		Use: "replay [SESSION]", Short: "Play a session again: in the workbench, or line by line without a terminal", Args: Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if speed < 0.01 || speed > 10_000 || idle < 0 {
				return usage("a speed is between 0.01 and 10000, and idle no less than 0")
			}
			client, done, err := p.Connect(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			c := command{ctx: cmd.Context(), client: client, out: cmd.OutOrStdout()}
			s, err := c.toRead(optional(args))
			if err != nil {
				return err
			}
			from, err := client.At(c.ctx, s.ID, api.Moment(cmp.Or(at, "start")))
			if err != nil {
				return err
			}
			if Terminal() && !plain {
				return p.Screen(c.ctx, s.ID, api.Moment(at), speed)
			}
			r := &replay{command: c, session: s, from: from, speed: speed, idle: idle, emulator: p.Emulator, lines: bufio.NewWriter(c.out), cutOff: make(map[int]bool)}
			if f, ok := c.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
				r.terminal = f
			}
			return r.play()
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "begin at this moment: 12, 12^, +1h, end")
	cmd.Flags().Float64Var(&speed, "speed", speed, "so many times as fast as it was")
	cmd.Flags().DurationVar(&idle, "idle", idle, "wait no longer than this when nothing happens")
	cmd.Flags().BoolVar(&plain, "plain", false, "line by line, also in a terminal")
	return cmd
}

// replay plays a session as lines: what the agent printed as it leaves its screen or
// stays there for a moment, and what happened between. What is hostile in it ends in
// the emulator; a person's terminal gets plain text.
type replay struct {
	command
	session  api.Session
	from     api.At
	speed    float64
	idle     time.Duration // the most that is waited, before the speed
	terminal *os.File      // the lines go to; nil: it isn't waited
	emulator func(cols, rows int, keyframe []byte, line func(string)) Emulator
	lines    *bufio.Writer

	screen Emulator
	now    time.Duration // of the session
	last   string        // what was said last of what happened, but for applies
	cutOff map[int]bool  // actions that an interruption ended and that were told
}

// settled is how long a line stays before it is written, unless it scrolls away.
const settled = 250 * time.Millisecond

// play plays all that is recorded by now.
func (r *replay) play() error {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	conn, err := r.client.TerminalAt(ctx, r.session.ID, r.from.Offset)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	r.now, r.screen = r.from.Offset, r.emulator(1, 1, nil, r.write) // until the first keyframe
	for p, err := range api.InOrder(r.sorted(r.client.Recorded(ctx, r.session.ID, r.from.Seq+1)), r.session.StartedAt, api.Printed(conn, r.from.Offset)) {
		switch {
		case err != nil:
			return cmp.Or(r.ctx.Err(), fmt.Errorf("cannot replay session %s: %w", r.session.Name, err))
		case p.Event != nil:
			err = r.event(*p.Event)
		default:
			if err = r.wait(p.At); err == nil {
				r.frame(p.Frame)
			}
		}
		if err != nil {
			return err
		}
	}
	return r.end()
}

// frame plays a piece of the terminal.
func (r *replay) frame(f api.Frame) {
	switch f.Kind {
	case api.FrameKeyframe:
		r.screen = r.emulator(f.Cols, f.Rows, f.Data, r.write)
	case api.FrameResize:
		r.screen.Resize(f.Cols, f.Rows)
	case api.FrameDamage:
		r.mark(string(f.Data))
	case api.FrameOutput:
		_, _ = r.screen.Write(f.Data) // an emulator takes everything
	}
}

func (r *replay) write(line string) { r.line("  ", printable(line)) }

// line writes a line of the agent's, which is indented, or one of ours, which isn't. A
// terminal gets it in pieces that fit: where it goes on below is no beginning of ours.
func (r *replay) line(lead, s string) {
	s = unmarked(s)
	if r.terminal != nil {
		if cols, _, err := term.GetSize(int(r.terminal.Fd())); err == nil && cols > 20 {
			s = strings.ReplaceAll(ansi.Hardwrap(s, cols-ansi.StringWidth(lead), true), "\n", "\n  ")
		}
	}
	_, _ = fmt.Fprintln(r.lines, strings.TrimRight(lead+s, " ")) // Flush returns its error
}

// dashes are several that are drawn as a line, or look so: a line of Stepbox's begins with two.
var dashes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[─━┄┅┈┉╌╍╴╶╸╺╼╾‒–—―−⎯](?:[\x{200d}\pM]*[─━┄┅┈┉╌╍╴╶╸╺╼╾‒–—―−⎯])+`)
})

// unmarked is a text that has no beginning of a line of Stepbox's, where a pager may wrap
// it. Frames keep their lines: those go on to a corner, or the end.
func unmarked(s string) string {
	var out strings.Builder
	from := 0
	for _, at := range dashes().FindAllStringIndex(s, -1) {
		rest := strings.TrimRight(s[at[1]:], " ")
		if next, _ := utf8.DecodeRuneInString(rest); rest == "" || strings.ContainsRune("┐┘┤┬┴┼╮╯", next) {
			continue
		}
		out.WriteString(s[from:at[0]] + strings.Repeat("-", ansi.StringWidth(s[at[0]:at[1]])))
		from = at[1]
	}
	return out.String() + s[from:]
}

// printable is a line without what could move a cursor or turn the text around.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) && c != '\u200d' {
			return -1
		}
		return c
	}, s)
}

// wait goes on to a time.
func (r *replay) wait(at time.Duration) error {
	pause := at - r.now
	if r.now = max(r.now, at); pause < settled && r.terminal == nil {
		return nil
	}
	if pause >= settled {
		r.screen.Rest()
	}
	if r.terminal == nil {
		return nil
	}
	if err := r.lines.Flush(); err != nil {
		return err
	}
	select {
	case <-time.After(time.Duration(float64(min(pause, r.idle)) / r.speed)):
		return nil
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
}

// event says what happened, in a line of its own.
func (r *replay) event(e api.Event) error {
	words := told(e)
	if words == "" {
		return nil
	}
	if a := e.Action; a != nil && a.Reason == api.CutOff {
		if r.cutOff[a.N] {
			return nil // it is recorded to have ended once more when its files are known
		}
		r.cutOff[a.N] = true
	}
	if e.Apply == nil {
		r.last = words
	}
	if err := r.wait(e.At.Sub(r.session.StartedAt)); err != nil {
		return err
	}
	r.mark(words)
	return nil
}

// interrupted is what is said where a session stopped without an end.
const interrupted = "interrupted"

// sorted gives the events in the order in which they are told: an interruption, of which
// there is none, before what was applied after it; what it cut off, which is recorded once
// the session has gone on, before that.
func (r *replay) sorted(events iter.Seq2[api.Event, error]) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		ended := r.from.Seq > 1
		var held []api.Event // applies, or how it went on
		release := func(cut bool) (more bool) {
			if cut {
				held = slices.Insert(held, 0, api.Event{Kind: interrupted, At: held[0].At})
			}
			for more = true; more && len(held) > 0; held = held[1:] {
				more = yield(held[0], nil)
			}
			return more
		}
		for e, err := range events {
			if err != nil {
				yield(e, err)
				return
			}
			cutOff := e.Action != nil && e.Action.Reason == api.CutOff
			if len(held) > 0 && held[0].Session != nil && !cutOff && !release(false) {
				return
			}
			on := e.Session != nil && e.Session.Resumed > 0 && (e.Kind == "session.resumed" || e.Kind == "session.started")
			switch {
			case on:
				if held = append(held, e); !ended && !release(true) {
					return
				}
				ended = e.Kind == "session.resumed"
			case e.Apply != nil:
				held = append(held, e)
			case cutOff:
				if !yield(e, nil) {
					return
				}
			case !release(false) || !yield(e, nil):
				return
			case told(e) != "":
				ended = e.Kind == "session.ended"
			}
		}
		release(r.session.State == api.SessionInterrupted && !ended && len(held) > 0 && held[0].Apply != nil)
	}
}

func (r *replay) mark(words string) {
	r.screen.Rest()
	r.line("── ", cut(words, lineMost))
}

// told is what an event is worth in words; "" for most.
func told(e api.Event) string {
	switch {
	case e.Kind == interrupted:
		return interrupted
	case e.Action != nil && !e.Action.Housekeeping:
		a := e.Action
		switch {
		case e.Kind == "action.ended", e.Kind == "action.abandoned":
			return fmt.Sprintf("#%d %s (%s)", a.N, a.Title, cmp.Or(a.Exit.Marked(), a.Reason, string(a.State)))
		case e.Kind == "action.edited":
			return fmt.Sprintf("#%d %s", a.N, a.Title)
		case e.Kind == "action.denied":
			return strings.TrimSuffix(fmt.Sprintf("#%d denied by %s: %s (%s)", a.N, a.By, a.Title, a.Reason), " ()")
		}
	case e.Question != nil && e.Kind == "question.opened":
		return fmt.Sprintf("#%d held: %s", e.Question.Action, e.Question.Title)
	case e.Attempt != nil && (e.Kind == "attempt.opened" || e.Attempt.Verdict == api.Deny):
		a := e.Attempt
		return fmt.Sprintf("network: %s %s:%d (%s)", a.Protocol, a.Host(), a.Port, a.Verdict)
	case e.Rollback != nil && (e.Kind == "rollback.done" || e.Kind == "rollback.failed"):
		words, _ := e.Rollback.Words()
		return words + ": " + cmp.Or(e.Rollback.Failure, "done")
	case e.Apply != nil && e.Kind == "apply.done":
		return "applied " + paint.Files(e.Apply.Files)
	case e.Apply != nil && e.Kind == "apply.undone":
		return "undid what was applied to the project: " + paint.Files(e.Apply.Files)
	case e.Session != nil && e.Kind == "session.started" && e.Session.Resumed > 0:
		return "resumed with " + e.Session.Runs()
	case e.Session != nil && e.Kind == "session.ended":
		return strings.TrimSuffix("ended: "+e.Session.Ending(), ": ")
	}
	return ""
}

// end writes what is left.
func (r *replay) end() error {
	r.screen.Rest()
	if r.session.State == api.SessionInterrupted && r.last != interrupted {
		r.line("── ", interrupted)
	}
	if r.session.Live() {
		r.line("── ", "that is all by now; stepbox attach "+r.session.ID+" shows how it goes on")
	}
	return r.lines.Flush()
}
