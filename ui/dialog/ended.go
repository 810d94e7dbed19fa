package dialog

import (
	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// Ended sums up a session that ended while it was looked at, and offers what can
// be done with its work.
type Ended struct {
	sheet
	session api.Session
	why     func(intent.Intent) string
}

// NewEnded opens the summary; why says why something that it offers can't be done.
func NewEnded(s api.Session, why func(intent.Intent) string) *Ended {
	return &Ended{sheet: sheet{low: true}, session: s, why: why}
}

func (e *Ended) Scope() keys.Scope { return keys.Ended }

// Target is the summary as a whole: keys that were typed to the agent, which has
// just gone, choose nothing here.
func (e *Ended) Target() state.Target { return state.Target{Hash: e.session.ID, Place: "ended"} }

func (e *Ended) Care(i intent.Intent) state.Care {
	if _, back := i.(intent.Back); back {
		return state.AtOnce
	}
	return state.Quiet
}

func (e *Ended) Why(i intent.Intent) string { return e.why(i) }

func (e *Ended) Handle(i intent.Intent) intent.Intent {
	switch i.(type) {
	case intent.Back:
		return i
	case intent.Focus, intent.Apply, intent.Export, intent.Resume, intent.Play, intent.Fork:
		return intent.Run{Intent: i}
	}
	return nil
}

func (e *Ended) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	s, b := e.session, e.begin(f, area, 84)
	words := "Nothing that it changed is missing in your project."
	if s.Unapplied > 0 {
		words = paint.Count(s.Unapplied, "changed file isn't", "changed files aren't") + " in your project yet; the record has it all."
	}
	b.say(words, themes.Strong)
	if traps := s.HomeLeft.Traps(); traps != "" {
		b.say(paint.Clean(traps)+"; stepbox diff --home "+paint.Clean(s.ID)+" lists all.", themes.Warn)
	}
	if s.Unreviewed > 0 {
		b.say(paint.Count(s.Unreviewed, "action was", "actions were")+" neither kept nor rolled back.", themes.Warn)
	}
	if s.Reason != "" {
		b.say(s.Reason, themes.SurfaceMuted)
	}
	var hints []paint.Hint
	for _, b := range keys.In(keys.Ended) {
		if b.Short != "" && e.why(b.Intent) == "" {
			hints = append(hints, paint.Hint{Key: b.First(), Words: b.Short, Off: f.Wait > 0 && e.Care(b.Intent) == state.Quiet})
		}
	}
	title := titled("Session " + paint.Clean(s.Name) + " ended")
	if s.Exit != nil {
		title[0].s += ": " + s.Exit.Words()
	}
	e.draw(b, area, f, title, hints, waiting(f))
	return nil
}
