package workbench

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// take is a menu's entry that copies a text.
func take(name, what, text string) keys.Binding {
	return keys.Command(name, text, intent.Copy{Text: text, What: what})
}

// takes are what can be copied of what keys are about: of a question that is open, else of
// what is selected in the focused pane; in the Terminal, of the selected action.
func (s *Screen) takes(t state.Target) (out []keys.Binding) {
	if q, ok := s.st.Question(t.Question); ok && t.Hash != "" {
		switch {
		case q.Connection != nil:
			return takesOfHost(q.Connection.Host, q.Connection.Port)
		case q.Command != nil:
			return []keys.Binding{take("copy command", "the command", unbroken(q.Command.Title()))}
		}
	}
	diff := copyDiffCommand()
	switch s.view.focus {
	case intent.Changes:
		if path := s.changes.pane.Path(); path != "" {
			out = append(out, take("copy path", "the path", path))
		}
		if _, ok := s.changes.pane.Patch(); ok {
			out = append(out, diff)
		}
	case intent.Network:
		if f, ok := s.reach.pane.Selected(); ok && f.Question == nil {
			return takesOfHost(f.Last.Host(), f.Last.Port)
		}
	default:
		a, ok := s.st.Action(s.asking.list.Selected())
		if ok && a.Kind != api.KindEdit {
			out = append(out, take("copy command", "the command", unbroken(a.Title)))
		}
		if ok && a.Files > 0 {
			out = append(out, diff)
		}
	}
	return out
}

func copyDiffCommand() keys.Binding {
	return keys.Command("copy diff", "as git apply takes it", intent.CopyDiff{})
}

func takesOfHost(host string, port int) []keys.Binding {
	if host == "" {
		return nil
	}
	out := []keys.Binding{take("copy host", "the host", host)}
	if port != 0 {
		out = append(out, take("copy host and port", "the host and port", net.JoinHostPort(host, strconv.Itoa(port))))
	}
	return out
}

// unbroken is a command with its line breaks as they were typed.
func unbroken(title string) string { return strings.ReplaceAll(title, api.Break, "\n") }

// takeOut copies what is selected, or asks what of it.
func (s *Screen) takeOut(i intent.Intent, t state.Target) tea.Cmd {
	if _, diff := i.(intent.CopyDiff); diff {
		return s.copyDiff()
	}
	all := s.takes(t)
	switch len(all) {
	case 0:
		s.info("nothing is selected that could be copied: drag the mouse over text to copy it")
		return nil
	case 1:
		return s.handle(all[0].Intent, t, false)
	}
	s.asking.dialogs.Open(dialog.NewMenu("Copy", all, s.Why, s.below))
	return nil
}

// mostPatch bounds a patch that is copied; a file is for larger ones.
const mostPatch = 1 << 20

var errLongPatch = errors.New("the diff is too long to copy: stepbox diff and export write it to a file")

// patch asks for the diff of what is selected.
func (s *Screen) patch() (api.PatchRequest, bool) {
	if s.view.focus == intent.Changes {
		return s.changes.pane.Patch()
	}
	acts := s.chosenActions()
	if len(acts) == 1 {
		a, _ := s.st.Action(acts[0])
		return api.PatchRequest{Scope: api.Scope{Action: a.N}}, a.Files > 0
	}
	return api.PatchRequest{Selection: api.Selection{Actions: acts}}, true
}

// copyDiff copies the diff of what is selected.
func (s *Screen) copyDiff() tea.Cmd {
	r, _ := s.patch()
	read := func(ctx context.Context, c link.Client, id string) (string, error) {
		p, err := c.Patch(ctx, id, r)
		if err != nil {
			return "", err
		}
		defer p.Close()
		text, err := io.ReadAll(io.LimitReader(p, mostPatch+1))
		if err == nil && len(text) > mostPatch {
			err = errLongPatch
		}
		return string(text), err
	}
	return s.long("copying the diff", func(ctx context.Context, c link.Client, id string) func() tea.Cmd {
		text, err := read(ctx, c, id)
		return func() tea.Cmd {
			if err != nil {
				s.warn("not copied: %s", paint.Failed(err))
				return nil
			}
			return s.cfg.Copy(text, "the diff, "+paint.Count(strings.Count(text, "\n"), "line", "lines"))
		}
	})
}

// Reading is what is to be read outside of the screens: a file as it was, or a diff.
type Reading struct {
	Key  string // the file's
	Name string
	At   api.Moment
	Line int // of the file, from 1; 0: its beginning

	Patch *api.PatchRequest // the diff; nil: it is a file
}

// outside opens what is selected in the person's own editor or pager.
func (s *Screen) outside(i intent.Intent) tea.Cmd {
	if _, diff := i.(intent.Read); diff {
		r, _ := s.patch()
		return s.cfg.Open(s.link.ID, Reading{Patch: &r})
	}
	pane := &s.changes.pane
	if pane.Gone() {
		s.info("the file was deleted: %s opens its diff", keys.First(intent.Read{}, keys.Changes))
		return nil
	}
	return s.cfg.Open(s.link.ID, Reading{Key: pane.File(), Name: pane.Path(), At: s.changes.moment(), Line: pane.Line()})
}
