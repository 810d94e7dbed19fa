// Package session supervises one agent: it starts the sandbox, forms actions
// out of the programs that the agent starts, holds them until a rule or a
// person has given a verdict, takes checkpoints of the files, records all of it
// and rolls back what is to be taken back. It is the only place where runner,
// policy and store meet.
//
// One goroutine owns all of a Session's state; see package loop. Everything slow
// (committing, scanning files, freezing) runs elsewhere.
//
// What comes out of the sandbox is hostile. It is escaped before it enters an
// api value; exact bytes are kept in hashes and bodies.
package session

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"stepbox/policy"
	"stepbox/runner"
	"stepbox/runner/egress/intercept"
	"stepbox/runner/gate"
	"stepbox/runner/overlay/manifest"
	"stepbox/runner/overlay/scan"
	"stepbox/runner/overlay/watch"
	"stepbox/runner/socket"
	"stepbox/session/api"
	"stepbox/session/deeds"
	"stepbox/session/files"
	"stepbox/session/home"
	"stepbox/session/judge"
	"stepbox/session/ledger"
	"stepbox/session/loop"
	"stepbox/session/network"
	"stepbox/session/outfit"
	"stepbox/session/ports"
	"stepbox/session/redact"
	"stepbox/session/rules"
	"stepbox/session/spend"
	"stepbox/session/terminal"
	"stepbox/store"
)

// Config is what a session is started with.
type Config struct {
	ID         string // NewID's
	Name       string
	Workspace  string   // absolute, checked by runner.CheckWorkspace
	Argv       []string // the agent
	Env        []string // the person's environment; most of it stays outside
	Home       string   // the person's home folder
	HomeKind   api.HomeKind
	HomeOf     string // the profile whose home a session's own is a view of; "": the agent's
	Mode       api.Mode
	AllowHosts []policy.HostRule
	Extras     outfit.Extras
	Limits     runner.Limits
	Disk       int64         // bytes that it may write; 0: no limit
	WallTime   time.Duration // 0: none
	Asking     api.Asking    // what becomes of its questions
	Vars       []string      // variables that the person gives it: NAME, which passes, or NAME=value
	Cols, Rows int
	NoEcho     bool               // the agent's terminal starts without echo: nobody types at it
	Resume     bool               // go on with the session of that ID, which isn't live
	Parent     *api.Parent        // of a fork, whose upper has been laid out in the session's folder; nil: it is none
	Laid       *manifest.Manifest // what that is, and what was below it when the other session began
	DataDir    string             // the store's folder: homes are below it
	Program    string             // this program's file, for what the agent tells by its hooks; "": it can't
	RunDir     string             // where the run-time folders of all sessions are, 0700
	Log        *slog.Logger

	Credentials []string       // well-known services whose credentials are put in, by policy.KnownCredential
	Tokens      []policy.Limit // on what is spent, named when it was started; at most one

	// Returned lists what applies wrote and the session has as it first saw it again,
	// which is to be applied as well; nil: nobody does.
	Returned func(ctx context.Context, s api.Session, f *files.Files, now *manifest.Manifest, checkpoint int64) ([]string, error)

	// Applied says which files of a session's, as it has them now, were applied as they are, or
	// were never another; nil: none.
	Applied func(ctx context.Context, id string, now *manifest.Manifest) (scan.Drop, error)

	// Foretell is told what a session that goes on records first, before it does; nil: nobody is.
	Foretell func([]store.Event) error
	// Seal signs the record as it is by then and says which event that became; nil: nobody does.
	Seal func(ctx context.Context, by string) (seq uint64, err error)
}

// Session is a live session. Its methods may be called from any goroutine.
type Session struct {
	cfg      Config
	store    *store.Store
	log      *slog.Logger
	box      *runner.Sandbox
	profiles *policy.Profiles
	profile  *policy.Profile
	unread   []rules.Broken // profiles of the person's that can't be used
	outfit   *outfit.Outfit
	gitSaid  sync.Map // what the person's git said of commits, by what it was asked
	brought  *api.Brought
	home     home.Place                // set by dress, and not changed
	services map[string]socket.Service // at which the sandbox's programs speak to it
	judge    *judge.Judge              // complete when the agent has been started, and not changed then
	ledger   *ledger.Ledger
	secrets  *redact.Redactor // of what is recorded and told; set before the ledger
	term     *terminal.Terminal
	files    *files.Files
	teller   *deeds.Teller
	freezer  *files.Freezer
	restorer *files.Restorer

	credentials []policy.Credential
	intercept   *intercept.Interceptor // nil: there are no credentials
	spend       spend.Counter
	telling     atomic.Bool // what was spent is about to be recorded

	past *past // of a session that goes on; nil: it is new

	fork      *files.Checkpoint // of a fork, the files that it begins with
	inherited int               // so many of them differ from the project

	loop     *loop.Loop    // box, term and files are set before it is running
	applying chan struct{} // holds one while something of it is applied
	unsealed chan struct{} // closed when the record is sealed no more but at its end; nil: nobody seals it
	final    api.Session   // set before it is closed

	// Below: owned by the loop.
	info       api.Session
	listed     bool // it has a row, in which this run of it stands
	actions    actions
	roster     roster
	questions  questions
	edits      int            // those that are about to be asked about
	behind     []func()       // what waits until they are, or are answered
	letting    []*question    // answered ones on nested programs, as long as those wait so
	thaws      []func() error // of what was frozen for questions that are answered, until what waited for them has gone on
	asked      int64          // questions so far
	latest     int            // the last action that LastAction tells of
	notes      int64
	claims     claims
	ends       ends
	ports      *ports.Ports // nil before the sandbox is there
	servers    servers
	rollbacks  int64
	word       string            // what the agent is told with its next command
	refusals   []string          // destinations that it was told can't be reached; at most maxRefusals
	shown      []*files.Plan     // the plans that can be confirmed, those shown last at the end
	shownHome  []*home.Plan      // the same of its home
	traps      map[string]string // of its home, that a person was told of, and as what
	trapsOf    int               // actions that ended and of which it isn't known
	homeWas    *home.Saved       // nil: it wasn't read yet
	holdNext   bool              // step over: hold the next action whatever the mode
	tornSaid   bool
	reachSaid  map[bool]bool // that a process reached for another, or (true) signalled it, was told of
	thaw       func() error  // of a pause
	counting   bool          // countSoon will
	wall       *time.Timer
	quiet      *time.Timer
	lastMove   time.Time // when files have moved last
	movedAt    time.Time // since when files have moved without a look at them, or a command
	halfway    int       // rests at which what had changed was only half-way
	watcher    *watch.Watcher
	accountant files.Accountant
	network    network.Network
	rules      *policy.Policy // the built-in and the agent's profile's
	sources    *rules.Set     // the person's and the project's
	read       rules.State    // what these say, as it holds
	habits     habits
	granted    map[string]error // requests that were answered for the session; nil is yes
	entering   []api.Rule       // recorded, and being put into them
	missing    []string         // what is to be told of rules that were to be in them
	lookAgain  *time.Timer      // until the next look at who runs
	line       files.Line
	limits     []policy.Limit // of one action
	starved    int64          // processes that the kernel has killed for want of memory, as far as it is told
	moved      bool           // files have, since the last look at them
	looked     time.Time      // when one was taken for what actions wrote
	refused    []string       // what a person was told of refused requests; at most maxTold
	lost       lost           // what couldn't be recorded, for another try at the end
}

// ErrEnded is returned for requests to a session that is over.
var ErrEnded = files.ErrOver

// Start makes the sandbox and starts the agent. The session lives until the
// agent ends or Kill; ctx bounds the start only. On error nothing is left, and of
// a session that was to be resumed all that there was.
func Start(ctx context.Context, st *store.Store, cfg Config) (*Session, error) {
	s := &Session{
		cfg: cfg, store: st, log: cfg.Log,
		loop: loop.New(ErrEnded), applying: make(chan struct{}, 1), actions: newActions(), roster: newRoster(), reachSaid: make(map[bool]bool),
	}
	s.log = cmp.Or(s.log, slog.New(slog.DiscardHandler))
	s.roster.log = s.log
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// ID names the session.
func (s *Session) ID() string { return s.cfg.ID }

// Done is closed when the agent has ended and the record is complete.
func (s *Session) Done() <-chan struct{} { return s.loop.Done() }

// record commits events and then runs the continuation in the loop, always and
// once, with the error that kept them from being committed. The session stops
// then: nothing may happen unrecorded.
func (s *Session) record(then func(error), events ...api.Event) {
	hand := s.ledger.Record
	if then == nil && s.loop.Now() == loop.Running {
		hand = s.ledger.RecordSoon
	}
	s.hand(hand, func(error) {}, then, events)
}

// hand hands events to the ledger. What comes at once runs outside of the loop, as
// soon as they are committed or can't be.
func (s *Session) hand(to func(func(error), ...api.Event), atOnce, then func(error), events []api.Event) {
	end := s.loop.Begin()
	to(func(err error) {
		atOnce(err)
		end(func() {
			if err != nil {
				s.lost.add(events)
				s.fail(err)
			}
			if then != nil {
				then(err)
			}
		})
	}, events...)
}

// recorded records events. What it returns waits, outside the loop, until they are
// committed.
func (s *Session) recorded(events ...api.Event) (wait func() error) {
	done := make(chan error, 1)
	s.hand(s.ledger.Record, func(err error) { done <- err }, nil, events)
	return func() error { return <-done }
}

// fail closes: the agent is killed, and what can still be recorded is.
func (s *Session) fail(err error) {
	if s.loop.Now() >= loop.Stopping {
		s.log.Error("at the session's end", "error", err)
		if !strings.Contains(s.info.Reason, incomplete) { // whatever it ended by
			s.info.Reason = strings.TrimPrefix(s.info.Reason+"; ", "; ") + api.Escape(api.Trim(incomplete+err.Error(), maxReason))
		}
		return
	}
	s.log.Error("the session stops", "error", err)
	fmt.Fprintf(os.Stderr, "stepbox: session %s stops: %v\n", s.cfg.Name, err)
	s.stop(api.ByFailure, err.Error())
}

// incomplete is how the reason of a session begins that couldn't record all of its end.
const incomplete = "not all of its end is recorded: "

// stop ends the agent. The first reason is the one that is recorded.
func (s *Session) stop(by api.EndedBy, reason string) {
	if s.loop.Now() >= loop.Stopping {
		return
	}
	s.info.EndedBy, s.info.Reason = by, api.Escape(api.Trim(reason, maxReason))
	s.loop.Enter(loop.Stopping)
	if s.box != nil { // else it hasn't started, and won't
		s.box.Kill()
	}
}

// note tells the person something, once it is in the record.
func (s *Session) note(warn bool, format string, args ...any) {
	s.notes++
	s.record(nil, api.Event{Kind: "note", Note: &api.Note{
		ID: s.notes, At: time.Now().UTC(), Text: fmt.Sprintf(format, args...), Warn: warn,
	}})
}

// tally is what an action counts for in its session's numbers, as it was last
// told: a change costs the same however many actions there were.
type tally struct{ listed, open, denied int }

// sum brings the session's numbers up to an action as it is now.
func (s *Session) sum(a *action) {
	var now tally
	if !a.Housekeeping {
		now.listed = 1
		if a.Review == api.ReviewOpen {
			now.open = 1
		}
		if a.N >= s.latest {
			s.latest, s.info.LastAction = a.N, a.Title
		}
	}
	if a.State == api.ActionDenied {
		now.denied = 1
	}
	s.info.Actions += now.listed - a.tally.listed
	s.info.Denials += now.denied - a.tally.denied
	s.info.Unreviewed += now.open - a.tally.open
	a.tally = now
}

// changed is the event that says how the session stands.
func (s *Session) changed(kind string) api.Event {
	s.info.Held = 0
	for _, q := range s.questions {
		if q.state != questionClosed {
			s.info.Held++
		}
	}
	if s.ports != nil {
		s.info.Ports = s.served()
	}
	s.info.Attempts, s.info.Spend = int(s.network.Last), s.spend.All()
	info := s.info
	return api.Event{Kind: "session." + kind, Session: &info}
}

// countWait is how long the session's numbers may be behind its actions, which have
// their own events: lists show the numbers, and who resumes it counts anew.
const countWait = time.Second

// countSoon has the session's numbers recorded before long, once for all that
// changed meanwhile: an event of them takes more than the action that changed them.
func (s *Session) countSoon() {
	if s.counting {
		return
	}
	s.counting = true
	time.AfterFunc(countWait, func() {
		s.loop.Submit(func() {
			s.counting = false
			if s.loop.Now() == loop.Running {
				s.record(nil, s.changed("counted"))
			}
		})
	})
}

// handlers are the gate's way into the loop. The agent's own start comes while
// the sandbox is still being put together; all else waits until it is.
func (s *Session) handlers(onAgent func(*judge.Exec)) gate.Options {
	var first atomic.Bool
	return gate.Options{
		Exec: func(e *gate.Exec) {
			if first.CompareAndSwap(false, true) {
				onAgent(s.judge.First(e, s.profile))
			} else if s.loop.Started() {
				x := s.judge.Exec(e, s.profile)
				s.loop.Submit(func() { s.onExec(x) })
			}
		},
		Scripts: func(e *gate.Exec) []string { return judge.Scripts(e, s.profile) },
		Telling: policy.LoadsCode,
		Exiting: func(e gate.Exit) {
			done := make(chan struct{})
			s.loop.WhenStarted(func() { s.onExiting(e, func() { close(done) }) })
			select {
			case <-done:
			case <-s.loop.In(loop.Stopping): // all of the sandbox ends
			}
		},
		Exit:   func(e gate.Exit) { s.loop.WhenStarted(func() { s.onExit(e) }) },
		Failed: func(e *gate.Exec, why string) { s.loop.WhenStarted(func() { s.onFailed(e, why) }) },
		Reach:  s.mayReach,
		Full: func(most int) {
			s.loop.Submit(func() {
				s.note(true, "%d programs wait to be decided on, and further ones behind them: more can't be held with this limit of open files (ulimit -n)", most)
			})
		},
		Log: func(m string) { s.log.Warn("exec gate", "message", m) },
	}
}
