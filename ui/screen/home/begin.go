package home

import (
	"context"
	"os"
	"slices"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/dialog"
	"stepbox/ui/paint"
)

// How many projects can be chosen, and how many of a folder's names are looked at.
const (
	mostProjects = 20
	mostFolders  = 2000
)

// fresh says whether there is no session at all.
func (s *Screen) fresh() bool { return s.past.read && s.total() == 0 && !s.search.narrowed() }

// newSession opens the form for one: this folder, as the last session there was.
func (s *Screen) newSession() tea.Cmd {
	var projects []dialog.Choice
	add := func(x api.Session, words string) {
		if x.Folder != "" && len(projects) < mostProjects && !slices.ContainsFunc(projects, func(c dialog.Choice) bool { return c.Value == x.Folder }) {
			projects = append(projects, dialog.Choice{Value: x.Folder, Words: words})
		}
	}
	mode, agent := s.cfg.Mode, ""
	add(api.Session{Folder: s.cfg.Here}, "this folder")
	last := true
	for _, x := range s.listed() {
		if last && x.Folder == s.cfg.Here {
			mode, agent, last = x.Mode, x.Agent, false
		}
		add(x, paint.Ago(s.cfg.Now().Sub(x.Last())))
	}
	d := dialog.NewNewSession(s.cfg.HomeDir, projects, mode)
	d.SetAgents(s.agents, agent)
	s.dialogs.Open(d)
	return s.findAgents()
}

// findAgents finds out which agents are installed, for the next form.
func (s *Screen) findAgents() tea.Cmd {
	if s.cfg.Agents == nil {
		return nil
	}
	return s.ask(s.ctx, func(ctx context.Context) then {
		all := s.cfg.Agents(ctx)
		return func() tea.Cmd {
			s.agents = all
			return nil
		}
	})
}

// listed are the sessions that were read, live ones first.
func (s *Screen) listed() (all []api.Session) {
	for _, f := range slices.Concat(s.live, s.past.found) {
		all = append(all, f.Session)
	}
	return all
}

// listFolders has the folders listed that the form completes what is typed with.
func (s *Screen) listFolders() tea.Cmd {
	d, ok := s.dialogs.Top().(*dialog.NewSession)
	if !ok {
		return nil
	}
	dir := d.Lacks()
	if dir == "" {
		return nil
	}
	return s.ask(s.ctx, func(context.Context) then {
		names := folders(dir)
		return func() tea.Cmd {
			d.SetFolders(dir, names)
			return nil
		}
	})
}

// folders are the names of the folders in one, as many as are looked at.
func folders(dir string) (names []string) {
	f, err := os.Open(dir)
	if err != nil {
		return nil // there is nothing to complete with
	}
	defer f.Close()
	all, _ := f.ReadDir(mostFolders) // what could be read is taken
	for _, e := range all {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// Started takes what became of a session that was to be started.
func (s *Screen) Started(err error) {
	s.Starting, s.Notice = false, ""
	form, open := s.dialogs.Top().(*dialog.NewSession)
	switch {
	case err == nil && open:
		s.dialogs.Close(form)
	case err != nil && open:
		form.Fail(err.Error())
	case err != nil:
		s.Notice = "can't start: " + paint.Clean(err.Error())
	}
}
