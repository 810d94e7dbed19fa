package ui

import (
	"context"
	"iter"
	"slices"

	"stepbox/session/api"
)

// blamed is a file of two lines, of which an action wrote one.
func blamed() api.Blame {
	return api.Blame{
		Session: "live", Path: "src/parse.go",
		Lines: []api.BlameLine{{Text: "package src"}, {Text: "\tfunc parse() {}", By: 1}},
		By:    []api.Author{{}, {Session: "live", Action: 1, Title: "go generate ./...", Said: "I'll generate the parser"}},
	}
}

func (c *fakeClient) Blame(_ context.Context, _, key string, at api.Moment) (api.Blame, error) {
	defer c.lock()()
	c.calls = append(c.calls, "blame "+key+" "+string(at))
	return blamed(), nil
}

// FirstChange is by action 10.
func (c *fakeClient) FirstChange(ctx context.Context, id, key string) (api.At, error) {
	c.called("first change of " + key)
	_, events, err := c.recorded(id)
	i := slices.IndexFunc(events, func(e api.Event) bool { return e.Action != nil && e.Action.N == 10 })
	if err != nil || i < 0 {
		return api.At{}, err
	}
	return c.At(ctx, id, api.MomentOf(events[i].Seq))
}

func (c *fakeClient) Bisect(_ context.Context, _ string, r api.BisectRequest) iter.Seq2[api.BisectProgress, error] {
	return func(yield func(api.BisectProgress, error) bool) {
		steps := []api.BisectStep{{Actions: []int{10}, Title: "go generate ./...", From: "10^", To: "10"}}
		for _, p := range []api.BisectProgress{
			{Steps: steps}, {Run: &api.BisectRun{Result: "passes"}}, {Run: &api.BisectRun{State: 1, Result: "fails"}},
			{Done: &api.Bisected{Steps: steps, All: 1, Runs: 2}},
		} {
			if !yield(p, nil) {
				return
			}
		}
	}
}
