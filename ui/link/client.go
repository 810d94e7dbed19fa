// Package link joins the interface to one session: it follows the event stream
// and the terminal, hands both on in batches that a frame can take, and sends
// what is typed.
//
// A Link owns its goroutines; Close stops them and waits. What they find out
// leaves through one bounded channel, read by the command that Next returns.
// When the interface is slow the channel fills and the goroutines wait, so that
// the supervisor slows down or cuts the viewer off; nothing is dropped on the
// way, and a stream that broke is joined again where it broke.
//
// Bytes for the agent's terminal go through one bounded queue with one writer,
// in the order in which they were given. The queue holds 16 MiB or 4096 pieces.
// When the agent doesn't read and the queue is full, Type refuses the piece as
// a whole and says so: a person is told, and no half of a paste arrives. What is
// queued when the connection breaks is discarded, so that nothing typed at one
// prompt is delivered to a later one.
package link

import (
	"context"
	"io"
	"iter"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
)

// Client is what the interface needs of the sessions' server. All methods are
// safe for concurrent use and return when ctx is done.
type Client interface {
	Session(ctx context.Context, id string) (api.Session, error)
	Actions(ctx context.Context, id string) ([]api.Action, error)
	Execs(ctx context.Context, id string, n int) ([]api.Exec, error)
	Changes(ctx context.Context, id string, in api.Scope, most int) (api.Changes, error)
	Diff(ctx context.Context, id, key string, in api.Scope) (api.FileDiff, error)
	Patch(ctx context.Context, id string, r api.PatchRequest) (io.ReadCloser, error)
	File(ctx context.Context, id, key string, at api.Moment) (io.ReadCloser, error)
	Diffs(ctx context.Context, id string, in api.Scope) iter.Seq2[api.FileDiff, error]
	Decide(ctx context.Context, id string, d api.Decision) (api.Question, error)
	Proposals(ctx context.Context, id string, question int64) ([]api.Proposal, error)
	AddRule(ctx context.Context, id string, r api.Rule) (api.Ruled, error)
	RemoveRule(ctx context.Context, id string, r api.Rule) (api.Session, error)
	Keep(ctx context.Context, id string, n int) (api.Action, error)
	KillAction(ctx context.Context, id string, n int) (api.Action, error)
	RollbackPlan(ctx context.Context, id string, r api.RollbackRequest) (api.RollbackPlan, error)
	Rollback(ctx context.Context, id string, r api.RollbackRequest) (api.Rollback, error)
	ApplyPlan(ctx context.Context, id string, r api.ApplyRequest) (api.ApplyPlan, error)
	Apply(ctx context.Context, id string, r api.ApplyRequest) iter.Seq2[api.Progress, error]
	Applies(ctx context.Context, id string) ([]api.Apply, error)
	UndoPlan(ctx context.Context, id string, apply int64) (api.ApplyPlan, error)
	Undo(ctx context.Context, id string, apply int64, r api.UndoRequest) iter.Seq2[api.Progress, error]
	SetMode(ctx context.Context, id string, m api.Mode) (api.Session, error)
	Publish(ctx context.Context, id string, p api.Publishing) (api.Port, error)
	Unpublish(ctx context.Context, id string, port int) (api.Session, error)
	Pause(ctx context.Context, id string) (api.Session, error)
	Continue(ctx context.Context, id string) (api.Session, error)
	Kill(ctx context.Context, id string) (api.Session, error)
	Events(ctx context.Context, id string, from uint64) iter.Seq2[api.Event, error]
	Terminal(ctx context.Context, id string) (Stream, error)

	// Of the record, also of a session that lives.
	Timeline(ctx context.Context, id string, most int, since uint64) (api.Timeline, error)
	At(ctx context.Context, id string, m api.Moment) (api.At, error)
	EventsAt(ctx context.Context, id string, seq uint64) iter.Seq2[api.Event, error]
	Recorded(ctx context.Context, id string, from uint64) iter.Seq2[api.Event, error]
	TerminalAt(ctx context.Context, id string, offset time.Duration) (Stream, error)

	// Of all sessions, and what is said of them.
	FirstChange(ctx context.Context, id, key string) (api.At, error)
	Blame(ctx context.Context, id, key string, at api.Moment) (api.Blame, error)
	Bisect(ctx context.Context, id string, r api.BisectRequest) iter.Seq2[api.BisectProgress, error]
	Find(ctx context.Context, q api.Query) (api.FoundPage, error)
	Label(ctx context.Context, id string, l api.Label) (api.Session, error)
	Remove(ctx context.Context, id string) error
	Newest(ctx context.Context, id string, last int) iter.Seq2[api.Event, error]

	// Glance is what a list says of a live session: from is 0, or the event to go on from.
	Glance(ctx context.Context, id string, from uint64) iter.Seq2[api.Event, error]
}

// Stream is a viewer's side of a session's terminal. One goroutine reads while
// another sends; Close unblocks both.
type Stream interface {
	Read() (api.Frame, error)
	Input(p []byte) error
	Resize(cols, rows int) error
	Close() error
}

// FromAPI makes a Client of the one that speaks HTTP.
func FromAPI(c *api.Client) Client { return remote{c} }

type remote struct{ *api.Client }

// newest is how many of a session's actions, attempts and notes are shown from
// its start on: more than anyone scrolls through, and what is read in a moment.
// stepbox show and log have the rest.
const newest = 2000

// Events begins with how the session stands instead of all that ever happened.
func (r remote) Events(ctx context.Context, id string, from uint64) iter.Seq2[api.Event, error] {
	if from <= 1 {
		return r.Client.EventsFromNow(ctx, id, newest)
	}
	return r.Client.Events(ctx, id, from)
}

// newestListed is how many of a session's actions a list begins with.
const newestListed = 30

// Glance begins with how the session stands.
func (r remote) Glance(ctx context.Context, id string, from uint64) iter.Seq2[api.Event, error] {
	return r.Client.Glance(ctx, id, from, newestListed)
}

func (r remote) Terminal(ctx context.Context, id string) (Stream, error) {
	t, err := r.Client.Terminal(ctx, id)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// EventsAt is how the session stood just after an event, with as much as is shown.
func (r remote) EventsAt(ctx context.Context, id string, seq uint64) iter.Seq2[api.Event, error] {
	return r.Client.EventsAt(ctx, id, seq, newest)
}

func (r remote) TerminalAt(ctx context.Context, id string, offset time.Duration) (Stream, error) {
	t, err := r.Client.TerminalAt(ctx, id, offset)
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Emulator is a terminal emulator that draws into cells. It need not be safe
// for concurrent use. It must bear any bytes.
type Emulator interface {
	io.Writer
	Resize(cols, rows int)
	Size() (cols, rows int)
	// Draw draws the screen as it was that many lines back from the end.
	Draw(dst uv.Screen, area uv.Rectangle, scrollback int)
	Cursor() uv.Cursor // Hidden when the program hid it
	Title() string
	ScrollbackLen() int
	AltScreen() bool
	// Keyframe is its state as bytes for another of its size, and Wrapped whether a row's
	// text goes on in the next, counted from the oldest of the scrollback.
	Keyframe() []byte
	Wrapped(row int) bool
	// Line numbers the line that the cursor is on, from the first that was ever printed, and
	// RowOf is the row at which a line begins, or -1.
	Line() int
	RowOf(line int) int
	// At sets the clock by which a frame that is being built hides the screen only so long.
	At(t time.Duration)
	// Seen says whether all that was written is to be seen, and how much was drawn up to
	// what is.
	Seen() (drawn uint64, whole bool)
	EncodeKey(k uv.KeyPressEvent) []byte
	EncodeMouse(m uv.MouseEvent, x, y int) []byte
	EncodePaste(s string) []byte
	// OnSignal sets who is told, during Write, of bells, notifications and copied texts.
	OnSignal(bell func(), notify func(title, text string), copied func(text string))
	FocusEvents() bool     // whether the program is to be told when it has the keys
	AlternateScroll() bool // whether the wheel is to become arrow keys on the alternate screen
}

// NewEmulator makes one. It is called off the drawing goroutine.
type NewEmulator func(cols, rows int) Emulator
