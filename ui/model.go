package ui

import (
	"context"
	"os"
	"sync"
	"time"

	"charm.land/bubbles/v2/spinner"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/time/rate"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/config"
	"stepbox/ui/dialog"
	"stepbox/ui/display"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/layout"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/screen/home"
	"stepbox/ui/screen/workbench"
	"stepbox/ui/spin"
)

// Model is the root of the interface. It is used by one goroutine.
type Model struct {
	opt    Options
	ctx    context.Context // the program's life; links and requests end with it
	cancel context.CancelFunc
	links  sync.WaitGroup // links that are being closed

	cols, rows int
	method     ansi.Method
	palette    *paint.Palette
	dark       bool
	colours    colorprofile.Profile

	home   *home.Screen
	list   listing
	spin   spin.Mark
	unsaid string // what is wrong in the settings, until it is said
	theme  string // why the theme's file isn't what is shown, or ""
	bench  *workbench.Screen
	pick   *dialog.Palette // of themes, over whatever is shown; nil: none
	chosen string          // the theme that is chosen there; "": none was
	kept   string          // the one that was chosen in an earlier run

	beginning bool                     // the session to join is being made, or looked up
	away      func(func() error) error // has another program have the terminal; nil: there is none
	notify    notifier
	copies    map[string]bool // by session: whether its agent may copy to the person's clipboard
	updated   time.Time       // when the last update ended
	key       string          // that was pressed last, wherever,
	pressed   time.Time       // and when
	signal    string          // rings or notifies with the next frame
	farewell  string
	err       error
}

// Messages of the root.
type (
	clock   struct{}
	started struct {
		id  string
		err error
	}
	opened struct {
		id      string
		at      api.Moment // to be shown; "": its end, or now
		words   string     // that were searched
		session api.Session
		shapes  layout.Shapes // that are kept
		err     error
		then    intent.Intent // what is done there first, or nil
	}
)

// Timing of the root.
const (
	tick    = time.Second
	stall   = 3 * tick // between updates: the program was stopped
	request = 30 * time.Second
)

// New makes the interface's model.
func New(o Options) *Model {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	m := &Model{opt: o, dark: themes.Dark(o.Getenv), method: ansi.WcWidth, copies: make(map[string]bool)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	if m.kept = m.opt.Kept.Screen().Read(themeFile); !themes.IsName(m.kept) {
		m.kept = ""
	}
	if m.retheme() != nil { // restyle will say why
		t, err := themes.Load("dark", "")
		if err != nil {
			m.err = err // the embedded themes are tested to load
			t = &themes.Theme{}
		}
		m.palette = paint.NewPalette(t, m.colours)
	}
	m.list.leave = func() {}
	m.notify.bells, m.notify.notes = rate.NewLimiter(rate.Every(bellEvery), 1), rate.NewLimiter(rate.Every(noteEvery), noteBurst)
	m.home = home.New(m.ctx, home.Config{
		Client: o.Client, NewTerminal: o.NewTerminal, Version: o.Version, Here: o.Here, Now: o.Now, Watching: o.Watching,
		CanStart: o.Start != nil, CanDemo: o.Demo != nil, HomeDir: o.Getenv("HOME"), Mode: o.Config.Mode, Agents: o.Agents, Copy: m.copy, CanResume: o.Resume != nil, CanFork: o.Fork != nil, Export: o.Export,
	})
	if m.unsaid = faults(o.Config); m.unsaid != "" && o.Session == "" && o.Begin == nil {
		m.home.Notice, m.unsaid = m.unsaid, ""
	}
	m.updated = m.opt.Now()
	return m
}

// retheme loads the theme that fits the options and the background.
func (m *Model) retheme() error {
	on := themes.Screen{Dark: m.dark, Sixteen: m.colours == colorprofile.ANSI, None: m.colours > colorprofile.Unknown && m.colours < colorprofile.ANSI}
	name := themes.Choose(m.wanted(), on, m.opt.Getenv)
	t, err := themes.Load(name, m.opt.ThemeDir)
	if err != nil {
		return err
	}
	m.palette = paint.NewPalette(t, m.colours)
	m.palette.Signs, m.palette.Still = m.signs(), m.opt.Config.Still || m.opt.Config.Plain
	return nil
}

// signs is how signs can be drawn on this terminal.
func (m *Model) signs() paint.Signs {
	c := m.opt.Config
	switch {
	case c.Plain:
		return paint.Words
	case c.Borders == config.ASCIIBorders, c.Borders == config.AutoBorders && config.OnlyASCII(m.opt.Getenv):
		return paint.ASCII
	}
	return paint.Unicode
}

// Init starts the clock, watches the themes' folder, and joins the session or
// reads the list.
func (m *Model) Init() tea.Cmd {
	switch {
	case m.opt.Begin != nil:
		return tea.Batch(m.tick(), m.watchThemes(), m.watchConfig(), m.begin())
	case m.opt.Session != "":
		m.beginning = true
		return tea.Batch(m.tick(), m.watchThemes(), m.watchConfig(), m.find(opened{id: m.opt.Session}))
	}
	return tea.Batch(m.tick(), m.watchThemes(), m.watchConfig(), m.goHome())
}

// Update takes a message.
func (m *Model) Update(msg tea.Msg) tea.Cmd {
	if m.opt.Now().Sub(m.updated) > stall {
		m.Restart()
	}
	if k, ok := msg.(tea.KeyPressMsg); ok {
		m.key, m.pressed = keys.ByLetter(k).String(), m.opt.Now()
	}
	cmd := m.update(msg)
	cmd = tea.Batch(cmd, m.announce(), m.pass())
	if m.bench != nil {
		cmd = tea.Batch(cmd, m.goTo(m.bench.Leave()))
	}
	m.updated = m.opt.Now()
	return tea.Batch(cmd, m.spin.While(!m.palette.Still && (m.beginning || m.home.Starting || m.bench != nil && m.bench.Busy())))
}

// Restart is called when the program stood still for a while: keys pressed meanwhile
// were for what was seen before.
func (m *Model) Restart() {
	m.home.Restart()
	if m.bench != nil {
		m.bench.Restart()
	}
}

// Drawn tells, before each message, whether what is seen is older than a blink: keys pressed
// now may be for what was seen before. Unsure: it may be older.
func (m *Model) Drawn(late, unsure bool) {
	m.home.Drawn(late, unsure)
	if m.bench != nil {
		m.bench.Drawn(late, unsure)
	}
}

// Deaf tells, after each message, how long no key was heard while it was taken and drawn.
func (m *Model) Deaf(d time.Duration) {
	m.home.Deaf(d)
	if m.bench != nil {
		m.bench.Deaf(d)
	}
}

func (m *Model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.cols, m.rows = msg.Width, msg.Height
		if m.bench != nil {
			return m.bench.Resize(m.cols, m.rows)
		}
		return nil
	case tea.BackgroundColorMsg:
		m.dark = msg.IsDark()
		return m.restyle()
	case tea.ColorProfileMsg:
		m.colours = msg.Profile
		return m.restyle()
	case tea.ModeReportMsg:
		if msg.Mode == ansi.ModeUnicodeCore && display.Clusters(msg.Value) {
			m.method = ansi.GraphemeWidth
		}
		return nil
	case clock:
		if m.bench != nil {
			return tea.Batch(m.tick(), m.bench.Tick())
		}
		if m.beginning {
			return m.tick()
		}
		return tea.Batch(m.tick(), m.home.Tick(), m.lookAgain())
	case stirred:
		return m.stirred(msg)
	case reloaded:
		return m.reconfigure(msg.config)
	case home.Message:
		cmd := m.home.Update(msg)
		return tea.Batch(cmd, m.fromHome(m.home.Leave()))
	case opened:
		return m.join(msg)
	case spinner.TickMsg:
		return m.spin.Update(msg)
	case begun:
		return m.begun(msg)
	case started:
		if m.home.Started(msg.err); msg.err != nil {
			return nil
		}
		return m.find(opened{id: msg.id})
	case prepared:
		return m.afterPrepare(msg)
	case returned:
		return m.afterReturn(msg)
	case copied:
		return m.afterCopy(msg)
	case notified:
		return m.afterCommand(msg.err)
	case tea.FocusMsg, tea.BlurMsg:
		_, here := msg.(tea.FocusMsg)
		m.notify.focus = elsewhere
		if here {
			m.notify.focus = focused
			m.home.Restart()
		}
		if m.bench != nil {
			m.bench.Window(here)
		}
		return nil
	}
	switch {
	case m.pick != nil && m.picking(msg):
		return m.restyle()
	case m.bench != nil:
		return m.toBench(msg)
	case m.beginning:
		return m.whileBeginning(msg)
	}
	return m.toHome(msg)
}

func (m *Model) toHome(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		i, cmd := m.home.Key(keys.ByLetter(msg))
		return tea.Batch(cmd, m.fromHome(i))
	case tea.PasteMsg:
		return m.home.Paste(msg.Content)
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			return m.home.Wheel(-1)
		case tea.MouseWheelDown:
			return m.home.Wheel(1)
		}
	case tea.MouseMsg:
		return m.home.Mouse(msg)
	}
	return nil
}

func (m *Model) toBench(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		return m.bench.Key(keys.ByLetter(msg))
	case tea.PasteMsg:
		return m.bench.Paste(msg.Content)
	case tea.MouseMsg:
		return m.bench.Mouse(msg)
	}
	if of, ok := msg.(interface{ From() *link.Link }); ok && of.From() != m.bench.Link() {
		return nil // of a link that was left
	}
	return m.bench.Update(msg)
}

// fromHome does what the person asked for on the list and is more than the list's.
func (m *Model) fromHome(i intent.Intent) tea.Cmd {
	s, words, at, ok := m.home.Selected()
	switch i := i.(type) {
	case intent.Quit:
		return tea.Quit
	case intent.Themes:
		m.pickTheme()
	case intent.Begin:
		return m.start(func(ctx context.Context) (string, error) { return m.opt.Start(ctx, i) })
	case intent.Demo:
		return m.start(m.opt.Demo)
	case intent.Resume:
		if ok && !m.home.Starting {
			return m.resume(s.ID)
		}
	case intent.Fork:
		if ok && !m.home.Starting {
			return m.start(func(ctx context.Context) (string, error) { return m.opt.Fork(ctx, s.ID, at) })
		}
	case intent.Open:
		if ok && m.bench == nil {
			m.home.Opening = true
			return m.find(opened{id: s.ID, at: at, words: words})
		}
	case intent.Apply, intent.Replay:
		if ok && m.bench == nil {
			m.home.Opening = true
			return m.find(opened{id: s.ID, then: i})
		}
	}
	return nil
}

// goTo leaves the workbench for where the person asked to go.
func (m *Model) goTo(to intent.Intent) tea.Cmd {
	switch to := to.(type) {
	case intent.Themes:
		m.pickTheme()
	case intent.Detach, intent.Quit:
		if !m.opt.NoFarewell || m.bench.Link().ID != m.opt.Session {
			m.farewell = m.bench.Farewell()
		}
		if config.OnlyASCII(m.opt.Getenv) {
			m.farewell = paint.InASCII(m.farewell)
		}
		m.close()
		return tea.Quit
	case intent.Home:
		m.home.Select(m.bench.Link().ID)
		if m.bench.Over() {
			m.home.Ended(m.bench.Session())
		}
		m.close()
		return m.goHome()
	case intent.Resume:
		id := m.bench.Link().ID
		m.close()
		return tea.Batch(m.goHome(), m.resume(id))
	case intent.Fork:
		id := m.bench.Link().ID
		m.close()
		return tea.Batch(m.goHome(), m.start(func(ctx context.Context) (string, error) { return m.opt.Fork(ctx, id, to.At) }))
	}
	return nil
}

// close leaves the session that is shown. Its goroutines are waited for off this one.
func (m *Model) close() {
	if m.bench == nil {
		return
	}
	l := m.bench.Link()
	m.bench, m.notify.newest, m.notify.ended = nil, 0, false
	m.links.Go(l.Close)
}
