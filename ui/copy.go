package ui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"stepbox/themes"
	"stepbox/ui/outside"
	"stepbox/ui/paint"
)

// mostCopied bounds what is copied, in bytes: more than a person pastes, and than terminals take.
const mostCopied = 1 << 20

// copied says what became of a text that was to be in the person's clipboard.
type copied struct {
	what     string // in words
	by       string // the program that took it; "": there is none
	terminal bool   // the terminal was told, too
	err      error
}

// copy hands a text to the person's clipboard: to their terminal with the next frame, and
// to a program of theirs. It comes out of a sandbox, and is pasted who knows where: with what
// a terminal would obey in it, it isn't copied at all.
func (m *Model) copy(text, what string) tea.Cmd {
	setting := m.opt.Config.Clipboard
	switch {
	case setting == outside.None:
		return m.tell(themes.Info, "not copied: your settings say clipboard: none")
	case text == "":
		return m.tell(themes.Info, "there is nothing to copy")
	case len(text) > mostCopied:
		return m.tell(themes.Warn, fmt.Sprintf("not copied: it is longer than %s", paint.Bytes(mostCopied)))
	case strings.ContainsFunc(text, acts):
		return m.tell(themes.Warn, "not copied: there are control characters in it, on which a paste could act")
	}
	done := copied{what: what, terminal: setting == "" || setting == outside.Auto || setting == outside.OSC52}
	if done.terminal {
		m.signal += osc52(text, m.opt.Getenv)
	}
	fill, ctx := m.opt.Copy, m.ctx
	return func() tea.Msg {
		if fill != nil {
			done.by, done.err = fill(ctx, setting, text)
		}
		return done
	}
}

// acts says whether a terminal that a text is pasted into would do something on a character,
// beside beginning a line.
func acts(r rune) bool {
	return r != '\n' && r != '\t' && r != '\r' && (r < ' ' || r >= 0x7f && r < 0xa0)
}

// osc52 is what has a terminal fill its clipboard. tmux takes it for its own, and passes it
// on by either of two of its settings.
func osc52(text string, getenv func(string) string) string {
	out := ansi.SetSystemClipboard(text)
	if getenv("TMUX") != "" {
		return out + ansi.TmuxPassthrough(out)
	}
	return out
}

// inTmux says whether the terminal is one of tmux, maybe on the other side of ssh.
func inTmux(getenv func(string) string) bool {
	term := getenv("TERM")
	return getenv("TMUX") != "" || strings.HasPrefix(term, "tmux") || strings.HasPrefix(term, "screen") && getenv("STY") == ""
}

// afterCopy says what was copied, and whether that is sure.
func (m *Model) afterCopy(c copied) tea.Cmd {
	what := paint.Clean(c.what)
	sent := "sent to your terminal, which may not let programs copy: " + what
	if inTmux(m.opt.Getenv) {
		sent = "sent to tmux, which needs set -s set-clipboard on: " + what
	}
	switch {
	case m.ctx.Err() != nil:
		return nil
	case c.err != nil && c.terminal:
		return m.tell(themes.Warn, sent+"; "+paint.Clean(c.err.Error()))
	case c.err != nil:
		return m.tell(themes.Warn, "not copied: "+paint.Clean(c.err.Error()))
	case c.by == "":
		return m.tell(themes.Info, sent)
	case c.by == "tmux":
		return m.tell(themes.OK, "✓ copied to tmux: "+what+" (and to your clipboard, if the terminal takes it)")
	}
	return m.tell(themes.OK, "✓ copied "+what)
}
