package home

import (
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
)

// why says why an intent does nothing here now, or "".
func (s *Screen) why(i intent.Intent) string {
	switch i.(type) {
	case intent.Quit, intent.Themes, intent.Help, intent.Palette, intent.Preview, intent.Search, intent.Yes, intent.Back, intent.Order, intent.Here:
	case intent.GoTo:
		return "open a session first: actions are in it"
	case intent.FirstHeld:
		if len(s.inbox.entries) == 0 {
			return "nothing is held"
		}
	case intent.New:
		if !s.cfg.CanStart {
			return "stepbox run starts a session"
		}
	case intent.Demo:
		if !s.cfg.CanDemo {
			return "stepbox demo starts it"
		}
	case intent.Restore:
		switch {
		case s.labels > 0: // what is just being put there isn't among those yet
			return "the last key is still being carried out: again in a moment"
		case s.discarded() == "":
			return "nothing was put into the trash; the search lists what was before with state:trashed"
		}
	default:
		return s.whySelected(i)
	}
	return ""
}

// whySelected says that of what is about the selected session.
func (s *Screen) whySelected(i intent.Intent) string {
	f, ok := s.current()
	_, open := i.(intent.Open)
	switch early := s.past.line != s.search.words(); {
	case open && early: // it waits for the list
		return ""
	case !ok:
		return "no session is selected"
	case early:
		return tooEarly
	}
	x := f.Session
	switch i.(type) {
	case intent.Apply, intent.Replay, intent.Trash:
		_, trash := i.(intent.Trash)
		switch {
		case trash && x.Live():
			return "it lives: " + keys.First(intent.KillSandbox{}, keys.Home) + " ends it"
		case !x.Trashed.IsZero():
			return "it is in the trash: u brings it back"
		}
	case intent.Resume:
		switch {
		case !s.cfg.CanResume:
			return "stepbox resume goes on with a session"
		case x.Live():
			return "it lives: enter attaches to it"
		}
	case intent.Fork:
		switch {
		case !s.cfg.CanFork:
			return "stepbox fork starts a session on the files of another"
		}
	case intent.Export:
		if s.cfg.Export == nil {
			return "stepbox export writes a patch"
		}
	case intent.KillSandbox:
		switch {
		case s.cfg.Watching:
			return dialog.WatchingOnly
		case !x.Live():
			return "it has ended"
		}
	}
	return ""
}
