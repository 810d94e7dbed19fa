package workbench

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/time/rate"

	"stepbox/themes"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/paint"
)

// signalling is what the agent wants told to its person beyond its screen: bells and
// notifications, which whoever shows the screen passes on, and what it copies, which is
// asked about once in a session.
type signalling struct {
	*core
	dialogs *dialog.Stack
	passed  link.Signals // bells and notifications that weren't passed on yet
	waits   string       // what it wanted to copy, and nobody has answered
	asked   dialog.Dialog
	copies  *rate.Limiter
}

// hear takes what the agent signalled. Who only watches isn't told.
func (s *signalling) hear() tea.Cmd {
	heard := s.link.Screen.Signals()
	if s.cfg.Watching || s.Over() {
		return nil
	}
	s.passed.Bell = s.passed.Bell || heard.Bell
	s.passed.Notes = append(s.passed.Notes, heard.Notes...)
	if heard.Copied == "" {
		return nil
	}
	may, known := s.cfg.Copies[s.link.ID]
	switch {
	case may:
		return s.copy(heard.Copied)
	case !known:
		if s.waits == "" {
			s.tellToo(themes.Warn, fmt.Sprintf(agentCopies+"%s to your clipboard: %s shows it", amount(heard.Copied), afterLeader(intent.FirstHeld{})))
		}
		s.waits = heard.Copied
	}
	return nil
}

// Heard takes the bells and notifications to be passed on.
func (s *Screen) Heard() link.Signals {
	out := s.signals.passed
	s.signals.passed = link.Signals{}
	return out
}

const (
	agentSays   = "the agent says: "
	agentCopies = "the agent wants to copy "
)

// Says tells what the agent says, beside what is told already, but in the place of what the
// agent said before.
func (s *Screen) Says(words string) {
	if strings.HasPrefix(s.notice.text, agentSays) {
		s.info(agentSays+"%s", words)
		return
	}
	s.tellToo(themes.Info, agentSays+words)
}

// Name is the session's.
func (s *Screen) Name() string { return name(s.present().Session) }

// ask opens the question whether the agent may copy.
func (s *signalling) ask() {
	d := dialog.ConfirmCopies(s.waits)
	s.asked = d
	if strings.HasPrefix(s.notice.text, agentCopies) {
		s.notice = notice{}
	}
	s.dialogs.Open(d)
}

// allow lets the agent copy from now on, and what was shown at once.
func (s *signalling) allow(text string) tea.Cmd {
	s.cfg.Copies[s.link.ID], s.waits = true, ""
	if text == "" {
		s.tell(themes.OK, "✓ the agent may copy to your clipboard in this session")
		return nil
	}
	return s.copy(text)
}

// left notes a no, when the question was left.
func (s *signalling) left(d dialog.Dialog) {
	if d != s.asked || s.asked == nil {
		return
	}
	s.asked, s.waits = nil, ""
	s.cfg.Copies[s.link.ID] = false
	s.info("the agent doesn't copy in this session; the palette changes that")
}

// An agent may replace what the person has copied: that is told each time, and is not to
// happen all the time.
const (
	copyEvery = time.Second
	copyBurst = 3
)

func (s *signalling) copy(text string) tea.Cmd {
	if !s.copies.AllowN(s.cfg.Now(), 1) {
		return nil
	}
	return s.cfg.Copy(text, fmt.Sprintf("%s of the agent's: %s", amount(text), paint.Clean(strings.Join(strings.Fields(text[:min(len(text), 100)]), " "))))
}

// amount is how much a text is.
func amount(text string) string {
	if n := strings.Count(strings.TrimRight(text, "\n"), "\n"); n > 0 {
		return paint.Count(n+1, "line", "lines")
	}
	return paint.Count(len([]rune(text)), "character", "characters")
}

// offers is the palette's command that changes the answer.
func (s *signalling) offers() []keys.Binding {
	if may, known := s.cfg.Copies[s.link.ID]; !s.live() || may || !known && s.waits == "" {
		return nil
	}
	return []keys.Binding{keys.Command("let the agent copy", "to your clipboard, in this session, after asking", intent.AgentCopies{})}
}
