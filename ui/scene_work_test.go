package ui

import (
	"fmt"
	"slices"
	"strings"

	"stepbox/session/api"
)

// planHash names a plan by all that was chosen for it.
func planHash(files int, version int, of ...any) string {
	return strings.ReplaceAll(fmt.Sprint(version, files, of), " ", "_")
}

// sceneBack is the plan of a roll back of a selection, or of bringing one again.
func sceneBack(r api.RollbackRequest, version int) api.RollbackPlan {
	ch, _ := sceneChanges()
	p := api.RollbackPlan{RollbackTarget: r.RollbackTarget, Files: ch.Files[:2], Restores: 1, Removes: 1, Actions: []int{10}}
	if r.Selection != nil {
		p.Actions = r.Selection.Actions
	}
	if len(p.Actions) > 0 && p.Actions[0] == 11 {
		for _, c := range newScene().Conflicts { // resolved ones are conflicts no more
			if !slices.ContainsFunc(r.Resolve, func(x api.Resolution) bool { return x.Key == c.Key }) {
				p.Conflicts = append(p.Conflicts, c)
			}
		}
	}
	p.Hash = planHash(len(p.Files), version, "back", r.Redo, p.Actions, r.Resolve)
	return p
}

// scenePlan is the plan of an apply.
func scenePlan(r api.ApplyRequest, version int) api.ApplyPlan {
	p := newScene().Plan
	p.Checks, p.Blocked = r.Checks, ""
	if r.Checks == nil && !r.NoChecks {
		p.Checks = []string{"go vet ./..."}
	}
	if !r.Looked {
		p.Blocked = "1 of its changes aren't reviewed: look at them first, and say so (--looked)"
	}
	p.Hash = planHash(len(p.Files), version, "apply", r.Selection, r.Resolve, p.Checks, r.Looked, r.Commits)
	return p
}

// sceneApplied is what becomes of a plan.
func sceneApplied() api.Apply {
	return api.Apply{
		ID: 1, At: sceneNow, Checkpoint: 14, Files: 6, Paths: []string{".husky/pre-commit", "src/parse.go", "src/parse_test.go"}, State: api.ApplyDone,
		Checks:  []api.CheckResult{{Command: "go vet ./...", Exit: &api.Exit{}, Duration: 3100000000}},
		Fetched: newScene().Plan.Commits, Ref: "refs/stepbox/k3v7qpxa/", By: "tui",
	}
}
