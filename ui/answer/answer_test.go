package answer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/api"
	"stepbox/ui/intent"
	"stepbox/ui/link"
	"stepbox/ui/state"
)

// sessions are two over one folder that ask for the same: a twice, b once.
type sessions struct {
	link.Client
	of    map[string]*state.State
	sent  []string
	fails string // the one that can't be answered
}

func (s *sessions) Decide(_ context.Context, id string, d api.Decision) (api.Question, error) {
	name := fmt.Sprintf("%s#%d", id, d.Question)
	if name == s.fails {
		return api.Question{}, errors.New("no")
	}
	s.sent = append(s.sent, fmt.Sprintf("%s with %d", name, d.With))
	return api.Question{ID: d.Question, Closed: string(d.Answer)}, nil
}

func desk(t *testing.T) (*Desk, *sessions, *[]string, *time.Time) {
	t.Helper()
	s := &sessions{of: map[string]*state.State{"a": {}, "b": {}}}
	for _, r := range []Ref{{"a", 1}, {"a", 2}, {"b", 7}} {
		s.of[r.Session].Apply(api.Event{Question: &api.Question{ID: r.ID, Action: int(r.ID), Subject: api.SubjectCommand, Title: "make", Hash: "h", Same: "make", Command: &api.Command{Line: "make"}}})
	}
	var refused []string
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &Desk{Screen: Screen{
		Client: s, Now: func() time.Time { return now },
		State:   func(id string) *state.State { return s.of[id] },
		Over:    func(string) bool { return false },
		Refused: func(_ Ref, words string) { refused = append(refused, words) },
		Do: func(_ string, f func(context.Context) func() tea.Cmd) tea.Cmd {
			return func() tea.Msg { return f(t.Context()) }
		},
		After: func(_ time.Duration, f func() tea.Cmd) tea.Cmd { return func() tea.Msg { return f } },
	}}, s, &refused, &now
}

// run carries out a command, and what follows from it.
func run(c tea.Cmd) {
	for c != nil {
		then, _ := c().(func() tea.Cmd)
		c = then()
	}
}

func TestAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		decide intent.Decide
		fails  string
		sent   []string
		taken  Taken
	}{
		{"one", intent.Decide{}, "", []string{"a#1 with 0", "b#7 with 0"}, Taken{Equal: 1}},
		{"equal ones", intent.Decide{Equal: true}, "", []string{"a#1 with 0", "b#7 with 0", "a#2 with 1"}, Taken{Equal: 2}},
		{"a rule answers them itself", intent.Decide{Equal: true, For: api.ExtentSession}, "", []string{"a#1 with 0", "b#7 with 0"}, Taken{Equal: 1}},
		{"one of them fails", intent.Decide{Equal: true}, "b#7", []string{"a#1 with 0", "a#2 with 1"}, Taken{Equal: 1, Held: 1}},
		{"none without the one that was shown", intent.Decide{Equal: true}, "a#1", nil, Taken{Err: errors.New("no")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, s, _, _ := desk(t)
			s.fails = c.fails
			c.decide.Question, c.decide.Hash, c.decide.Answer = 1, "h", api.AnswerApprove
			var got Taken
			cmd := d.Answer("a", c.decide, []Ref{{"b", 7}}, func(t Taken) tea.Cmd { got = t; return nil })
			if !d.Pending(Ref{"a", 1}) || d.Answer("a", c.decide, nil, nil) != nil {
				t.Error("it can be answered again while the answer is on its way")
			}
			run(cmd)
			if !slices.Equal(s.sent, c.sent) || (got.Err == nil) != (c.taken.Err == nil) || got.Err == nil && got.Equal != c.taken.Equal || c.taken.Err == nil && got.Held != c.taken.Held {
				t.Errorf("%q were sent: %+v", s.sent, got)
			}
			if _, open := s.of["a"].Question(1); open == (got.Err == nil) || d.Pending(Ref{"a", 1}) {
				t.Error("it is held still, or on its way")
			}
		})
	}
}

// What isn't held as it was shown isn't answered, also if that changes while it is awaited
// whether the key was held down.
func TestRefused(t *testing.T) {
	shown := intent.Decide{Question: 1, Hash: "h", Answer: api.AnswerApprove}
	for _, c := range []struct {
		name   string
		decide intent.Decide
		while  func(*Desk, *sessions, *time.Time)
		want   string
	}{
		{"gone", intent.Decide{Question: 5, Hash: "h"}, nil, "not answered: it is no longer held"},
		{"another", intent.Decide{Question: 1, Hash: "x"}, nil, changed},
		{"held down", shown, func(d *Desk, _ *sessions, now *time.Time) {
			*now = now.Add(state.Repeat / 2)
			d.Presses.Key("a", *now)
		}, state.HeldDown},
		{"changed", shown, func(_ *Desk, s *sessions, _ *time.Time) {
			q, _ := s.of["a"].Question(1)
			q.Rule = "another"
			s.of["a"].Apply(api.Event{Question: &q})
		}, changed},
		{"its session left", shown, func(_ *Desk, s *sessions, _ *time.Time) { delete(s.of, "a") }, changed},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, s, refused, now := desk(t)
			d.Presses.Key("a", *now)
			*now = now.Add(time.Second / 2)
			d.Presses.Key("a", *now)
			cmd := d.Answer("a", c.decide, nil, func(Taken) tea.Cmd { t.Error("it was taken"); return nil })
			if c.while != nil {
				c.while(d, s, now)
			}
			run(cmd)
			if len(s.sent) > 0 || !slices.Equal(*refused, []string{c.want}) || d.Pending(Ref{"a", 1}) {
				t.Errorf("%q were sent, and it is said %q", s.sent, *refused)
			}
		})
	}
}
