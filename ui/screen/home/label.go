package home

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// What is taken of a name, tags and a note, in bytes.
const (
	maxName = api.NameMost * utf8.UTFMax
	maxTags = api.TagsMost * (maxName + 1)
	maxNote = api.NoteMost * utf8.UTFMax
)

// entry is the dialog in which something is said of a session.
func entry(i intent.Intent, x api.Session) dialog.Dialog {
	is := func(l api.Label) intent.Intent { return intent.Label{Session: x.ID, Is: l} }
	e, of := dialog.Entry{Yes: "keep it"}, paint.Clean(name(x))
	switch i.(type) {
	case intent.Rename:
		e.Title, e.Empty = "Rename "+of, "its first name"
		e.About = "Letters, digits, dots, dashes and underscores. With nothing it has the name again that it was started with."
		e.Do = func(text string) intent.Intent { text = strings.TrimSpace(text); return is(api.Label{Name: &text}) }
		return e.Begin(x.Name, maxName)
	case intent.Tag:
		e.Title, e.Empty, e.About = "Tags of "+of, "no tags", "Words, with blanks between them. The search takes tag:WORD."
		e.Do = func(text string) intent.Intent { tags := strings.Fields(text); return is(api.Label{Tags: &tags}) }
		return e.Begin(strings.Join(x.Tags, " "), maxTags)
	}
	e.Title, e.Empty, e.About = "Note on "+of, "nothing", "For yourself: it is no part of what is recorded."
	e.Do = func(text string) intent.Intent { text = strings.TrimSpace(text); return is(api.Label{Note: &text}) }
	return e.Begin(x.Note, maxNote)
}

// label changes what is said of a session. One that goes into the trash leaves the list at once, so
// that the next key is for what is seen then; what was read of the list before is old. The dialog
// that it was said in, if there is one, closes once that is kept, and else says why it isn't.
func (s *Screen) label(id string, l api.Label, in dialog.Dialog) tea.Cmd {
	s.labels++
	s.search.stamp++
	if i := slices.IndexFunc(s.past.found, func(f api.Found) bool { return f.Session.ID == id }); i >= 0 && l.Trashed != nil && *l.Trashed {
		s.past.found = slices.Delete(s.past.found, i, i+1)
		s.past.total--
		s.choose(s.at)
	}
	return s.ask(s.ctx, func(ctx context.Context) then {
		x, err := s.cfg.Client.Label(ctx, id, l)
		return func() tea.Cmd {
			s.labels--
			open := in != nil && s.dialogs.Has(in)
			switch {
			case err != nil && open:
				in.Fail(paint.Failed(err))
			case err != nil:
				s.Notice = "can't do that: " + paint.Failed(err)
			case open:
				s.dialogs.Close(in)
			case l.Trashed != nil:
				s.trashed = slices.DeleteFunc(s.trashed, func(x api.Session) bool { return x.ID == id })
				s.Notice = "it is back"
				if *l.Trashed {
					s.trashed = append(s.trashed, x)
					s.Notice = fmt.Sprintf("%s is in the trash until you leave Stepbox; %s brings it back", paint.Clean(name(x)), keys.First(intent.Restore{}, keys.Home))
				}
			}
			return s.Refresh()
		}
	})
}

// trash takes a session off the list, from where it is removed when the program is left.
// One that a rule of retention would keep is asked for first.
func (s *Screen) trash(x api.Session) tea.Cmd {
	on := true
	l := api.Label{Trashed: &on}
	return s.ask(s.ctx, func(ctx context.Context) then {
		x, err := s.cfg.Client.Session(ctx, x.ID) // a list doesn't have all
		return func() tea.Cmd {
			switch {
			case err != nil:
				s.Notice = "can't do that: " + paint.Failed(err)
				return nil
			case x.Pinned || x.Only() != "":
				s.dialogs.Open(dialog.ConfirmTrash(x, intent.Label{Session: x.ID, Is: l}))
				return nil
			}
			return s.inbox.desk.Known(func(held bool) tea.Cmd {
				if held {
					s.Notice = state.HeldDown
					return nil
				}
				return s.label(x.ID, l, nil)
			})
		}
	})
}

// restore brings back the selected session, if it is in the trash, or the one that
// was put there last.
func (s *Screen) restore() tea.Cmd {
	s.chosen = s.discarded()
	off := false
	return s.label(s.chosen, api.Label{Trashed: &off}, nil)
}

// discarded is the session that would be brought back, or "".
func (s *Screen) discarded() string {
	if f, ok := s.current(); ok && !f.Session.Trashed.IsZero() {
		return f.Session.ID
	} else if n := len(s.trashed); n > 0 {
		return s.trashed[n-1].ID
	}
	return ""
}

// Empty removes what was put into the trash since the screen was made, unless it was
// brought back by someone else. What can't be removed stays there, and is in the error,
// as is what became worth keeping since.
func (s *Screen) Empty(ctx context.Context) error {
	var failed []error
	for _, was := range s.trashed {
		id := was.ID
		x, err := s.cfg.Client.Session(ctx, id)
		switch {
		case err != nil:
		case x.Resumed != was.Resumed:
			err = errors.New("it was resumed since, which took it out of the trash")
		case x.Trashed.IsZero():
		case x.Pinned && !was.Pinned:
			err = errors.New("it was pinned since")
		case worked(x, was):
			err = errors.New("something was done with it since it was put into the trash")
		default:
			err = s.cfg.Client.Remove(ctx, id)
		}
		if api.CodeOf(err) == api.CodeNotFound {
			err = nil // someone else did
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("cannot remove session %s: %s; stepbox rm %s removes it", id, paint.Failed(err), id))
		}
	}
	s.trashed = nil
	return errors.Join(failed...)
}

// worked says whether something happened in a session, but for what a person says of it, and
// for what is looked up of their git.
func worked(x, was api.Session) bool {
	x.Name, x.Tags, x.Note, x.Pinned, x.Trashed = was.Name, was.Tags, was.Note, was.Pinned, was.Trashed
	x.Git, x.Unfetched, x.Undone = was.Git, was.Unfetched, was.Undone
	return !reflect.DeepEqual(x, was)
}
