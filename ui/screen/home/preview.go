package home

import (
	"context"
	"errors"
	"io"
	"slices"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/link"
	"stepbox/ui/paint"
)

// preview is what is known of the selected session beside its row.
type preview struct {
	id      string // whose it is; "": nobody's
	stamp   int    // of what was searched then
	mark    mark   // how far a live session was
	wanted  string // whose is being found out, or will be after a pause
	cancel  context.CancelFunc
	actions []api.Action  // the newest, oldest first
	files   []api.Change  // that aren't in the project, the first of them
	forks   []api.Session // of it, newest first
	hits    []api.Hit     // places that have what was searched
	screen  link.Emulator // its last, or nil
	problem string        // why something of it is missing
}

// mark is how far a live session is: what is known of it is old once it is further.
type mark struct {
	version uint64
	printed int64
}

func (s *Screen) mark(id string) mark {
	st := s.of[id]
	switch {
	case st == nil:
		return mark{}
	case st.Usage == nil:
		return mark{version: st.Version}
	}
	return mark{uint64(len(st.Actions)) + st.Seq, st.Usage.Printed} // numbers of use aren't news of it
}

// How much of a session is shown beside the list.
const (
	mostActions = 8
	mostFiles   = 12
	mostForks   = 5
	mostPlaces  = 200
)

// peek has what is known of the selected session found out, after a pause in which
// the person doesn't go on to another one.
func (s *Screen) peek() tea.Cmd {
	f, ok := s.current()
	id := f.Session.ID
	stamp, far := s.search.stamp, s.mark(id)
	if !ok || s.shown.wanted == id || s.shown.id == id && s.shown.stamp == stamp && s.shown.mark == far {
		return nil
	}
	if s.shown.cancel != nil {
		s.shown.cancel()
	}
	s.shown.wanted = id
	return s.later(func() tea.Cmd {
		if s.shown.wanted != id {
			return nil // the person went on
		}
		ctx, cancel := context.WithCancel(s.ctx)
		s.shown.cancel = cancel
		q, _ := s.search.query(s.cfg.Here)
		return s.ask(ctx, func(ctx context.Context) then {
			defer cancel()
			p := s.cfg.known(ctx, f.Session, q)
			return func() tea.Cmd {
				if s.shown.wanted != id {
					return nil
				}
				s.shown, s.shown.stamp, s.shown.mark = p, stamp, far
				return nil
			}
		})
	})
}

// known finds out what there is to say of a session. What can't be had is left out,
// and why is said.
func (c *Config) known(ctx context.Context, x api.Session, q api.Query) preview {
	p := preview{id: x.ID}
	failed := func(err error) {
		if err != nil && p.problem == "" {
			p.problem = paint.Failed(err)
		}
	}
	for e, err := range c.Client.Newest(ctx, x.ID, mostActions) {
		failed(err)
		if e.Action != nil && !e.Action.Housekeeping {
			p.actions = append(p.actions, *e.Action)
		}
	}
	if x.Unapplied > 0 || x.Live() {
		all, err := c.Client.Changes(ctx, x.ID, api.Scope{}, mostFiles)
		failed(err)
		p.files = slices.DeleteFunc(all.Files, func(f api.Change) bool { return f.Applied })
	}
	forks, err := c.Client.Find(ctx, api.Query{Parent: x.ID, Limit: mostForks})
	failed(err)
	for _, f := range forks.Found {
		p.forks = append(p.forks, f.Session)
	}
	if q.Text != "" {
		found, err := c.Client.Find(ctx, api.Query{Text: q.Text, Session: x.ID, Hits: mostPlaces})
		failed(err)
		if found.Behind > 0 {
			found.Found = nil // the list's are newer, as it asks again
		}
		for _, f := range found.Found {
			p.hits = append(p.hits, f.Hits...)
		}
	}
	p.screen, err = c.lastScreen(ctx, x.ID)
	failed(err)
	return p
}

// lastScreen is a session's screen as it is, or as it was at the end.
func (c *Config) lastScreen(ctx context.Context, id string) (link.Emulator, error) {
	conn, err := c.Client.Terminal(ctx, id)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer func() {
		stop()
		conn.Close()
	}()
	for {
		f, err := conn.Read()
		if errors.Is(err, io.EOF) {
			return nil, nil // it never had one
		}
		if err != nil {
			return nil, err
		}
		if f.Kind == api.FrameKeyframe && f.Cols > 0 && f.Rows > 0 {
			e := c.NewTerminal(f.Cols, f.Rows)
			_, err := e.Write(f.Data)
			return e, err
		}
	}
}
