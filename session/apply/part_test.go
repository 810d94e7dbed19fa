package apply

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"stepbox/session/api"
	"stepbox/session/ledger"
)

// parts is a session of three actions, each of which changes all that the one before did.
func parts(t *testing.T) (r *rig, whole map[string]string) {
	r = newRig(t, map[string]string{"n": "1\n2\n3\n", "run": "x\n", "link": "→a", "gone": "x\n", "old": "moved\n", "back": "1\n", "other": "1\n"})
	r.agent("n", "one\n2\n3\n")
	r.agent("made", "1\n")
	r.agent("short", "1\n")
	r.agent("run", "!x\n")
	r.agent("link", "→b")
	r.gone("gone")
	r.gone("old")
	r.agent("new", "moved\n")
	r.agent("back", "2\n")
	r.action(api.ReviewKept)
	r.agent("n", "one\ntwo\n3\n")
	r.agent("made", "1\n2\n")
	r.agent("run", "!x\ny\n")
	r.agent("link", "→c")
	r.agent("gone", "again\n")
	r.agent("new", "moved\non\n")
	r.agent("back", "1\n")
	r.agent("other", "2\n")
	r.action(api.ReviewKept)
	r.agent("n", "one\ntwo\nthree\n")
	r.gone("short")
	r.agent("run", "x\ny\n")
	r.action(api.ReviewKept)
	return r, map[string]string{"n": "one\ntwo\nthree\n", "made": "1\n2\n", "run": "x\ny\n", "link": "→c", "gone": "again\n", "new": "moved\non\n", "back": "1\n", "other": "2\n"}
}

// part is a request for what some actions changed.
func part(actions ...int) api.ApplyRequest {
	return api.ApplyRequest{Selection: api.Selection{Actions: actions}}
}

// What was applied of a session in part isn't in the way of the rest, in whatever parts
// that comes, nor once it was undone.
func TestPartThenRest(t *testing.T) {
	without := func(actions ...int) api.ApplyRequest {
		return api.ApplyRequest{Selection: api.Selection{Without: actions}}
	}
	kept := []string{"n", "made", "run", "link", "gone", "new"} // not what an action made and a later one undid
	for name, c := range map[string]struct {
		then []api.ApplyRequest
		undo int // so many of them again, and all comes at the end
	}{
		"the first, then all":                {then: []api.ApplyRequest{part(1), {}}},
		"one by one":                         {then: []api.ApplyRequest{part(1), part(2), part(3)}},
		"the first, then the others":         {then: []api.ApplyRequest{part(1), part(2, 3)}},
		"the first two, then the third":      {then: []api.ApplyRequest{part(1, 2), part(3)}},
		"without the third, then all":        {then: []api.ApplyRequest{without(3), {}}},
		"without the third, then the third":  {then: []api.ApplyRequest{without(3), part(3)}},
		"a file, then all":                   {then: []api.ApplyRequest{{Selection: api.Selection{Globs: []string{"n", "back"}}}, {}}},
		"all, and then none goes":            {then: []api.ApplyRequest{{}, {Selection: api.Selection{Actions: []int{1}, Globs: kept}}, {Selection: api.Selection{Without: []int{3}, Globs: kept}}}},
		"the first, and it is undone":        {then: []api.ApplyRequest{part(1)}, undo: 1},
		"the first and second, one undone":   {then: []api.ApplyRequest{part(1), part(2)}, undo: 1},
		"the first and all, which is undone": {then: []api.ApplyRequest{part(1), {}}, undo: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, whole := parts(t)
			var ids []int64
			apply := func(q api.ApplyRequest) {
				t.Helper()
				p := r.plan(q)
				if len(p.Conflicts) > 0 {
					t.Errorf("%+v is planned as %q", q.Selection, words(p))
				}
				if len(p.Files) > 0 {
					rec, err := r.apply(q)
					r.must(err)
					ids = append(ids, rec.ID)
				}
			}
			for _, q := range c.then {
				apply(q)
			}
			for _, id := range slices.Backward(ids[len(ids)-c.undo:]) {
				_, err := r.undo(id)
				r.must(err)
			}
			if c.undo > 0 {
				apply(api.ApplyRequest{})
			}
			r.is(whole)
		})
	}
}

// What the person made of what was applied in part is in conflict.
func TestPartIsThePersons(t *testing.T) {
	r, _ := parts(t)
	_, err := r.apply(part(1))
	r.must(err)
	r.host("n", "one\n2\nmine\n")
	r.must(os.Remove(filepath.Join(r.project, "made")))
	r.host("gone", "mine\n")
	before := r.has()
	for _, q := range []api.ApplyRequest{part(2), part(2, 3), {}} {
		for _, path := range []string{"n", "made", "gone"} {
			if p := r.plan(q); !slices.ContainsFunc(p.Conflicts, func(c api.Conflict) bool { return c.Path == path }) {
				t.Errorf("%s isn't in conflict: %+v is planned as %q", path, q.Selection, words(p))
			}
		}
	}
	_, err = r.apply(api.ApplyRequest{})
	r.must(err)
	after := r.has()
	for _, path := range []string{"n", "made", "gone"} {
		if after[path] != before[path] {
			t.Errorf("%s became %q", path, after[path])
		}
	}
}

// A change waits for review as long as something of it is of an action that nobody
// reviewed, and the plan says of which.
func TestWhyUnreviewed(t *testing.T) {
	r := newRig(t, map[string]string{"a": "1\n", "twice": "1\n", "deleted": "1\n", "beside": "1\n"})
	for _, name := range []string{"twice", "deleted", "new"} {
		r.agent(name, "open\n")
	}
	r.action(api.ReviewOpen)
	r.gone("new")
	r.action(api.ReviewKept)
	r.agent("twice", "open\nkept\n")
	r.agent("new", "kept\n")
	r.gone("deleted")
	r.action(api.ReviewKept)
	r.agent("a", "2\n")
	r.action(api.ReviewOpen)
	why := func() (out []string) {
		for _, c := range r.plan(api.ApplyRequest{}).Unreviewed {
			out = append(out, c.Path+": "+c.Why)
		}
		return out
	}
	same(t, why(), []string{"a: #4 isn't reviewed", "twice: #1 isn't reviewed"})
	// What an action's time takes in isn't its own, if others made it.
	r.agent("beside", "kept\n")
	r.action(api.ReviewKept)
	r.must(ledger.Append(t.Context(), r.Store, sessionID, nil, api.Event{Kind: "action.ended", Action: &api.Action{
		N: 4, Kind: api.KindCommand, State: api.ActionEnded, Review: api.ReviewOpen, Before: 4, After: 6, Files: 1, Spans: []api.Span{{From: 4, To: 5}},
	}}))
	same(t, why(), []string{"a: #4 isn't reviewed", "twice: #1 isn't reviewed"})
}

// Changes say what an apply is to undo in the project, as the count of what is left to
// apply does, and nothing of what was applied in part.
func TestReturnedIsListed(t *testing.T) {
	r, _ := parts(t)
	r.History.Applied, r.History.Returned = r.Written, r.Applier.Returned
	_, err := r.apply(part(1))
	r.must(err)
	changes := func() api.Changes {
		t.Helper()
		out, err := r.History.Changes(t.Context(), sessionID, api.Scope{}, api.Page{})
		r.must(err)
		return out
	}
	all := changes()
	same(t, all.Returned, []string{"back", "short"})
	lacks := len(all.Returned)
	for _, c := range all.Files {
		if c.Host != "" {
			t.Errorf("%s: %s", c.Path, c.Host)
		}
		if !c.Applied {
			lacks++
		}
	}
	if n := r.session().Unapplied; n != lacks {
		t.Errorf("%d are listed, and %d are to be applied", lacks, n)
	}
	r.host("n", "mine\n")
	for _, c := range changes().Files {
		if (c.Host != "") != (c.Path == "n") {
			t.Errorf("%s: %s", c.Path, c.Host)
		}
	}
	_, err = r.apply(api.ApplyRequest{Selection: api.Selection{Globs: []string{"back", "short"}}})
	r.must(err)
	same(t, changes().Returned, nil)
}
