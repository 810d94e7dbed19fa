package apply

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
)

// Where a moved file's new place is in conflict, its old one isn't written over: else its
// content were nowhere in the project.
func TestMovedOver(t *testing.T) {
	long := strings.Repeat("a line of some length\n", 20)
	for name, c := range map[string]struct {
		base, agent, host map[string]string // of the last two, nothing is gone
		resolve           map[string]api.Resolution
		want              []string
	}{
		"rotated": {
			base:  map[string]string{"log": "0\n", "log.1": "1\n"},
			agent: map[string]string{"log": "new\n", "log.1": "0\n", "log.2": "1\n"},
			host:  map[string]string{"log.2": "mine\n"},
			want: []string{
				"conflict log.2: there is a file of that name in the project by now (1 clashes)",
				"left log.1: the session moved it to log.2, which isn't written", "left log: the session moved it to log.1, which isn't written",
			},
		},
		"rotated, and it is said that it stays": {
			base:    map[string]string{"log": "0\n"},
			agent:   map[string]string{"log": "new\n", "log.1": "0\n"},
			host:    map[string]string{"log.1": "mine\n"},
			resolve: map[string]api.Resolution{"log.1": {Way: api.WayThere}},
			want:    []string{"M log", "conflict log.1: there is a file of that name in the project by now (1 clashes)"},
		},
		"rotated, and merged so that it stays": {
			base:    map[string]string{"log": "0\n"},
			agent:   map[string]string{"log": "new\n", "log.1": "0\n"},
			host:    map[string]string{"log.1": "mine\n"},
			resolve: map[string]api.Resolution{"log.1": {Way: api.WayMerge, Sides: []api.Way{api.WayThere}}},
			want:    []string{"M log", "conflict log.1: there is a file of that name in the project by now (1 clashes)"},
		},
		"swapped": {
			base:  map[string]string{"x": "x\n", "y": "y\n"},
			agent: map[string]string{"x": "y\n", "y": "x\n"},
			host:  map[string]string{"y": "mine\n"},
			want:  []string{"conflict y: it was changed in the project since (1 clashes)", "left x: the session moved it to y, which isn't written"},
		},
		"edited": {
			base:  map[string]string{"old": long},
			agent: map[string]string{"old": "", "new": long + "more\n"},
			host:  map[string]string{"new": "mine\n"},
			want:  []string{"conflict new: there is a file of that name in the project by now (1 clashes)", "left old: the session moved it to new, which isn't written"},
		},
		"like what is ignored": {
			base:  map[string]string{"old": long, ".gitignore": "ignored/\n"},
			agent: map[string]string{"old": "", "ignored/new": long + "more\n"},
			want:  []string{"D old", "left …: git ignores 1 of the changed files; chosen by their paths they come along"},
		},
		"ignored": {
			base:  map[string]string{"x": "x\n", ".gitignore": "ignored/\n"},
			agent: map[string]string{"x": "new\n", "ignored/x.bak": "x\n"},
			want:  []string{"M x", "left …: git ignores 1 of the changed files; chosen by their paths they come along"},
		},
		"written elsewhere": {
			base:  map[string]string{"x": "x\n"},
			agent: map[string]string{"x": "new\n", "y": "x\n", "z": "x\n"},
			host:  map[string]string{"y": "mine\n"},
			want:  []string{"M x", "A z", "conflict y: there is a file of that name in the project by now (1 clashes)"},
		},
		"like another, which the person deleted": {
			base:  map[string]string{"x": "x\n", "y": "x\n"},
			agent: map[string]string{"x": "new\n", "y": "", "z": "x\n"},
			host:  map[string]string{"y": "", "z": "mine\n"},
			want:  []string{"conflict z: there is a file of that name in the project by now (1 clashes)", "left x: the session moved it to z, which isn't written"},
		},
		"as it had been": {
			base:  map[string]string{"x": "x\n", "y": "x\n"},
			agent: map[string]string{"x": "new\n"},
			host:  map[string]string{"y": "mine\n"},
			want:  []string{"M x"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.base)
			r.History.Person = &r.Person
			for name, text := range c.agent {
				if text == "" {
					r.gone(name)
				} else {
					r.agent(name, text)
				}
			}
			r.action(api.ReviewKept)
			for name, text := range c.host {
				r.host(name, text)
				if text == "" {
					r.must(os.Remove(filepath.Join(r.project, name)))
				}
			}
			var q api.ApplyRequest
			for name, x := range c.resolve {
				x.Key = api.KeyOf(name)
				q.Resolve = append(q.Resolve, x)
			}
			same(t, words(r.plan(q)), c.want)
		})
	}
}

// What was applied before and rotated since is kept, too.
func TestMovedOverApplied(t *testing.T) {
	r := newRig(t, map[string]string{"log": "0\n"})
	r.agent("log", "1\n")
	r.action(api.ReviewKept)
	_, err := r.apply(api.ApplyRequest{})
	r.must(err)
	r.agent("log", "2\n")
	r.agent("log.1", "1\n")
	r.action(api.ReviewKept)
	r.host("log.1", "mine\n")
	same(t, words(r.plan(api.ApplyRequest{})), []string{
		"conflict log.1: there is a file of that name in the project by now (1 clashes)", "left log: the session moved it to log.1, which isn't written",
	})
}

// What took a renamed file's place and was applied with it was never moved: once the session
// deletes it, it goes, also where the person has changed the renamed one.
func TestNotMoved(t *testing.T) {
	old, fresh := strings.Repeat("an old line of some length\n", 20), strings.Repeat("a fresh line\n", 20)
	for name, c := range map[string]struct {
		then string // what the agent makes of the renamed file
		host string // and the person; "" removes it
		want []string
	}{
		"as it was applied": {old, "mine\n", []string{"D log", "left log.1: it was changed in the project since it was applied, and the session has it as it was then"}},
		"removed":           {old, "", []string{"conflict log.1: what apply 1 wrote there was changed back in the project since", "left log: the session moved it to log.1, which isn't written"}},
		"over it":           {fresh, "mine\n", []string{"conflict log.1: there is a file of that name in the project by now (1 clashes)", "left log: the session moved it to log.1, which isn't written"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, map[string]string{"log": old})
			r.agent("log.1", old)
			r.agent("log", fresh)
			r.action(api.ReviewKept)
			_, err := r.apply(api.ApplyRequest{})
			r.must(err)
			r.gone("log")
			r.agent("log.1", c.then)
			r.action(api.ReviewKept)
			r.host("log.1", c.host)
			if c.host == "" {
				r.must(os.Remove(filepath.Join(r.project, "log.1")))
			}
			same(t, words(r.plan(api.ApplyRequest{})), c.want)
		})
	}
}

// What was moved, edited and applied without its old place stays there.
func TestMovedAlone(t *testing.T) {
	long := strings.Repeat("a line of some length\n", 20)
	r := newRig(t, map[string]string{"log": long})
	for _, text := range []string{"more\n", "and more\n"} {
		long += text
		r.agent("log", long)
		r.action(api.ReviewKept)
		_, err := r.apply(api.ApplyRequest{})
		r.must(err)
	}
	r.gone("log")
	r.agent("log.1", long+"most\n")
	r.action(api.ReviewKept)
	_, err := r.apply(api.ApplyRequest{Selection: api.Selection{Globs: []string{"log.1"}}})
	r.must(err)
	r.host("log.1", "mine\n")
	got := words(r.plan(api.ApplyRequest{}))
	if !slices.Contains(got, "left log: the session moved it to log.1, which isn't written") {
		t.Errorf("the plan is %q", got)
	}
}

// What an apply renamed and the person took away isn't written again, whatever has the old
// name by then.
func TestRenameTakenBack(t *testing.T) {
	const why = ": what apply 1 wrote there was changed back in the project since"
	for name, c := range map[string]struct {
		first map[string]string // of the agent's beside the move
		host  map[string]string // of the person's
		then  string            // what the agent removes
		want  []string
	}{
		"removed":       {want: []string{"conflict lib/b" + why}},
		"moved on":      {host: map[string]string{"pkg/b": "moved\n"}, want: []string{"conflict lib/b" + why}},
		"as it was":     {host: map[string]string{"src/a": "moved\n"}, want: []string{"conflict lib/b" + why + " (clean, 0 hunks)"}},
		"another there": {host: map[string]string{"src/a": "mine\n"}, want: []string{"conflict lib/b: it was changed in the project since (1 clashes)"}},
		"a log's": {
			first: map[string]string{"src/a": "fresh\n"}, then: "src/a",
			want: []string{"conflict lib/b" + why, "left src/a: the session moved it to lib/b, which isn't written"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, map[string]string{"src/a": "moved\n"})
			r.gone("src/a")
			r.agent("lib/b", "moved\n")
			for name, text := range c.first {
				r.agent(name, text)
			}
			r.action(api.ReviewKept)
			_, err := r.apply(api.ApplyRequest{})
			r.must(err)
			r.must(os.RemoveAll(filepath.Join(r.project, "lib")))
			for name, text := range c.host {
				r.host(name, text)
			}
			if c.then != "" {
				r.gone(c.then)
				r.action(api.ReviewKept)
			}
			same(t, words(r.plan(api.ApplyRequest{})), c.want)
			before := r.has()
			_, _ = r.apply(api.ApplyRequest{}) // where nothing is to be written, it says so
			r.is(before)
		})
	}
}

// What was moved, applied and moved back, where the person has another file by then, stays
// where it was applied; so does what an apply made and the session moved on to where it is
// in conflict, edited or not.
func TestMovedAfterApply(t *testing.T) {
	long := strings.Repeat("a line of some length\n", 20)
	const there = ": there is a file of that name in the project by now (1 clashes)"
	for name, c := range map[string]struct {
		base        map[string]string
		first, then map[string]string // of the agent's; "" is gone
		host        string            // where the person makes a file
		want        []string
		wanted      map[string]string // that the project has, once the conflict is resolved so
	}{
		"back": {
			base: map[string]string{"a": long}, first: map[string]string{"a": "", "b": long}, then: map[string]string{"a": long, "b": ""},
			host: "a", want: []string{"conflict a" + there, "left b: the session moved it to a, which isn't written"},
			wanted: map[string]string{"a": long},
		},
		"back and edited": {
			base: map[string]string{"a": long}, first: map[string]string{"a": "", "b": long}, then: map[string]string{"a": long + "more\n", "b": ""},
			host: "a", want: []string{"conflict a: it was changed in the project since (1 clashes)", "left b: the session moved it to a, which isn't written"},
			wanted: map[string]string{"a": long + "more\n"},
		},
		"on": {
			first: map[string]string{"n": long}, then: map[string]string{"n": "", "m": long},
			host: "m", want: []string{"conflict m" + there, "left n: the session moved it to m, which isn't written"},
			wanted: map[string]string{"m": long},
		},
		"on and edited": {
			first: map[string]string{"n": long}, then: map[string]string{"n": "", "m": long + "more\n"},
			host: "m", want: []string{"conflict m" + there, "left n: the session moved it to m, which isn't written"},
			wanted: map[string]string{"m": long + "more\n"},
		},
		"over a file": {
			base: map[string]string{"m": "1\n"}, first: map[string]string{"n": long}, then: map[string]string{"n": "", "m": long + "more\n"},
			host: "m", want: []string{"conflict m: it was changed in the project since (1 clashes)", "left n: the session moved it to m, which isn't written"},
			wanted: map[string]string{"m": long + "more\n"},
		},
		"another": {
			first: map[string]string{"n": long}, then: map[string]string{"n": "", "m": "another\n"},
			host: "m", want: []string{"D n", "conflict m" + there},
			wanted: map[string]string{"m": "another\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, c.base)
			change := func(files map[string]string) {
				for name, text := range files {
					if text == "" {
						r.gone(name)
					} else {
						r.agent(name, text)
					}
				}
				r.action(api.ReviewKept)
			}
			change(c.first)
			_, err := r.apply(api.ApplyRequest{})
			r.must(err)
			change(c.then)
			r.host(c.host, "mine\n")
			same(t, words(r.plan(api.ApplyRequest{})), c.want)
			_, err = r.apply(api.ApplyRequest{Resolve: []api.Resolution{{Key: api.KeyOf(c.host), Way: api.WayWanted}}})
			r.must(err)
			r.is(c.wanted)
		})
	}
}
