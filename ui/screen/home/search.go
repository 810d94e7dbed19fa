package home

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// search is which sessions are listed, and in which order: a line of words, among
// which state:failed, agent:claude and tag:NAME choose, the folder, and the order.
type search struct {
	line  dialog.Line
	open  bool // the keys go to the line
	here  bool // of this folder only
	sort  int  // in orders
	stamp int  // counts what was asked for: answers to what was asked before are dropped
}

// maxSearch bounds the line, in bytes.
const maxSearch = 500

// orders are the orders of the list, and what they are called.
var orders = [...]struct {
	sort  api.Sort
	words string
}{{api.SortNewest, "newest"}, {api.SortLongest, "longest"}, {api.SortChanges, "most changes"}, {api.SortName, "by name"}}

// states are those that can be asked for.
var states = [...]string{"live", "past", "ended", "interrupted", "failed", "unapplied", "pinned", "trashed"}

// hint says what the line takes.
const hint = "words in names, commands, paths, hosts or terminals · state:failed · agent:claude · tag:NAME"

// query is what is asked for, or why it can't be.
func (q *search) query(here string) (out api.Query, problem string) {
	out.Sort = orders[q.sort].sort
	if q.here {
		out.Folder = here
	}
	var text []string
	for _, w := range strings.Fields(q.line.Value()) {
		key, value, ok := strings.Cut(w, ":")
		switch {
		case ok && key == "state":
			if !slices.Contains(states[:], value) {
				return out, fmt.Sprintf("%q is no state: use %s", paint.Clean(value), strings.Join(states[:], ", "))
			}
			out.State = value
		case ok && key == "agent":
			out.Agent = value
		case ok && key == "tag":
			out.Tags = append(out.Tags, value)
		default:
			text = append(text, w)
		}
	}
	out.Text = strings.Join(text, " ")
	return out, ""
}

// words are what was typed.
func (q *search) words() string { return strings.TrimSpace(q.line.Value()) }

// narrowed says whether not all sessions are asked for.
func (q *search) narrowed() bool { return q.here || q.words() != "" }

// typed edits the line; the list is asked for once typing pauses.
func (s *Screen) typed(edit func()) tea.Cmd {
	before := s.search.line.Value()
	edit()
	if s.search.line.Value() == before {
		return nil
	}
	s.search.stamp++
	stamp := s.search.stamp
	return s.later(func() tea.Cmd {
		if stamp != s.search.stamp || s.past.line == s.search.words() {
			return nil // typing went on, or the list was read meanwhile
		}
		return s.anew()
	})
}

// anew asks for another list, from its beginning.
func (s *Screen) anew() tea.Cmd {
	s.search.stamp++
	s.at, s.top, s.place, s.chosen = 0, 0, 0, ""
	return s.Refresh()
}

// find changes which sessions are listed.
func (s *Screen) find(i intent.Intent) tea.Cmd {
	q := &s.search
	switch i.(type) {
	case intent.Search:
		q.open = true
		return nil
	case intent.Yes:
		q.open = false
		return nil
	case intent.Order:
		q.sort = (q.sort + 1) % len(orders)
	case intent.Here:
		if s.cfg.Here == "" {
			s.Notice = "this folder has no name"
			return nil
		}
		q.here = !q.here
	case intent.Back:
		narrowed, was := q.narrowed(), q.open
		q.line, q.open, q.here = dialog.NewLine(maxSearch), false, false
		if !narrowed {
			if !was {
				s.Notice = "nothing is open here: " + keys.First(intent.Quit{}, keys.Home) + " leaves Stepbox"
			}
			return nil
		}
	}
	return s.anew()
}

// hits are the places of a session that have what was searched.
func (s *Screen) hits(f api.Found) []api.Hit {
	if s.shown.id == f.Session.ID && s.shown.stamp == s.search.stamp && len(s.shown.hits) > 0 {
		return s.shown.hits
	}
	return f.Hits
}

// hit is the selected place of the selected session.
func (s *Screen) hit(f api.Found) (api.Hit, bool) {
	all := s.hits(f)
	if len(all) == 0 {
		return api.Hit{}, false
	}
	return all[min(s.place, len(all)-1)], true
}

// match goes to the next or previous place that has what was searched: of the selected
// session, else of the one after or before it.
func (s *Screen) match(by int) {
	f, _ := s.current()
	if n := s.place + by; n >= 0 && n < len(s.hits(f)) {
		s.place = n
		return
	}
	at := s.at
	if s.choose(s.at + by); by < 0 && s.at != at {
		f, _ = s.current()
		s.place = max(0, len(s.hits(f))-1)
	}
}
