// Package home is the screen of all sessions: what is held in them on top, to be
// answered there, live ones below it, then past ones, with what is known of the selected
// one beside them. There they are searched, named, deleted and opened.
//
// A Screen belongs to the goroutine that updates the interface. It does no IO: what
// it has to know, the commands that it returns find out, and their answers come
// back as Messages. Of past sessions, of which there may be ten thousand, it holds
// those around the ones in view.
package home

import (
	"cmp"
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/selection"
	"stepbox/ui/state"
)

// Config is what a Screen works with. Client and NewTerminal are needed.
type Config struct {
	Client      link.Client
	NewTerminal link.NewEmulator
	Version     string
	Here        string // this folder, exact; "" leaves it out of what can be asked for
	Now         func() time.Time
	Watching    bool     // nothing is decided from here
	CanStart    bool     // a session can be started from here
	CanDemo     bool     // and the demo
	CanResume   bool     // and one that has ended gone on with
	CanFork     bool     // and one started on the files of another
	HomeDir     string   // the person's
	Mode        api.Mode // of new sessions, unless another is chosen
	// Agents are those that are installed here; nil: nobody looks.
	Agents func(ctx context.Context) []dialog.Choice

	// Copy fills the person's clipboard, and says that it did.
	Copy func(text, what string) tea.Cmd

	// Export writes a patch of a session to a new file on the host, or is nil.
	Export func(ctx context.Context, session, file string) error
}

// core is what the parts of the screen share.
type core struct {
	Notice string // what became of the last thing

	cfg     Config
	ctx     context.Context
	live    []api.Found
	of      map[string]*state.State // what the board tells of each
	dialogs dialog.Stack            // what lies over the list
}

// Screen lists sessions. Its context ends what it has under way.
type Screen struct {
	*core
	Starting bool // a session is being started
	Opening  bool // the selected one is being opened: what is typed is dropped, as it was meant for that

	problem string // why the list is old, or could not be read
	past    window
	asking  asking
	labels  int    // requests under way that say something of a session
	at      int    // the selected row: of the live ones, then of the past ones
	chosen  string // the selected session's ID; "" while it isn't read
	place   int    // which place of it that has what was searched
	top     int    // the first past row in view
	view    int    // rows in view, when they were drawn last

	board *link.Board // follows the live ones; nil while the list isn't shown
	inbox inbox

	agents []dialog.Choice // that are installed, as far as it is known
	seek   bool            // they are looked for once the list is shown: that takes as long as opening it

	search  search
	entered bool          // enter was pressed before the list was of what was typed: it is carried out then
	begin   intent.Intent // a session is to begin, now that it is known that no key is held down
	shown   preview
	preview bool // it was turned on or off, against what the size would have
	drag    selection.Mouse
	boxes   []uv.Rectangle // the insides of those that were drawn
	trashed []api.Session  // that were put into the trash since the program started, as they were then, oldest first
}

// New makes the screen. What it asks for ends with ctx.
func New(ctx context.Context, c Config) *Screen {
	k := &core{cfg: c, ctx: ctx}
	s := &Screen{core: k, search: search{line: dialog.NewLine(maxSearch)}, inbox: inbox{core: k}}
	s.inbox.desk.Screen = s.inbox.screen()
	return s
}

// Message is an answer to what the screen asked for: it goes to Update, wherever
// the person is by then.
type Message interface{ ForHome() }

// then is what to do with an answer.
type then func() tea.Cmd

func (then) ForHome() {}

// Update takes an answer.
func (s *Screen) Update(m Message) tea.Cmd {
	if f, ok := m.(then); ok {
		return tea.Batch(f(), s.inbox.settle())
	}
	return nil
}

// requestTime bounds every request.
const requestTime = 30 * time.Second

// ask has something found out off this goroutine.
func (c *core) ask(ctx context.Context, f func(context.Context) then) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(ctx, requestTime)
		defer cancel()
		return f(ctx)
	}
}

// pause is how long a person stops before what they typed or went to is looked up.
const pause = 150 * time.Millisecond

// later does something after a pause.
func (c *core) later(f then) tea.Cmd { return c.after(pause, f) }

func (c *core) after(wait time.Duration, f then) tea.Cmd {
	return func() tea.Msg {
		if !link.Pause(c.ctx, wait) {
			return nil
		}
		return f
	}
}

// Selected is the selected session, what was searched, and the moment in it that has it.
func (s *Screen) Selected() (x api.Session, words string, at api.Moment, ok bool) {
	f, ok := s.current()
	if h, found := s.hit(f); found {
		at = h.Moment()
	}
	q, _ := s.search.query(s.cfg.Here)
	return f.Session, q.Text, at, ok
}

// current is the selected session as it was found.
func (s *Screen) current() (api.Found, bool) {
	if s.at < len(s.live) {
		return s.live[s.at], true
	}
	return s.past.row(s.at - len(s.live))
}

// beneath selects the session of the selected question, so that what is known of it is shown.
func (s *Screen) beneath() tea.Cmd {
	e, ok := s.inbox.asked()
	if !ok {
		return nil
	}
	s.choose(max(0, slices.IndexFunc(s.live, func(f api.Found) bool { return f.Session.ID == e.refs[0].Session })))
	return s.look()
}

// Restart begins the quiet time anew: what is on the screen is new to the eye.
func (s *Screen) Restart() { s.inbox.desk.Guard.Restart(s.cfg.Now()) }

// Drawn tells, before each message, whether the terminal lags behind.
func (s *Screen) Drawn(late, unsure bool) { s.inbox.desk.Guard.Drawn(late, unsure, s.cfg.Now()) }

// Deaf tells how long no key was heard.
func (s *Screen) Deaf(d time.Duration) { s.inbox.desk.Deaf(d) }

// Held is how many questions wait in all live sessions.
func (s *Screen) Held() int {
	n := 0
	for _, f := range s.live {
		x, _ := s.now(f.Session)
		n += x.Held
	}
	return n
}

func (s *Screen) total() int { return len(s.live) + s.past.total }

// Select selects a session, or has it selected once it is read.
func (s *Screen) Select(id string) {
	if id == s.chosen {
		return
	}
	s.chosen, s.place = id, 0
	s.toChosen()
}

// choose selects a row.
func (s *Screen) choose(i int) {
	s.at = max(0, min(i, s.total()-1))
	f, _ := s.current()
	if f.Session.ID != s.chosen {
		s.chosen, s.place = f.Session.ID, 0
	}
}

// Leave is what was asked for and had to wait: Begin, Open for the list, or nil.
func (s *Screen) Leave() intent.Intent {
	if i := s.begin; i != nil {
		s.begin = nil
		return i
	}
	if !s.entered || s.past.line != s.search.words() {
		return nil
	}
	s.entered = false
	i, _ := s.handle(intent.Open{})
	return i
}

// Key takes a key, and returns what is left to do for who has the screen: Open,
// New, Resume, Fork or Quit, of the selected session.
func (s *Screen) Key(k tea.KeyPressMsg) (intent.Intent, tea.Cmd) {
	s.inbox.desk.Presses.Key(k.String(), s.cfg.Now())
	var i intent.Intent
	var cmd tea.Cmd
	if s.drag.Some { // it lets go of what the mouse selects
		s.inbox.desk.Guard.Key(s.cfg.Now())
		s.inbox.desk.Presses.Lost()
		s.drag.Drop()
	} else {
		i, cmd = s.key(k)
	}
	s.inbox.desk.Guard.Key(s.cfg.Now())
	return i, tea.Batch(cmd, s.inbox.settle())
}

func (s *Screen) key(k tea.KeyPressMsg) (intent.Intent, tea.Cmd) {
	d := s.dialogs.Top()
	switch {
	case d != nil:
		return s.inDialog(d, k)
	case s.inbox.here && !s.search.open && !s.Opening:
		if b, ok := keys.Find(k, keys.Inbox); ok {
			s.Notice = ""
			cmd := s.inbox.judge(b.Intent, k.IsRepeat)
			if !intent.Decides(b.Intent) {
				cmd = s.beneath()
			}
			return nil, cmd
		}
	case s.inbox.desk.JustDecided(): // it may still be for what was answered: nothing else gets it
		if b, ok := keys.Find(k, keys.Inbox); ok && intent.Decides(b.Intent) {
			return nil, nil
		}
	}
	scope := s.scope()
	b, ok := keys.Find(k, scope...)
	switch b.Intent.(type) {
	case intent.Quit:
	case intent.Back:
		s.entered = false
	default:
		if s.Opening || s.entered {
			return nil, nil
		}
	}
	if ok {
		return s.handle(b.Intent)
	}
	if s.search.open {
		return nil, s.typed(func() { s.search.line.Type(k) })
	}
	s.inbox.desk.Presses.Lost()
	s.Notice = keys.Astray(k, func(intent.Intent) string { return "" }, nil, scope...)
	return nil, nil
}

// scope is what keys mean in the list, from the innermost out.
func (s *Screen) scope() []keys.Scope {
	switch {
	case s.search.open:
		return []keys.Scope{keys.Searching}
	case s.search.words() != "":
		return []keys.Scope{keys.Filtered, keys.Home}
	}
	return []keys.Scope{keys.Home}
}

func (s *Screen) Paste(text string) (cmd tea.Cmd) {
	d := s.dialogs.Top()
	if w, ok := d.(dialog.Writer); ok {
		w.Paste(text)
		cmd = s.listFolders()
	} else if s.search.open && d == nil && !s.Opening && !s.entered {
		cmd = s.typed(func() { s.search.line.Insert(text) })
	}
	s.inbox.desk.Guard.Key(s.cfg.Now())
	return tea.Batch(cmd, s.inbox.settle())
}

func (s *Screen) inDialog(d dialog.Dialog, k tea.KeyPressMsg) (intent.Intent, tea.Cmd) {
	b, ok := keys.Find(k, d.Scope())
	if !ok {
		if w, ok := d.(dialog.Writer); ok && keys.Typed(d.Scope()) {
			w.Type(k)
			return nil, s.listFolders()
		}
		s.inbox.desk.Presses.Lost()
		s.Notice = keys.Astray(k, d.Why, d.Says, d.Scope())
		return nil, nil
	}
	s.Notice = ""
	if s.inbox.about != "" {
		return nil, s.inbox.inQuestion(b.Intent, k.IsRepeat)
	}
	if why := s.inbox.desk.Soon(s.inbox.target(), d.Care(b.Intent), k.IsRepeat); why != "" {
		return nil, s.inbox.tooSoon(why)
	}
	switch i := d.Handle(b.Intent).(type) {
	case intent.Back:
		s.dialogs.Close(d)
	case intent.DoFork:
		s.dialogs.Close(d)
		return intent.Fork{}, nil
	case intent.Begin:
		cmd := s.inbox.desk.Once(d, func() tea.Cmd {
			s.begin = i
			return nil
		})
		return s.Leave(), cmd
	case intent.Run:
		s.dialogs.Close(d)
		return s.handle(i.Intent)
	case intent.DoKill:
		s.dialogs.Close(d)
		return nil, s.kill(i.Session)
	case intent.DoResume:
		s.dialogs.Close(d)
		return intent.Resume{}, nil
	case intent.ExportTo:
		return nil, s.inbox.desk.Once(d, func() tea.Cmd { return s.export(i, d) })
	case intent.Label:
		if i.Is.Trashed != nil {
			s.dialogs.Close(d) // the next key is for the list as it is then
		}
		return nil, s.label(i.Session, i.Is, d)
	}
	return nil, s.listFolders()
}

// handle carries out an intent outside of dialogs.
func (s *Screen) handle(i intent.Intent) (intent.Intent, tea.Cmd) {
	s.Notice = ""
	if s.Move(i) {
		return nil, s.look()
	}
	if s.Notice = s.why(i); s.Notice != "" {
		s.inbox.desk.Lose(i)
		return nil, nil
	}
	switch i := i.(type) {
	case intent.Quit:
		return i, nil
	case intent.FirstHeld:
		s.inbox.here = true
		return nil, s.beneath()
	case intent.New:
		if !s.Starting {
			return nil, s.newSession()
		}
	case intent.Themes:
		return i, nil
	case intent.Demo:
		if !s.Starting {
			return i, nil
		}
	case intent.Help:
		place := []keys.Scope{keys.Home, keys.Filtered, keys.Searching, keys.Inbox}
		if s.inbox.here {
			place = []keys.Scope{keys.Inbox, keys.Home, keys.Filtered, keys.Searching}
		}
		s.dialogs.Open(&dialog.Help{Place: place})
	case intent.Palette:
		s.palette()
	case intent.Preview:
		s.preview = !s.preview
	case intent.Search, intent.Yes, intent.Back, intent.Order, intent.Here:
		return nil, s.find(i)
	case intent.Restore:
		return nil, s.restore()
	default:
		return s.withSelected(i)
	}
	return nil, nil
}

// tooEarly is said until the list is of what was typed.
const tooEarly = "the list isn't of what was typed yet: again in a moment"

// entered is said while an enter waits for that list.
const entered = "the first that is found is opened; esc doesn't"

// withSelected carries out what is about the selected session.
func (s *Screen) withSelected(i intent.Intent) (intent.Intent, tea.Cmd) {
	if s.past.line != s.search.words() { // it is to be opened: nothing else comes here
		s.entered, s.Notice = true, entered
		return nil, s.anew()
	}
	f, _ := s.current()
	x := f.Session
	switch i := i.(type) {
	case intent.Open, intent.Apply, intent.Replay:
		return i, nil
	case intent.Resume:
		if !s.Starting {
			s.dialogs.Open(dialog.ConfirmResume(x))
		}
	case intent.Fork:
		when := ""
		if h, found := s.hit(f); found && h.Kind != api.HitLabel {
			when = paint.Long(h.Offset)
		}
		if !s.Starting {
			s.dialogs.Open(dialog.ConfirmFork(x, when))
		}
	case intent.Match:
		s.match(i.By)
		return nil, s.look()
	case intent.Place:
		if n := len(s.hits(f)); n > 0 {
			s.place = (s.place + i.By + n) % n
		}
	case intent.Export:
		s.dialogs.Open(dialog.NewExport(x, s.cfg.Here))
	case intent.Rename, intent.Tag, intent.Note:
		s.dialogs.Open(entry(i, x))
	case intent.Pin:
		on := !x.Pinned
		return nil, s.label(x.ID, api.Label{Pinned: &on}, nil)
	case intent.Trash:
		return nil, s.trash(x)
	case intent.KillSandbox:
		s.askKill(x)
	}
	return nil, nil
}

// palette offers the list's commands by name.
func (s *Screen) palette() {
	all := slices.DeleteFunc(slices.Clone(keys.In(keys.Home)), func(b keys.Binding) bool { return b.Name == "" })
	s.dialogs.Open(dialog.NewPalette(all, s.why, func() state.Target { return state.Target{Hash: s.chosen} }))
}

// askKill asks before a live session's sandbox is killed.
func (s *Screen) askKill(x api.Session) {
	d := dialog.ConfirmKill(0, "")
	d.Title, d.Do = "Kill the sandbox of "+paint.Clean(name(x))+"?", intent.DoKill{Session: x.ID}
	s.dialogs.Open(d)
}

// kill ends a session; that it has is news of it.
func (s *Screen) kill(id string) tea.Cmd {
	return s.ask(s.ctx, func(ctx context.Context) then {
		_, err := s.cfg.Client.Kill(ctx, id)
		return func() tea.Cmd {
			if err != nil {
				s.Notice = "can't kill it: " + paint.Failed(err)
			}
			return s.Refresh()
		}
	})
}

// Move moves the selection, and says whether that was asked for.
func (s *Screen) Move(i intent.Intent) bool {
	switch i := i.(type) {
	case intent.Move:
		s.choose(s.at + i.By)
	case intent.Page:
		s.choose(s.at + i.By*max(1, s.view-1))
	case intent.Top:
		s.choose(0)
	case intent.Bottom:
		s.choose(s.total() - 1)
	default:
		return false
	}
	return true
}

// Wheel moves the selection by rows.
func (s *Screen) Wheel(by int) tea.Cmd {
	if d := s.dialogs.Top(); d != nil {
		d.Wheel(by)
		return s.inbox.settle()
	}
	s.Move(intent.Move{By: by})
	return s.look()
}

// export writes a patch, for the dialog that asked for its name.
func (s *Screen) export(i intent.ExportTo, d dialog.Dialog) tea.Cmd {
	return s.ask(s.ctx, func(ctx context.Context) then {
		err := s.cfg.Export(ctx, i.Session, i.File)
		return func() tea.Cmd {
			if err != nil {
				d.Fail(paint.Failed(err))
				s.Notice = paint.Failed(err)
				return nil
			}
			s.dialogs.Close(d)
			s.Notice = "✓ written: " + i.File + "; git apply takes it"
			return nil
		}
	})
}

// name is what a session is called.
func name(x api.Session) string { return cmp.Or(x.Name, x.ID) }
