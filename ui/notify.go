package ui

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"golang.org/x/time/rate"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/config"
	"stepbox/ui/outside"
	"stepbox/ui/paint"
)

// notifier tells the person beyond the screen that something waits for them.
type notifier struct {
	newest int64         // the newest question that was announced
	held   int           // so many were, on the list
	ended  bool          // the session's end was
	since  time.Time     // when what isn't told yet came up; zero: nothing
	rang   time.Time     // when it was told last
	focus  focus         // the terminal's
	runs   bool          // the person's command
	bells  *rate.Limiter // of the agent's
	notes  *rate.Limiter
}

// How often an agent's bells and notifications are passed on; more of them aren't.
const (
	noteEvery = 10 * time.Second
	noteBurst = 3
)

// pass passes on what the agent signalled: its bell as it is, a notification as one of ours,
// with the session's name, which is also said on the screen.
func (m *Model) pass() tea.Cmd {
	if m.bench == nil {
		return nil
	}
	heard, n, c := m.bench.Heard(), &m.notify, m.opt.Config.Notify
	if c.Agent && heard.Bell && n.bells.AllowN(m.opt.Now(), 1) {
		m.signal += "\a"
	}
	var cmd tea.Cmd
	for _, note := range heard.Notes {
		if !n.notes.AllowN(m.opt.Now(), 1) {
			break
		}
		words := harmless(strings.TrimLeft(note.Title+": "+note.Text, ": "))
		m.bench.Says(words)
		if c.Agent && !m.unwanted() {
			name := "stepbox: " + harmless(m.bench.Name())
			m.signal += osc(c.OSC, name, "› "+words, m.opt.Getenv)
			cmd = tea.Batch(cmd, m.notifyBy(c.Command, name, "› "+words))
		}
	}
	return cmd
}

// unwanted says whether the person doesn't want to be told beyond the screen now.
func (m *Model) unwanted() bool {
	c := m.opt.Config.Notify
	return c.When == config.Never || c.When == config.Unfocused && m.notify.focus == focused
}

type focus int

const (
	unknown focus = iota // the terminal hasn't said: it may not be able to
	focused
	elsewhere
)

// Bounds of what is told, and of what tells it.
const (
	bellEvery   = 2 * time.Second
	longestText = 200
	commandTime = 10 * time.Second
)

// announce tells what came up since the last time, once it has waited for long enough. What
// comes up right after is told a moment later, if something still waits; what the person
// looks at isn't.
func (m *Model) announce() tea.Cmd {
	n, now, c := &m.notify, m.opt.Now(), m.opt.Config.Notify
	if m.fresh() {
		n.since = now
	}
	if n.since.IsZero() || now.Sub(n.since) < c.After {
		return nil
	}
	title, text := m.waiting()
	if title != "" && !n.rang.IsZero() && now.Sub(n.rang) < bellEvery {
		return nil
	}
	n.since = time.Time{}
	if title == "" || m.unwanted() {
		return nil
	}
	n.rang = now
	if c.Bell {
		m.signal += "\a"
	}
	m.signal += osc(c.OSC, title, text, m.opt.Getenv)
	return m.notifyBy(c.Command, title, text)
}

// fresh says whether something came up since it was asked last.
func (m *Model) fresh() bool {
	n := &m.notify
	if m.bench == nil {
		was := n.held
		n.held = m.home.Held()
		return n.held > was
	}
	newest, over := m.bench.Newest(), m.bench.Ended()
	fresh := newest > n.newest || over && !n.ended
	n.newest, n.ended = max(n.newest, newest), over
	return fresh
}

// waiting is what waits for the person, in a line and one more; "" is nothing.
func (m *Model) waiting() (title, text string) {
	switch {
	case m.bench != nil:
		title, text = m.bench.Waiting()
	case m.home.Held() > 0:
		title = paint.Count(m.home.Held(), "question is held", "questions are held")
	}
	if title == "" {
		return "", ""
	}
	return "stepbox: " + harmless(title), "› " + harmless(text) // neither begins as an option or a number does
}

// harmless is a text as no terminal and no program takes it for more than that.
func harmless(s string) string {
	s = paint.Clean(api.Trim(s, longestText))
	return strings.Map(func(r rune) rune {
		switch {
		case r == ';': // parts the fields of what terminals are told
			return ','
		case r < ' ' || r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}, s)
}

// osc is what has a terminal notify, in the way of one of them.
func osc(way, title, text string, getenv func(string) string) string {
	if way == "auto" {
		way = wayOf(getenv)
	}
	title, text = told(title, getenv), told(text, getenv)
	var out string
	switch way {
	case "9":
		out = ansi.Notify(title + " " + text)
	case "777":
		out = ansi.URxvtExt("notify", title, text)
	case "99":
		out = ansi.DesktopNotification(title, "i=stepbox", "d=0") + ansi.DesktopNotification(text, "i=stepbox", "p=body")
	default:
		return ""
	}
	if getenv("TMUX") != "" { // it passes them on where allow-passthrough is on
		return ansi.TmuxPassthrough(out)
	}
	return out
}

// wayOf is the way of the terminal that the environment tells of; "" for one that isn't known.
func wayOf(getenv func(string) string) string {
	term, program := getenv("TERM"), getenv("TERM_PROGRAM")
	switch {
	case strings.Contains(term, "kitty") || getenv("KITTY_WINDOW_ID") != "":
		return "99"
	case strings.HasPrefix(term, "foot") || strings.HasPrefix(term, "rxvt"):
		return "777"
	case strings.Contains(term, "ghostty") || program == "ghostty" || program == "WezTerm" || program == "iTerm.app":
		return "9"
	}
	return ""
}

// notified says that the person's command has ended.
type notified struct{ err error }

// notifyBy runs the person's command, one at a time. It is no shell's: what it is told are
// its last two arguments, and variables.
func (m *Model) notifyBy(argv []string, title, text string) tea.Cmd {
	if len(argv) == 0 || m.notify.runs {
		return nil
	}
	m.notify.runs = true
	session := ""
	if m.bench != nil {
		session = m.bench.Link().ID
	}
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, commandTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, argv[0], append(append([]string{}, argv[1:]...), title, text)...)
		cmd.Env = append(os.Environ(), "STEPBOX_TITLE="+title, "STEPBOX_TEXT="+text, "STEPBOX_SESSION="+session)
		return notified{outside.Whole(cmd).Run()}
	}
}

// afterCommand says what was wrong with it.
func (m *Model) afterCommand(err error) tea.Cmd {
	m.notify.runs = false
	if err == nil || m.ctx.Err() != nil {
		return nil
	}
	return m.tell(themes.Warn, "notify.command failed: "+paint.Clean(fmt.Sprint(err)))
}
