package ui

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"stepbox/session/api"
)

// found says whether a fake's session is asked for.
func found(s api.Session, q api.Query) bool {
	state := true
	switch q.State {
	case "":
	case "live":
		state = s.Live()
	case "past":
		state = !s.Live()
	case "failed":
		state = s.Exit != nil && (s.Exit.Code != 0 || s.Exit.Signal != "")
	case "pinned":
		state = s.Pinned
	case "trashed":
	default:
		state = string(s.State) == q.State
	}
	for _, t := range q.Tags {
		state = state && slices.Contains(s.Tags, t)
	}
	for w := range strings.FieldsSeq(q.Text) {
		state = state && q.Session != "" || state && strings.Contains(s.Name+" "+s.Command+" "+s.LastAction+" "+s.Note, w)
	}
	return state && s.Trashed.IsZero() == (q.State != "trashed") &&
		(q.Agent == "" || s.Agent == q.Agent) && (q.Folder == "" || s.Folder == q.Folder) &&
		(q.Session == "" || s.ID == q.Session) && (q.Parent == "" || s.Parent != nil && s.Parent.ID == q.Parent)
}

// Find answers as the record would.
func (c *fakeClient) Find(_ context.Context, q api.Query) (api.FoundPage, error) {
	defer c.lock()()
	c.queries = append(c.queries, q)
	c.calls = append(c.calls, "find "+q.Text)
	var out api.FoundPage
	for _, s := range c.list {
		if !found(s, q) {
			continue
		}
		f := api.Found{Session: s}
		if q.Text != "" {
			hits := slices.DeleteFunc(slices.Clone(c.record.found), func(h api.Hit) bool { return !strings.Contains(h.Text, q.Text) })
			f.Hits = hits[:min(len(hits), q.Hits)]
			f.More = q.Hits < len(hits)
		}
		out.Found = append(out.Found, f)
	}
	by := map[api.Sort]func(a, b api.Found) int{
		api.SortName:    func(a, b api.Found) int { return cmp.Compare(a.Session.Name, b.Session.Name) },
		api.SortChanges: func(a, b api.Found) int { return b.Session.Changed - a.Session.Changed },
	}[q.Sort]
	if by != nil {
		slices.SortStableFunc(out.Found, by)
	}
	if out.Behind = c.record.behind; q.Text != "" && out.Behind > 0 {
		c.record.behind--
		out.Found = nil
	}
	out.Total, out.Notes = len(out.Found), c.record.notes
	out.Found = out.Found[min(q.Skip, out.Total):]
	if q.Limit > 0 {
		out.Found = out.Found[:min(q.Limit, len(out.Found))]
	}
	return out, nil
}

// Queries are what was asked for.
func (c *fakeClient) Queries() []api.Query {
	defer c.lock()()
	return append([]api.Query(nil), c.queries...)
}

func (c *fakeClient) Label(_ context.Context, id string, l api.Label) (api.Session, error) {
	if _, err := c.find(id); err != nil {
		return api.Session{}, err
	}
	if l.Name != nil && *l.Name != "" && !api.ValidName(*l.Name) {
		return api.Session{}, api.Problemf(api.CodeUsage, "a name has %s", api.NameForm)
	}
	defer c.lock()()
	i := slices.IndexFunc(c.list, func(s api.Session) bool { return s.ID == id })
	s := &c.list[i]
	if l.Name != nil {
		s.Name = *l.Name
	}
	if l.Tags != nil {
		s.Tags = *l.Tags
	}
	if l.Note != nil {
		s.Note = *l.Note
	}
	if l.Pinned != nil {
		s.Pinned = *l.Pinned
	}
	if l.Trashed != nil {
		s.Trashed = time.Time{}
		if *l.Trashed {
			s.Trashed = sceneNow
		}
	}
	return *s, nil
}

func (c *fakeClient) Remove(_ context.Context, id string) error {
	_, err := c.find(id)
	defer c.lock()()
	c.list = slices.DeleteFunc(c.list, func(s api.Session) bool { return s.ID == id })
	return err
}

// Newest tells the newest actions of every session alike.
func (c *fakeClient) Newest(_ context.Context, id string, last int) iter.Seq2[api.Event, error] {
	_, err := c.find(id)
	defer c.lock()()
	var events []api.Event
	for _, e := range c.events {
		if e.Action != nil {
			events = append(events, e)
		}
	}
	events = events[max(0, len(events)-last):]
	return func(yield func(api.Event, error) bool) {
		if err != nil {
			yield(api.Event{}, err)
			return
		}
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// PutOf adds events to another session's stream than the first one's.
func (c *fakeClient) PutOf(id string, events ...api.Event) {
	defer c.lock()()
	if c.of == nil {
		c.of = map[string][]api.Event{}
	}
	for _, e := range events {
		if e.Usage == nil {
			e.Seq = uint64(len(c.of[id]) + 1)
		}
		c.of[id] = append(c.of[id], e)
	}
	c.wake()
}

// Glance tells what Events does of the first session, but for what is about files and
// connections, and of another what is its own.
func (c *fakeClient) Glance(ctx context.Context, id string, from uint64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		at := 0
		for {
			c.mu.Lock()
			events, more := c.of[id], c.more
			if len(c.list) > 0 && c.list[0].ID == id {
				events = c.events
			}
			c.mu.Unlock()
			for ; at < len(events); at++ {
				e := events[at]
				if e.Seq != 0 && e.Seq < from || e.Attempt != nil || e.Changes != nil {
					continue
				}
				if !yield(e, nil) {
					return
				}
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	}
}
