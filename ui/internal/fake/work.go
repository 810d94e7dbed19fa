package fake

import (
	"fmt"
	"slices"
	"strings"

	"stepbox/session/api"
)

// conflicts are one that merges, and one that clashes in a place.
func conflicts() []api.Conflict {
	_, d := Changes()
	return []api.Conflict{
		{Key: "k1", Path: "src/parse.go", Why: "the project's file has changed since the session first saw it", Clean: true, Merged: d.Hunks[1:]},
		{Key: "k3", Path: "notes.txt", Why: "both have changed it", Clashes: []api.Clash{{
			Line: 4, Base: []string{"call Ada"}, There: []string{"call Ada on Monday"}, Wanted: []string{"call Ada and Grace"},
		}}},
	}
}

// hash names a plan by all that was chosen for it.
func hash(files int, version int, of ...any) string {
	return strings.ReplaceAll(fmt.Sprint(version, files, of), " ", "_")
}

// Back is the plan of a roll back of a selection, or of bringing one again.
func Back(r api.RollbackRequest, version int) api.RollbackPlan {
	ch, _ := Changes()
	p := api.RollbackPlan{RollbackTarget: r.RollbackTarget, Files: ch.Files[:2], Restores: 1, Removes: 1, Actions: []int{10}}
	if r.Selection != nil {
		p.Actions = r.Selection.Actions
	}
	if len(p.Actions) > 0 && p.Actions[0] == 11 {
		for _, c := range conflicts() { // resolved ones are conflicts no more
			if !slices.ContainsFunc(r.Resolve, func(x api.Resolution) bool { return x.Key == c.Key }) {
				p.Conflicts = append(p.Conflicts, c)
			}
		}
	}
	p.Hash = hash(len(p.Files), version, "back", r.Redo, p.Actions, r.Resolve)
	return p
}

// Plan is the plan of an apply.
func Plan(r api.ApplyRequest, version int) api.ApplyPlan {
	ch, _ := Changes()
	p := api.ApplyPlan{
		Checkpoint: 14, Written: 3, Deleted: 1, Retyped: 1, Dangerous: 2, Unreviewed: ch.Files[1:2], Conflicts: conflicts(),
		Left:   []api.Trouble{{Path: ".git/config", Why: "below .git nothing is applied; its commits are fetched"}},
		Checks: r.Checks,
		Commits: []api.Commit{
			{Hash: "1f0c3ab97d2e", Ref: "refs/heads/main", Subject: "parse: refuse an empty input", Author: "claude", At: at(700)},
			{Hash: "9be2210c4a55", Ref: "refs/heads/main", Subject: "parse: take the limit from the module", Author: "claude", At: at(710)},
		},
	}
	for _, c := range ch.Files {
		p.Files = append(p.Files, api.ApplyFile{Change: c})
	}
	p.Files[4].Dangers = []string{"a link that leads out of the project: ../tools/run"}
	p.Files = append(p.Files, api.ApplyFile{
		Change:  api.Change{Path: ".husky/pre-commit", Key: "k6", Status: "A", Kind: "file", Added: 3, Counted: true, Words: "executable"},
		Dangers: []string{"git runs it by itself at each commit", "executable"},
	})
	p.Written++
	if r.Checks == nil && !r.NoChecks {
		p.Checks = []string{"go vet ./..."}
	}
	if !r.Looked {
		p.Blocked = "1 change belongs to no reviewed action: look at it, then press v"
	}
	p.Hash = hash(len(p.Files), version, "apply", r.Selection, r.Resolve, p.Checks, r.Looked, r.Commits)
	return p
}

// Applied is what becomes of a plan.
func Applied() api.Apply {
	return api.Apply{
		ID: 1, At: Now, Checkpoint: 14, Files: 6, Paths: []string{".husky/pre-commit", "src/parse.go", "src/parse_test.go"}, State: api.ApplyDone,
		Checks:  []api.CheckResult{{Command: "go vet ./...", Exit: &api.Exit{}, Duration: 3100000000}},
		Fetched: Plan(api.ApplyRequest{}, 1).Commits, Ref: "refs/stepbox/k3v7qpxa/", By: "tui",
	}
}
