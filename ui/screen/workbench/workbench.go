// Package workbench is the screen of one session: its terminal, changes,
// network and actions, and what is asked. A past session has the same screen,
// read-only.
//
// A Screen belongs to the goroutine that updates the interface. It does no IO:
// what it wants done leaves as commands, whose results come back as messages.
package workbench

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
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
	Client link.Client
	Link   *link.Link
	Keys   *keys.Table
	Now    func() time.Time
	Method func() ansi.Method // how the person's terminal measures text
	Known  api.Session        // what is known of the session before its events arrive
}

// Screen is the workbench of one session.
type Screen struct {
	Spin string // the mark beside what takes long, or ""; told before each frame

	cfg  Config
	link *link.Link
	st   state.State

	terminal terminal.Pane
	changes  changes.Pane
	network  network.Pane
	actions  actions.Pane

	cols, rows int
	panes      layout.Panes
	focus      intent.Pane
	zoom       bool
	side       intent.Pane
	split      int
	leader     bool // the leader key was pressed

	dialogs []dialog.Dialog
	guard   state.Guard
	wake    bool           // a message for the end of the quiet time is under way
	pending map[int64]bool // questions whose answer is on its way
	cursor  int64          // the question that was walked to
	auto    bool           // the selection was moved to a question, not by the person

	caught  bool
	loaded  bool // any event has arrived
	lostEv  string
	lostTm  string
	over    bool
	notice  notice
	doing   []string // what takes long, in words
	fetch   fetching
	window  bool      // the person's terminal window has the focus
	refocus time.Time // when it got it last
	drag    bool      // the border between the columns is being moved
	pressed bool      // a button went down inside of the agent's screen
	size    [2]int    // what the agent's terminal was asked to be

	tabAt []uv.Rectangle

	leave intent.Intent // where to go; taken by Leave
}

type notice struct {
	text  string
	token themes.Token
	until time.Time
}

// New makes the screen of a session that was joined.
func New(c Config) *Screen {
	s := &Screen{
		cfg: c, link: c.Link, focus: intent.Terminal, side: intent.Changes,
		pending: map[int64]bool{}, window: true,
	}
	s.st.Session = c.Known
	s.terminal.Screen = &c.Link.Screen
	s.terminal.Waiting = "joining the terminal…"
	s.network.State, s.actions.State = &s.st, &s.st
	s.actions.Loading, s.changes.Loading = true, true
	return s
}

// Init starts what the screen lives on.
func (s *Screen) Init() tea.Cmd {
	return tea.Batch(s.link.Next(), s.catchUp())
}

// Session is the session as it is known now.
func (s *Screen) Session() api.Session { return s.st.Session }

// Link is the connection that the screen lives on.
func (s *Screen) Link() *link.Link { return s.link }

// Held is how many questions wait, Newest the newest one's ID.
func (s *Screen) Held() int { return len(s.st.Questions) }

// Newest is the ID of the newest open question, or 0.
func (s *Screen) Newest() int64 {
	if n := len(s.st.Questions); n > 0 && s.caught {
		return s.st.Questions[n-1].ID
	}
	return 0
}

// Arrived says whether what was recorded has been read, and the terminal and
// the changes have been seen: from then on the screen shows what is.
func (s *Screen) Arrived() bool {
	return s.caught && !s.changes.Loading && s.fetch == (fetching{}) && s.link.Screen.Version() > 0
}

// Leave is where the person asked to go, once: intent.Detach, Home or Quit.
func (s *Screen) Leave() intent.Intent {
	i := s.leave
	s.leave = nil
	return i
}

// Over says whether the session is known to have ended.
func (s *Screen) Over() bool { return s.over || s.st.Session.State != "" && !s.st.Session.Live() }

// live says whether there is an agent to type to and to decide on.
func (s *Screen) live() bool { return !s.Over() }

// Resize takes the size of the person's terminal.
func (s *Screen) Resize(cols, rows int) tea.Cmd {
	s.cols, s.rows = cols, rows
	return s.settle()
}

// Window takes whether the person's terminal window has the focus. What is on
// the screen when it comes back is new to the eye.
func (s *Screen) Window(focused bool) {
	s.window = focused
	if focused {
		s.refocus = s.cfg.Now()
		s.guard.Restart(s.refocus)
	}
}

// Restart begins the quiet time anew, after the program was held up.
func (s *Screen) Restart() { s.guard.Restart(s.cfg.Now()) }

// Update takes a message of the link, or the result of a command.
func (s *Screen) Update(msg tea.Msg) tea.Cmd {
	var cmd tea.Cmd
	switch m := msg.(type) {
	case link.Events:
		s.events(m)
		cmd = s.link.Next()
	case link.Drawn:
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
		cmd = m.then(s)
	}
	return tea.Batch(cmd, s.settle())
}

// Tick keeps clocks and notices going.
func (s *Screen) Tick() tea.Cmd {
	if s.notice.text != "" && s.cfg.Now().After(s.notice.until) {
		s.notice = notice{}
	}
	return s.settle()
}

func (s *Screen) events(m link.Events) {
	for _, e := range m.Batch {
		s.st.Apply(e)
		if e.Note != nil && s.caught {
			s.tell(themes.Info, "%s", e.Note.Text)
			if e.Note.Warn {
				s.notice.token = themes.Warn
			}
		}
	}
	s.loaded = s.loaded || len(m.Batch) > 0
	if m.Caught && !s.caught {
		s.caught = true
		s.actions.Loading = false
	}
	s.lostEv = ""
	if s.caught {
		s.follow()
	}
}

func (s *Screen) lost(m link.Lost) {
	words := ""
	if m.Err != nil {
		words = problemWords(m.Err)
	}
	if m.Terminal {
		s.lostTm = words
		if words != "" {
			s.terminal.Waiting = "the terminal can't be reached: " + words
		}
		s.size = [2]int{}
		return
	}
	s.lostEv = words
}

func (s *Screen) ended(m link.Over) {
	s.over, s.caught = true, true
	s.actions.Loading = false
	s.lostEv, s.lostTm = "", ""
	if m.Err != nil {
		s.tell(themes.Warn, "the session's last state can't be read: %s", problemWords(m.Err))
		return
	}
	if m.Session.ID != "" {
		s.st.Apply(api.Event{Session: &m.Session})
	}
	s.terminal.Waiting = "no screen was recorded"
}

// follow keeps the selection on what waits while the person isn't using the list.
func (s *Screen) follow() {
	follows := s.actions.List.Follows()
	if _, held := s.st.QuestionOf(s.actions.Selected()); held && !follows {
		return // it stays until it is answered, whatever else comes up
	}
	if s.focus == intent.Actions && !follows && !s.auto {
		return
	}
	if len(s.st.Questions) > 0 {
		if s.actions.Select(s.st.Questions[0].Action) {
			s.cursor, s.auto = s.st.Questions[0].ID, true
		}
		return
	}
	if s.auto {
		s.actions.List.Follow()
		s.auto = false
	}
}

// Tell says something for a few seconds.
func (s *Screen) Tell(token themes.Token, words string) tea.Cmd {
	s.tell(token, "%s", words)
	return s.settle()
}

func (s *Screen) tell(token themes.Token, format string, args ...any) {
	s.notice = notice{text: paint.Clean(sprintf(format, args...)), token: token, until: s.cfg.Now().Add(6 * time.Second)}
}

// ctxTimeout bounds every request.
const ctxTimeout = 30 * time.Second

// do makes a command of a request. f runs off this goroutine and returns what
// to do with its answer on it.
func (s *Screen) do(f func(ctx context.Context, c link.Client, id string) func(*Screen) tea.Cmd) tea.Cmd {
	l, c := s.link, s.cfg.Client
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(l.Context(), ctxTimeout)
		defer cancel()
		return result{link: l, then: f(ctx, c, l.ID)}
	}
}

// long is do for what may take long: until it is done, its words stand where
// notices are.
func (s *Screen) long(doing string, f func(ctx context.Context, c link.Client, id string) func(*Screen) tea.Cmd) tea.Cmd {
	s.doing = append(s.doing, doing)
	return s.do(func(ctx context.Context, c link.Client, id string) func(*Screen) tea.Cmd {
		then := f(ctx, c, id)
		return func(s *Screen) tea.Cmd {
			i := slices.Index(s.doing, doing)
			s.doing = slices.Delete(s.doing, i, i+1)
			return then(s)
		}
	})
}

// Busy says whether something takes long that the person waits for.
func (s *Screen) Busy() bool {
	return len(s.doing) > 0 || s.live() && s.st.Session.State == api.SessionStarting
}

// said is what stands where notices are.
func (s *Screen) said() notice {
	if n := len(s.doing); n > 0 && s.Spin != "" {
		return notice{text: s.Spin + " " + s.doing[n-1], token: themes.Info}
	}
	return s.notice
}

// after makes a command that waits.
func (s *Screen) after(d time.Duration, then func(*Screen) tea.Cmd) tea.Cmd {
	l := s.link
	return func() tea.Msg {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return result{link: l, then: then}
		case <-l.Context().Done():
			return nil
		}
	}
}

// result is what a command found out, for the screen of the link it was for.
type result struct {
	link *link.Link
	then func(*Screen) tea.Cmd
}
