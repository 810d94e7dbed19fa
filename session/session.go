// Package session supervises one agent: it starts the sandbox, forms actions
// out of the programs that the agent starts, holds them until a rule or a
// person has given a verdict, takes checkpoints of the files, records all of it
// and rolls back what is to be taken back. It is the only place where runner,
// policy and store meet.
//
// A Session is one goroutine that owns all state and runs closures: requests
// from outside come through a bounded inbox (full: the asker waits), results of
// work that the session itself started come through posts, of which there are
// never more than work under way. Everything slow (committing, scanning files,
// freezing) runs elsewhere and posts back. There are no locks around the state.
//
// What comes out of the sandbox is hostile. It is escaped before it enters an
// api value; exact bytes are kept in hashes and bodies.
package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"stepbox/policy"
	"stepbox/runner"
	"stepbox/runner/gate"
	"stepbox/runner/overlay"
	"stepbox/session/api"
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
	Mode       api.Mode
	AllowHosts []policy.HostRule
	Limits     runner.Limits
	WallTime   time.Duration // 0: none
	Cols, Rows int
	DataDir    string // the store's folder: homes are below it
	RunDir     string // where the run-time folders of all sessions are, 0700
	Log        *slog.Logger
}

// Session is a live session. Its methods may be called from any goroutine.
type Session struct {
	cfg     Config
	store   *store.Store
	log     *slog.Logger
	box     *runner.Sandbox
	policy  *policy.Policy
	profile *policy.Profile
	rec     *recorder
	news    *broadcast
	term    *terminal
	files   *files
	freezer *freezer

	inbox    chan func()
	posts    *posts
	created  chan struct{} // closed when the session has its row
	started  chan struct{} // closed when box, term and files are set
	finished chan struct{} // closed to end the loop
	closing  chan struct{} // closed when the sandbox is gone
	ended    chan struct{} // closed when the record is complete
	final    api.Session   // set before ended is closed

	// Below: owned by the loop.
	info       api.Session
	warnings   []string
	env        []string // the agent's
	places     *places
	upkeep     []span    // when housekeeping ran
	actions    []*action // actions[i].N == i+1
	forming    []*action // without a number yet, or not shown yet
	procs      map[proc]*process
	questions  []*question
	execs      int64
	notes      int64
	rollbacks  int64
	attempts   int64
	agentSID   int
	holdNext   bool // step over: hold the next action whatever the mode
	tornSaid   bool
	stopping   bool         // nothing is let run any more
	ending     bool         // the sandbox is gone
	thaw       func() error // of a pause
	wall       *time.Timer
	quiet      *time.Timer
	watcher    *overlay.Watcher
	lastFiles  *checkpoint   // the state that all changes so far are accounted for up to
	checking   bool          // a checkpoint is being taken
	waiting    []func()      // checkpoints asked for meanwhile
	ofAttempts map[int64]int // actions of open attempts
}

// ErrEnded is returned for requests to a session that is over.
var ErrEnded = errors.New("the session has ended")

// Start makes the sandbox and starts the agent. The session lives until the
// agent ends or Kill; ctx bounds the start only. On error nothing is left.
func Start(ctx context.Context, st *store.Store, cfg Config) (*Session, error) {
	s := &Session{
		cfg: cfg, store: st, log: cfg.Log,
		inbox: make(chan func(), 64), posts: newPosts(),
		created: make(chan struct{}), started: make(chan struct{}), finished: make(chan struct{}), closing: make(chan struct{}), ended: make(chan struct{}),
		procs: make(map[proc]*process), ofAttempts: make(map[int64]int),
		news: newBroadcast(),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Done is closed when the agent has ended and the record is complete.
func (s *Session) Done() <-chan struct{} { return s.ended }

// ID names the session.
func (s *Session) ID() string { return s.cfg.ID }

// loop owns the state until the record of the session's end is committed.
func (s *Session) loop() {
	for {
		select {
		case f := <-s.inbox:
			f()
		case <-s.posts.wake:
			for _, f := range s.posts.take() {
				f()
			}
		case <-s.finished:
			return
		}
	}
}

// call runs f in the loop and waits for it.
func (s *Session) call(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case s.inbox <- func() { f(); close(done) }:
	case <-s.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-done:
		return nil
	case <-s.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// post runs f in the loop, later. It never blocks, so only completions of what
// the session itself started may use it.
func (s *Session) post(f func()) { s.posts.add(f) }

// submit hands something that the sandbox did to the loop. It blocks while the
// session is busy, which is the back-pressure that reaches the agent.
func (s *Session) submit(f func()) {
	select {
	case s.inbox <- f:
	case <-s.ended:
	}
}

// record commits events and then runs the continuation in the loop. When it
// can't be committed the session stops: nothing may happen unrecorded.
func (s *Session) record(then func(), events ...api.Event) {
	s.rec.record(func(err error) {
		s.post(func() {
			if err != nil {
				s.fail(err)
				if !s.ending {
					return
				}
			}
			if then != nil {
				then()
			}
		})
	}, events...)
}

// fail closes: the agent is killed, and what can still be recorded is.
func (s *Session) fail(err error) {
	if s.stopping {
		return
	}
	s.stopping = true
	s.log.Error("the session stops", "error", err)
	fmt.Fprintf(os.Stderr, "stepbox: session %s stops: %v\n", s.cfg.Name, err)
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

// changed is the event that says how the session stands.
func (s *Session) changed(kind string) api.Event {
	s.info.Actions, s.info.Held, s.info.Unreviewed = 0, 0, 0
	for _, a := range s.actions {
		if a.Housekeeping {
			continue
		}
		s.info.Actions++
		s.info.LastAction = a.Title
		if a.Review == api.ReviewOpen {
			s.info.Unreviewed++
		}
	}
	for _, q := range s.questions {
		if q.Open() {
			s.info.Held++
		}
	}
	s.info.Attempts = int(s.attempts)
	info := s.info
	return api.Event{Kind: "session." + kind, Session: &info}
}

// handlers are the gate's way into the loop. The agent's own start comes while
// the sandbox is still being put together; all else waits until it is.
func (s *Session) handlers() gate.Options {
	var first atomic.Bool
	return gate.Options{
		Exec: func(e *gate.Exec) {
			if first.CompareAndSwap(false, true) {
				s.submit(func() { s.onAgent(e) })
				return
			}
			s.whenStarted(func() { s.onExec(e) })
		},
		Exiting: func(e gate.Exit) {
			done := make(chan struct{})
			s.whenStarted(func() { s.onExiting(e, func() { close(done) }) })
			select {
			case <-done:
			case <-s.closing: // the sandbox is gone, and this process with it
			}
		},
		Exit:   func(e gate.Exit) { s.whenStarted(func() { s.onExit(e) }) },
		Failed: func(e *gate.Exec, why string) { s.whenStarted(func() { s.onFailed(e, why) }) },
		Log:    func(m string) { s.log.Warn("exec gate", "message", m) },
	}
}

// posts is the queue of completions: unbounded in form, bounded by the work
// under way in fact.
type posts struct {
	wake chan struct{}
	mu   sync.Mutex
	list []func() // guarded by mu
}

func newPosts() *posts { return &posts{wake: make(chan struct{}, 1)} }

func (p *posts) add(f func()) {
	p.mu.Lock()
	p.list = append(p.list, f)
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default: // it will be found by the wake-up that is under way
	}
}

func (p *posts) take() []func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.list
	p.list = nil
	return l
}
