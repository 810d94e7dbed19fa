package cli

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// Emulator makes what an agent printed into lines.
type Emulator interface {
	Write(p []byte) (int, error)
	Resize(cols, rows int)
	// Lines are those from a number on that are still kept; the screen's begin with top.
	Lines(from int) (first, top int, lines []string)
}

// Player is what the replay command needs.
type Player struct {
	Connect  Connect
	Emulator func(cols, rows int) Emulator
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
				return fmt.Errorf("%w: a speed is between 0.01 and 10000, and idle no less than 0", ErrUsage)
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
			r := &replay{command: c, session: s, from: from, speed: speed, idle: idle, ended: from.Seq > 1, emulator: p.Emulator, lines: bufio.NewWriter(c.out)}
			f, ok := c.out.(*os.File)
			r.paced = ok && term.IsTerminal(int(f.Fd()))
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
	paced    bool          // it is waited at all
	emulator func(cols, rows int) Emulator
	lines    *bufio.Writer

	screen Emulator
	now    time.Duration  // of the session
	next   int            // the number of the first line that hasn't left the screen
	shown  map[int]string // what was written of the lines from next on
	fresh  bool           // something was printed that may not be written yet
	last   string         // what was said last of what happened
	ended  bool           // the session did, and nothing but applies followed
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
	r.now = r.from.Offset
	for p, err := range api.InOrder(r.client.Recorded(ctx, r.session.ID, r.from.Seq+1), r.session.StartedAt, api.Printed(conn, r.from.Offset)) {
		switch {
		case err != nil:
			return cmp.Or(r.ctx.Err(), fmt.Errorf("cannot replay session %s: %w", r.session.Name, err))
		case p.Event != nil:
			err = r.event(*p.Event)
		default:
			if err = r.wait(p.At); err == nil {
				err = r.frame(p.Frame)
			}
		}
		if err != nil {
			return err
		}
	}
	return r.end()
}

// frame plays a piece of the terminal.
func (r *replay) frame(f api.Frame) error {
	switch f.Kind {
	case api.FrameKeyframe:
		r.screen, r.next, r.shown = r.emulator(f.Cols, f.Rows), 0, make(map[int]string)
		_, _ = r.screen.Write(f.Data) // an emulator takes everything
		_, r.next, _ = r.screen.Lines(0)
		r.fresh = true
	case api.FrameResize:
		r.screen.Resize(f.Cols, f.Rows)
	case api.FrameDamage:
		return r.mark(string(f.Data))
	case api.FrameOutput:
		// So little at once that no line has left the scrollback before it is written.
		for p := f.Data; len(p) > 0; {
			n := min(len(p), 1<<10)
			_, _ = r.screen.Write(p[:n])
			p = p[n:]
			r.scrolled()
		}
		r.fresh = true
	}
	return nil
}

// scrolled writes the lines that have left the screen.
func (r *replay) scrolled() {
	first, top, lines := r.screen.Lines(r.next)
	for i := 0; first+i < top; i++ {
		r.write(first+i, lines[i])
	}
	for n := range r.shown {
		if n < top {
			delete(r.shown, n)
		}
	}
	r.next = top
}

// settle writes the lines on the screen that are others than before.
func (r *replay) settle() {
	if !r.fresh {
		return
	}
	r.fresh = false
	first, top, lines := r.screen.Lines(r.next)
	for i, l := range lines {
		if n := first + i; l != "" {
			r.write(n, l)
		} else {
			delete(r.shown, n) // it is written if it scrolls away like this
		}
	}
	r.next = top
}

// write writes a line unless it is there already.
func (r *replay) write(n int, line string) {
	if was, ok := r.shown[n]; ok && was == line {
		return
	}
	r.shown[n] = line
	line = printable(line)
	if begin := strings.TrimLeftFunc(line, func(c rune) bool { return unicode.IsSpace(c) || c == '-' }); begin != "" && !plain([]rune(begin)[0]) {
		line = "| " + line // it is no word of ours
	}
	_, _ = fmt.Fprintln(r.lines, line) // Flush returns its error
}

// plain says whether a letter surely looks like none that our own lines begin with, nor
// like a blank before it: too many do to be listed.
func plain(c rune) bool {
	return c > ' ' && c <= '~' || unicode.IsUpper(c) || unicode.IsLower(c) ||
		c > '一' && c <= '\u9fff' || c >= '가' && c <= '힣' || // ideographs without the first, Korean syllables
		unicode.Is(unicode.Lo, c) && unicode.In(c, unicode.Hiragana, unicode.Katakana, unicode.Arabic, unicode.Hebrew, unicode.Devanagari, unicode.Thai)
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
	if r.now = max(r.now, at); pause < settled && !r.paced {
		return nil
	}
	if pause >= settled {
		r.settle()
	}
	if !r.paced {
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
	switch s := e.Session; {
	case words == "" || e.Action != nil && words == r.last:
		return nil // what an interruption cut off is said to have ended once more when its files are known
	case s != nil && s.Resumed > 0 && e.Kind == "session.started" && !r.ended:
		words = "interrupted; " + words
	}
	r.last, r.ended = words, e.Kind == "session.ended" || r.ended && e.Apply != nil
	if err := r.wait(e.At.Sub(r.session.StartedAt)); err != nil {
		return err
	}
	return r.mark(words)
}

func (r *replay) mark(words string) error {
	r.settle()
	_, err := fmt.Fprintf(r.lines, "── %s\n", cut(words, lineMost))
	return err
}

// told is what an event is worth in words; "" for most.
func told(e api.Event) string {
	switch {
	case e.Action != nil && !e.Action.Housekeeping:
		a := e.Action
		switch {
		case e.Kind == "action.ended", e.Kind == "action.abandoned":
			return fmt.Sprintf("#%d %s (%s)", a.N, a.Title, cmp.Or(a.Exit.Words(), a.Reason, string(a.State)))
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
		return "applied " + paint.Count(e.Apply.Files, "file", "files")
	case e.Apply != nil && e.Kind == "apply.undone":
		return "took what was applied back out of the project: " + paint.Count(e.Apply.Files, "file", "files")
	case e.Session != nil && e.Kind == "session.started" && e.Session.Resumed > 0:
		return "resumed with " + e.Session.Runs()
	case e.Session != nil && e.Kind == "session.ended":
		return strings.TrimSuffix("ended: "+e.Session.Ending(), ": ")
	}
	return ""
}

// end writes what is left.
func (r *replay) end() error {
	r.settle()
	if r.session.State == api.SessionInterrupted {
		_, _ = fmt.Fprintln(r.lines, "── interrupted")
	}
	if r.session.Live() {
		_, _ = fmt.Fprintf(r.lines, "── that is all by now; stepbox attach %s shows how it goes on\n", r.session.ID) // Flush returns its error
	}
	return r.lines.Flush()
}
