package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"stepbox/session/api"
	"stepbox/store"
)

// label is what is stored of what a person says of a session.
type label struct {
	Name    string    `json:"name,omitempty"`
	Tags    []string  `json:"tags,omitempty"` // sorted
	Note    string    `json:"note,omitempty"` // escaped
	Pinned  bool      `json:"pinned,omitempty"`
	Trashed time.Time `json:"trashed,omitzero"`
}

// Called is what a session is called: as a person named it since, or as it was recorded.
func Called(ctx context.Context, st *store.Store, id, recorded string) string {
	doc, _ := st.LabelOf(ctx, id)
	return nameIn(doc, recorded)
}

func nameIn(doc json.RawMessage, recorded string) string {
	var l label
	if len(doc) > 0 && json.Unmarshal(doc, &l) == nil && l.Name != "" {
		recorded = l.Name
	}
	return fit(recorded)
}

// IsID says whether a name is the id of a session, which is meant by it then.
func IsID(ctx context.Context, st *store.Store, name string) bool {
	_, err := st.Doc(ctx, name, store.KindSession, 0)
	return !errors.Is(err, store.ErrNotFound)
}

// fit makes a name that nobody can have given one to be shown.
func fit(name string) string {
	if name == "" || api.ValidName(name) {
		return name
	}
	return api.Escape(api.Trim(name, api.NameMost))
}

// Labelled puts a session's label, if there is one, over what its events say, and the
// names of others that it names. A label that can't be read may have been a pin.
func (h *History) Labelled(ctx context.Context, s *api.Session, doc json.RawMessage) {
	labelled(s, func(id string) json.RawMessage {
		if id != s.ID {
			doc, _ := h.Store.LabelOf(ctx, id)
			return doc
		}
		return doc
	})
}

// labelled is Labelled, with the labels of all that it names.
func labelled(s *api.Session, of func(id string) json.RawMessage) {
	if p := s.Parent; p != nil {
		p.Name = nameIn(of(p.ID), p.Name)
	}
	for i, n := range s.Beside {
		s.Beside[i].Name = nameIn(of(n.ID), n.Name)
	}
	s.Name = fit(s.Name)
	var l label
	doc := of(s.ID)
	if len(doc) == 0 {
		return
	}
	if err := json.Unmarshal(doc, &l); err != nil {
		l = label{Pinned: true, Note: "what this session was labelled with is damaged: label it again"}
	}
	s.Name = cmp.Or(fit(l.Name), s.Name)
	for i, t := range l.Tags {
		l.Tags[i] = fit(t)
	}
	if s.Live() || s.ResumedAt.After(l.Trashed) {
		l.Trashed = time.Time{} // a resume takes it out of the trash
	}
	s.Tags, s.Note, s.Pinned, s.Trashed = l.Tags, api.Escape(l.Note), l.Pinned, l.Trashed
}

// Label changes what is said of a session, and returns it. No two live sessions get one
// name.
func (h *History) Label(ctx context.Context, id string, l api.Label) (api.Session, error) {
	s, err := h.Session(ctx, id)
	if err != nil {
		return s, err
	}
	if l.Trashed != nil && *l.Trashed && s.Live() {
		return s, api.Problemf(api.CodeBusy, "session %s is running: end it first, with stepbox kill %s", s.Name, id)
	}
	if err := h.checkLabel(ctx, s, l); err != nil {
		return s, err
	}
	err = h.Store.Label(ctx, id, func(doc json.RawMessage) (json.RawMessage, error) {
		var old label
		if len(doc) > 0 {
			if err := json.Unmarshal(doc, &old); err != nil {
				old = label{Pinned: true} // as it is shown
			}
		}
		set(&old.Name, l.Name)
		set(&old.Pinned, l.Pinned)
		if l.Note != nil {
			old.Note = api.Escape(*l.Note)
		}
		if l.Tags != nil {
			old.Tags = slices.Compact(slices.Sorted(slices.Values(*l.Tags)))
		}
		switch {
		case l.Trashed == nil:
		case !*l.Trashed:
			old.Trashed = time.Time{}
		case s.Trashed.IsZero():
			old.Trashed = time.Now().UTC()
		}
		return json.Marshal(old)
	})
	if errors.Is(err, store.ErrNotFound) { // removed meanwhile
		return s, api.NoSession(id)
	}
	if err != nil {
		return s, err
	}
	return h.Session(ctx, id)
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// checkLabel says what is wrong with a label.
func (h *History) checkLabel(ctx context.Context, s api.Session, l api.Label) error {
	bad := func(format string, args ...any) error { return api.Problemf(api.CodeUsage, format, args...) }
	if l.Note != nil && utf8.RuneCountInString(api.Escape(*l.Note)) > api.NoteMost {
		return bad("a note has at most %d characters: say it shorter", api.NoteMost)
	}
	if l.Tags != nil && len(*l.Tags) > api.TagsMost {
		return bad("a session has at most %d tags: take some away", api.TagsMost)
	}
	if l.Tags != nil {
		for _, t := range *l.Tags {
			if !api.ValidName(t) {
				return bad("a tag has %s, not %q", api.NameForm, api.Escape(api.Trim(t, 80)))
			}
		}
	}
	if l.Name == nil || *l.Name == "" {
		return nil
	}
	if fault := api.NameFault(*l.Name); fault != "" {
		return bad("%s", fault)
	}
	if *l.Name != s.ID && IsID(ctx, h.Store, *l.Name) {
		return bad("a session can't be called %q: that is another's id", *l.Name)
	}
	if !s.Live() {
		return nil
	}
	unended, err := h.Store.Unended(ctx)
	if err != nil {
		return err
	}
	for _, id := range unended {
		if id == s.ID || !h.Live(id) {
			continue
		}
		if o, err := h.Session(ctx, id); err == nil && o.Name == *l.Name { // else it is gone
			return bad("a session named %q is running (%s): use another name", o.Name, id)
		}
	}
	return nil
}
