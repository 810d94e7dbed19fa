package ui

import (
	"stepbox/session/api"
	"stepbox/ui/internal/cellstest"
)

var sceneNow = cellstest.Now

// scene is what an agent did in a session, and the sessions beside it.
type scene struct {
	Sessions  []api.Session  `json:"sessions"`
	Actions   []api.Action   `json:"actions"`
	Question  api.Question   `json:"question"`      // the one that is held
	Long      api.Question   `json:"long_question"` // needs scrolling and care before it can be answered
	Attempts  []api.Attempt  `json:"attempts"`
	Changes   api.Changes    `json:"changes"`
	Diff      api.FileDiff   `json:"diff"`       // of the first of them
	Execs     []api.Exec     `json:"execs"`      // of action 11
	Screen    string         `json:"screen"`     // what the agent's terminal shows
	Conflicts []api.Conflict `json:"conflicts"`  // one that merges, and one that clashes in a place
	Plan      api.ApplyPlan  `json:"apply_plan"` // of all of it
}

// newScene is one that is nobody else's.
func newScene() (s scene) {
	cellstest.Scene(&s)
	return s
}

func sceneSession() api.Session       { return newScene().Sessions[0] }
func sceneQuestion() api.Question     { return newScene().Question }
func sceneLongQuestion() api.Question { return newScene().Long }

func sceneChanges() (api.Changes, api.FileDiff) {
	s := newScene()
	return s.Changes, s.Diff
}

// sceneWorkbench is a client with the whole scene.
func sceneWorkbench(questions ...api.Question) *fakeClient {
	s := newScene()
	c := newFake(s.Sessions...)
	c.Put(api.Event{Session: &s.Sessions[0]})
	for _, a := range s.Actions {
		c.Put(api.Event{Action: &a})
	}
	for _, a := range s.Attempts {
		c.Put(api.Event{Attempt: &a})
	}
	for _, q := range questions {
		if q.Action == 14 {
			a := api.Action{N: 14, Kind: api.KindCommand, State: api.ActionHeld, Title: q.Title, Rule: q.Rule, StartedAt: q.HeldAt}
			c.Put(api.Event{Action: &a})
		}
		c.Put(api.Event{Question: &q})
	}
	c.Put(api.Event{Usage: &api.Usage{CPU: 0.38, Memory: 412 << 20, Pids: 12}})
	c.SetChanges(0, s.Changes)
	c.SetDiff(s.Diff)
	c.SetDiff(api.FileDiff{Change: s.Changes.Files[3], Note: "binary file: image/png"})
	c.execs[11] = s.Execs
	c.SetBack(func(r api.RollbackRequest) api.RollbackPlan { return sceneBack(r, 1) })
	c.SetApply(func(r api.ApplyRequest) api.ApplyPlan { return scenePlan(r, 1) })
	c.SetPlan(10, api.RollbackPlan{RollbackTarget: api.Before(10), Hash: "p10", Actions: []int{10}, Files: s.Changes.Files[:2]})
	c.SetPlan(11, api.RollbackPlan{RollbackTarget: api.Before(11), Hash: "p11", Actions: []int{11, 13}, Ends: []int{13}, Files: s.Changes.Files[:3]})
	c.SetScreen(70, 22, s.Screen)
	return c
}
