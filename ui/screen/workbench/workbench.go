// Package workbench is the screen of one session: its terminal, changes,
// network and actions, and what is asked. A past session has the same screen,
// read-only.
//
// A Screen belongs to the goroutine that updates the interface. It does no IO:
// what it wants done leaves as commands, whose results come back as messages.
package workbench

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/time/rate"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/kept"
	"stepbox/ui/layout"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/pane/actions"
	"stepbox/ui/pane/changes"
	"stepbox/ui/pane/network"
	"stepbox/ui/pane/terminal"
	"stepbox/ui/state"
)

// Config is what a Screen is made of.
type Config struct {
	Client  link.Client
	Link    *link.Link
	Now     func() time.Time
	Method  func() ansi.Method // how the person's terminal measures text
	Signs   func() paint.Signs // how signs are drawn there
	Kept    kept.Folder        // what is remembered from one run to the next
	Layout  intent.Preset      // where the person has chosen none
	Shapes  layout.Shapes      // how the person divides the screen, as Kept has it
	Key     string             // what was pressed last before, which may be held down still
	Pressed time.Time          // when that was
	At      api.Moment         // to begin with; "": now
	Words   string             // that were searched, At a place that has them
	Then    intent.Intent      // what is done once it is shown: Apply, or nil
	NoTour  bool               // the tour isn't begun by itself

	// Watching says that nothing is to be decided, typed or changed from here.
	Watching bool
	Known    api.Session // what is known of the session before its events arrive

	Here string // the folder that the program runs in; "" isn't known
	// Export writes a patch of a session to a new file on the host; nil when that can't be done.
	Export func(ctx context.Context, id, file string) error
	// Save writes a session's file as it was to a new one on the host.
	Save func(ctx context.Context, id, key string, at api.Moment, name string) error
	// Copy fills the person's clipboard, and says that it did.
	Copy func(text, what string) tea.Cmd
	// Copies remembers, by session, whether its agent may copy to the person's clipboard;
	// those that aren't in it are asked about.
	Copies map[string]bool
	// Open opens a file, or a diff, in the person's own editor or pager.
	Open func(session string, r Reading) tea.Cmd
	// Browse opens a page in the person's browser; nil where there is none.
	Browse    func(ctx context.Context, url string) error
	CanResume bool // whoever shows the screen can carry out intent.Resume
	CanFork   bool // the same of intent.Fork
}

// Screen is the workbench of one session: it routes keys, the mouse and messages
// to the controllers that its parts are.
type Screen struct {
	*core
	view    arrangement
	agent   agent
	changes fetcher
	reach   reaching
	rules   ruling
	asking  asking
	ops     operations
	signals signalling
	course  transport
	drag    dragging
	find    finding
	tour    tour

	rows    int           // of the whole screen
	leader  bool          // the leader key was pressed,
	ledAt   time.Time     // and when
	window  bool          // the person's terminal window has the focus
	refocus time.Time     // when it got it last
	leave   intent.Intent // where to go; taken by Leave
	lived   bool          // the session was seen to live
	frozen  bool          // it was paused when this was drawn last, so that a key lets it go on
	opened  time.Time     // what was noted before is no news
}

// New makes the screen of a session that was joined.
func New(c Config) *Screen {
	k := &core{cfg: c, link: c.Link, wanted: c.At != "", notices: notices{clock: c.Now}}
	k.st.Session = c.Known
	s := &Screen{
		core: k, window: true, opened: c.Now(),
		view:    arrangement{focus: intent.Terminal, side: intent.Changes, shapes: c.Shapes, usual: c.Layout, linear: func() bool { return c.Signs() == paint.Words }},
		agent:   agent{core: k, pane: terminal.Pane{Screen: &c.Link.Screen, Waiting: "joining the terminal…"}},
		changes: fetcher{core: k, pane: changes.Pane{Loading: true}},
		reach:   reaching{core: k, pane: network.Pane{State: &k.st}},
		asking:  asking{core: k, list: actions.Pane{State: &k.st, Loading: true}},
		course:  transport{timeline: timeline{core: k}, speed: usualSpeed},
		find:    finding{core: k},
		tour:    tour{core: k},
	}
	s.asking.flow.dropped, s.asking.flow.last, s.asking.flow.first = c.Key, c.Pressed, true
	s.rules = ruling{core: k, dialogs: &s.asking.dialogs, desk: &s.asking.desk, typing: s.typing}
	s.drag = dragging{core: k, agent: &s.agent}
	s.asking.desk.Screen = s.asking.screen()
	s.reach.rules, s.asking.rules, s.asking.find = &s.rules, &s.rules, &s.find
	s.ops = operations{core: k, dialogs: &s.asking.dialogs, taken: s.edited, cancel: func() {}, stopBisect: func() {}}
	s.signals = signalling{core: k, dialogs: &s.asking.dialogs, copies: rate.NewLimiter(rate.Every(copyEvery), copyBurst)}
	return s
}

// Init starts what the screen lives on.
func (s *Screen) Init() tea.Cmd {
	return tea.Batch(s.link.Next(), s.changes.recall(), s.tour.recall(), s.changes.catchUp())
}

// Link is the connection that the screen lives on.
func (s *Screen) Link() *link.Link { return s.link }

// Session is the session as it is now.
func (s *Screen) Session() api.Session { return s.present().Session }

// Held is how many questions wait.
func (s *Screen) Held() int { return len(s.present().Questions) }

// Newest is the ID of the newest open question, or 0.
func (s *Screen) Newest() int64 {
	newest := int64(0)
	for _, q := range s.present().Questions {
		if s.caught {
			newest = max(newest, q.ID)
		}
	}
	return newest
}

// Arrived says whether what was recorded has been read, and the terminal and
// the changes have been seen: from then on the screen shows what is.
func (s *Screen) Arrived() bool {
	return s.caught && s.changes.idle() && s.link.Screen.Version() > 0
}

// Leave is where the person asked to go, once: intent.Detach, Home or Quit.
func (s *Screen) Leave() intent.Intent {
	i := s.leave
	s.leave = nil
	return i
}

// Resize takes the size of the person's terminal.
func (s *Screen) Resize(cols, rows int) tea.Cmd {
	again := s.view.cols > 0
	s.view.cols, s.rows = cols, rows
	cmd := s.follow()
	if again {
		s.agent.claim()
	}
	return cmd
}

// Window takes whether the person's terminal window has the focus. What is on
// the screen then is new to the eye, as it may have been covered.
func (s *Screen) Window(focused bool) {
	s.window, s.leader = focused, false
	s.Restart()
	if focused {
		s.refocus = s.cfg.Now()
		s.agent.claim()
	}
}

// Restart begins the quiet time anew, after the program or the terminal was held up. What
// comes after the leader is still ours, as a slow terminal is often late; but it answers
// nothing that was seen then.
func (s *Screen) Restart() {
	s.asking.aimed = state.Target{}
	s.asking.desk.Guard.Restart(s.cfg.Now())
	s.asking.strip.Restart(s.cfg.Now())
}

// Drawn tells, before each message, whether the terminal lags behind.
func (s *Screen) Drawn(late, unsure bool) {
	s.asking.desk.Guard.Drawn(late, unsure, s.cfg.Now())
	if s.asking.strip.Drawn(late, unsure, s.cfg.Now()) {
		s.asking.aimed = state.Target{}
	}
}

// Deaf tells how long no key was heard.
func (s *Screen) Deaf(d time.Duration) {
	s.asking.desk.Deaf(d)
	s.asking.strip.Deaf(d)
}

// follow is called at the end of every update: it brings the layout, the agent's
// size, dialogs and the quiet time in line with what will be drawn next, and
// fetches what that lacks.
func (s *Screen) follow() tea.Cmd {
	s.asking.rest()
	begin := s.tour.begin(s.whyAtAll)
	s.view.rows = s.rows - s.tour.follow(scene{s.leader, s.view.focus, s.asking.dialogs.Top()}, s.rows)
	news := s.asking.desk.News(s.link.ID, &s.st)
	news.Off = s.off()
	s.asking.dialogs.Sync(news)
	s.sumUp()
	if s.caught {
		s.used.Add(s.present(), s.cfg.Now())
	}
	s.view.arrange(s.course.shown(), func(cols int) int {
		_, rows := s.asking.dialogs.Docked(s.asking.ruler(), cols)
		return rows
	})
	s.changes.pane.SetFlat(s.view.shape().Flat)
	s.agent.fit(s.view.agent.Inset(1))
	s.agent.attend(s.window && s.view.focus == intent.Terminal)
	var late tea.Cmd
	if later := s.course.later; s.course.read && len(later) > 0 {
		s.course.later = nil
		for _, i := range later {
			late = tea.Batch(late, s.replay(i))
		}
	}
	s.asking.strip.Shown(s.inStrip(), s.cfg.Now())
	if frozen := s.thaws(intent.Pause{}); frozen != s.frozen { // the same key is for the opposite
		s.frozen = frozen
		s.asking.desk.Guard.Restart(s.cfg.Now())
	}
	return tea.Batch(begin, late, s.keep(), s.lookUp(), s.course.catchUp(), s.changes.catchUp(), s.changes.wantDiff(diffPause), s.ops.readBeside(), s.ops.changed(s.asking.dialogs.Top()), s.asking.desk.Differences(s.link.ID, s.asking.dialogs.Top()), s.asking.desk.Watch(s.target()))
}

// sumUp says what can be done with the work of a session that has just ended. It
// lies below what is open already.
func (s *Screen) sumUp() {
	switch {
	case s.past():
		return
	case !s.caught || s.live():
		s.lived = s.lived || s.caught
		return
	}
	if ses := s.st.Session; s.lived && (ses.Unapplied > 0 || ses.HomeLeft.Traps() != "") {
		s.asking.dialogs.Below(dialog.NewEnded(ses, s.Why))
	}
	s.lived = false
}

// blind says that nothing can be seen of what keys would be for.
func (s *Screen) blind() bool { return s.view.panes.Kind == layout.TooSmall }

// target is what keys would decide now.
func (s *Screen) target() state.Target {
	if s.blind() {
		return state.Target{}
	}
	if d := s.asking.dialogs.Top(); d != nil {
		return d.Target()
	}
	return s.below()
}

// below is what keys would decide if there were no dialog.
func (s *Screen) below() state.Target {
	if s.past() || s.find.in != intent.NoPane || s.view.panes.Of(s.view.focus).Empty() {
		return state.Target{}
	}
	switch s.view.focus {
	case intent.Changes:
		return state.Target{Question: int64(s.changes.pane.Action), Place: "changes"}
	case intent.Network:
		return s.reach.target()
	case intent.Actions:
	default:
		return state.Target{}
	}
	if q, ok := s.asking.question(); ok {
		a, _ := s.st.Action(q.Action)
		return state.Target{Question: q.ID, Hash: s.st.Print(q.ID) + a.Title, Place: "strip"}
	}
	return state.Target{Question: int64(s.asking.list.Selected()), Place: "action"}
}

// ready says whether keys answer the target now.
func (s *Screen) ready() bool { return s.asking.desk.Guard.Takes(s.target(), state.Quiet, s.cfg.Now()) }

// Update takes a message of the link, or the result of a command.
func (s *Screen) Update(msg tea.Msg) tea.Cmd {
	var cmd tea.Cmd
	asked := s.asking.dialogs.Top() != nil
	switch m := msg.(type) {
	case link.Events:
		cmd = tea.Batch(s.events(m), s.link.Next())
	case link.Drawn:
		cmd = tea.Batch(s.signals.hear(), s.link.Next())
	case link.Moved:
		s.moved(m)
		cmd = s.link.Next()
	case link.Lost:
		s.lost(m)
		cmd = s.link.Next()
	case link.Over:
		s.ended(m)
		cmd = s.link.Next()
	case result:
		if m.link != s.link {
			return nil
		}
		cmd = m.then()
	}
	if asked && s.asking.dialogs.Top() == nil {
		s.asking.desk.Decided = s.cfg.Now() // no key did that
	}
	return tea.Batch(cmd, s.follow())
}

// Tick keeps clocks and notices going.
func (s *Screen) Tick() tea.Cmd {
	s.pass()
	return s.follow()
}

func (s *Screen) events(m link.Events) (cmd tea.Cmd) {
	for _, e := range m.Batch {
		s.present().Apply(e)
		s.noted(e)
	}
	if m.Caught && !s.caught {
		s.caught = true
		s.asking.list.Loading = false
		s.greet()
		if s.cfg.At != "" {
			s.course.jump(s.cfg.At, 0)
		}
		if s.cfg.Words != "" && s.Over() {
			cmd = s.course.search(s.cfg.Words, true)
		}
		if apply, ok := s.cfg.Then.(intent.Apply); ok {
			cmd = tea.Batch(cmd, s.handle(apply, state.Target{}, false))
		}
	}
	s.lostEv = ""
	if s.caught && !s.past() {
		s.asking.follow(s.view.focus)
		s.asking.goOn(s.view.focus)
	}
	return cmd
}

// starting is how long a session that is just being started may warn of something before
// its screen is there.
const starting = 5 * time.Second

// noted tells what a session has to say: what it warns of also if that was while it started.
func (s *Screen) noted(e api.Event) {
	switch n := e.Note; {
	case n == nil:
	case n.Warn && !e.At.Before(s.opened.Add(-starting)) && e.At.Before(s.opened.Add(starting)):
		s.tellToo(themes.Warn, n.Text)
	case n.Warn && !e.At.Before(s.opened):
		s.warn("%s", n.Text)
	case !n.Warn && s.caught && !e.At.Before(s.opened) && !s.fresh():
		s.info("%s", n.Text)
	}
}

// greet tells what came along of the person's to a session that was just started, and what
// is theirs to decide.
func (s *Screen) greet() {
	now := s.present().Session
	if !now.Live() || s.past() || now.Began().Before(s.opened.Add(-starting)) {
		return
	}
	for _, line := range []string{now.Brought.Line(), now.Undecided()} {
		if line != "" {
			s.tellToo(themes.Info, line)
		}
	}
}

func (s *Screen) lost(m link.Lost) {
	words := paint.Failed(m.Err)
	if m.Terminal {
		s.lostTm = words
		if words != "" {
			s.agent.pane.Waiting = "the terminal can't be reached: " + words
		}
		s.agent.size = [2]int{}
		return
	}
	s.lostEv = words
}

func (s *Screen) ended(m link.Over) {
	s.over, s.caught = true, true
	s.asking.list.Loading = false
	s.lostEv, s.lostTm = "", ""
	if m.Err != nil {
		s.miss(m.Err)
		s.warn("the session's last state can't be read: %s", paint.Failed(m.Err))
		return
	}
	if m.Session.ID != "" {
		s.present().Apply(api.Event{Session: &m.Session})
	}
	s.agent.pane.Waiting = "no screen was recorded"
}

// Tell says something for a few seconds.
func (s *Screen) Tell(token themes.Token, words string) tea.Cmd {
	s.tell(token, "%s", words)
	return s.follow()
}
