package dialog

import (
	"slices"
	"testing"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// Where there is nothing to do only the way out is offered, but for what could change that.
func TestPlanOfNothing(t *testing.T) {
	for commits, want := range map[bool][]string{true: {"esc"}, false: {"f", "esc"}} {
		p := NewPlan(Work{Yes: "write it", Apply: &api.ApplyRequest{Commits: commits}}, nil)
		_, count, _ := p.Ask()
		none := api.ApplyPlan{Blocked: "there is nothing to be written", Left: []api.Trouble{{Path: ".git"}}}
		p.SetPlan(count, OfApply(none), "")
		var got []string
		for _, h := range p.hints(paint.Frame{}) {
			got = append(got, h.Key)
		}
		if !slices.Equal(got, want) {
			t.Errorf("with commits %v: %q, want %q", commits, got, want)
		}
	}
}

// What merging the agent's commits would take has to have been in view.
func TestDangerOfCommits(t *testing.T) {
	p := NewPlan(Work{Yes: "write it", Apply: &api.ApplyRequest{Commits: true}}, nil)
	_, count, _ := p.Ask()
	p.SetPlan(count, OfApply(api.ApplyPlan{Commits: []api.Commit{{Hash: "abc"}, {Hash: "def", Danger: "it deletes all"}}}), "")
	if i := slices.IndexFunc(p.list(), func(it item) bool { return it.id == "commit def" && it.must != "" }); i < 0 {
		t.Errorf("it doesn't have to be seen: %+v", p.list())
	}
}
