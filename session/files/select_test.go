package files

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/store"
	"stepbox/store/storetest"
)

// recordedSession has actions one after the other, each with the state after it.
type recordedSession struct {
	*timeline
	h       *History
	actions []api.Action
}

func newRecorded(t testing.TB, files ...string) *recordedSession {
	r := &recordedSession{timeline: newBareTimeline(t)}
	for _, f := range files {
		name, text, _ := strings.Cut(f, " ")
		r.write(r.project, name, text)
	}
	r.h = NewHistory(r.opened, func(string) bool { return false })
	storetest.Begin(t, r.opened, "test", json.RawMessage(`{"id":"test","state":"ended"}`))
	r.tell(r.checkpoint())
	return r
}

func (r *recordedSession) tell(id int64) {
	r.Helper()
	r.fact(store.KindCheckpoint, id, api.Checkpoint{ID: id, At: time.Now(), Root: r.Last.Root.String()})
}

func (r *recordedSession) fact(kind store.Kind, key int64, what any) {
	r.Helper()
	doc, err := json.Marshal(what)
	if err == nil {
		_, err = r.opened.Append(r.Context(), "test", store.Fact{Kind: kind, Event: string(kind), Key: key, Doc: doc})
	}
	must.OK(r, err)
}

// did is an action that changed files, as timeline.change has it.
func (r *recordedSession) did(what ...string) int {
	r.Helper()
	a := api.Action{N: len(r.actions) + 1, Kind: api.KindCommand, State: api.ActionEnded, Review: api.ReviewOpen, Files: len(what), Before: r.Last.ID}
	a.After = r.change(what...)
	r.tell(a.After)
	r.actions = append(r.actions, a)
	r.fact(store.KindAction, int64(a.N), a)
	return a.N
}

// selected is what a selection comes to: its changes as status, path and text.
func (r *recordedSession) selected(in api.Selection) (changes, conflicts []string, err error) {
	r.Helper()
	s, err := r.h.Select(r.Context(), "test", in)
	if err != nil {
		return nil, nil, err
	}
	list, err := s.Files.differs(r.Context(), nil, s.To)
	must.OK(r, err)
	for _, c := range list {
		line := string(c.Status) + " " + c.Path
		if c.New != nil && c.New.Kind == manifest.KindFile {
			text, err := s.Files.Read(r.Context(), c.New, 1<<20)
			must.OK(r, err)
			line += " " + strings.ReplaceAll(string(text), "\n", "|")
		}
		changes = append(changes, line)
	}
	for _, c := range s.Conflicts {
		conflicts = append(conflicts, c.Path+": "+c.Why)
	}
	return changes, conflicts, nil
}

const seven = "1\n2\n3\n4\n5\n6\n7\n"

// line is seven with lines in the place of others: "3=x" for the third.
func line(changes ...string) string {
	lines := strings.SplitAfter(seven, "\n")
	for _, c := range changes {
		lines[c[0]-'1'] = c[2:] + "\n"
	}
	return strings.Join(lines, "")
}

// TestSelect: what chosen actions, patterns and files come to.
func TestSelect(t *testing.T) {
	r := newRecorded(t, "a "+seven, "b "+seven, "src/c 1")
	one := r.did("a "+line("1=one"), "own 1")
	two := r.did("a "+line("1=one", "7=two"), "b "+line("4=two"))
	three := r.did("b "+line("4=three"), "own 3", "src/d 3")
	four := r.did("b " + line("4=three", "1=four"))
	flat := func(text string) string { return strings.ReplaceAll(text, "\n", "|") }
	clash := "b: both changed the same lines; "
	both := []string{"M a " + flat(line("1=one", "7=two")), "M b " + flat(line("4=three", "1=four")), "A own 3", "A src/d 3"}
	for name, c := range map[string]struct {
		in                 api.Selection
		changes, conflicts []string
	}{
		"all": {api.Selection{}, both, nil},
		"one": {api.Selection{Actions: []int{one}}, []string{"M a " + flat(line("1=one")), "A own 1"}, nil},
		"two": {api.Selection{Actions: []int{two}}, []string{"M a " + flat(line("7=two")), "M b " + flat(line("4=two"))}, nil},
		"what builds on others": {
			api.Selection{Actions: []int{three, four}}, []string{"M b " + flat(line("1=four")), "A src/d 3"},
			[]string{clash + "#2 changed it too", "own: it isn't there; #1 changed it too"},
		},
		"without one": {
			api.Selection{Without: []int{one}}, []string{"M a " + flat(line("7=two")), both[1], both[2], both[3]},
			[]string{"own: it was changed, and would go; #3 changed it too"},
		},
		"without two": {api.Selection{Without: []int{two}}, []string{"M a " + flat(line("1=one")), both[1], both[2], both[3]}, []string{clash + "#3, #4 changed it too"}},
		"without three and four": {
			api.Selection{Without: []int{three, four}}, []string{both[0], "M b " + flat(line("4=two")), "A own 1"}, nil,
		},
		"a folder":       {api.Selection{Globs: []string{"src"}}, both[3:], nil},
		"a pattern":      {api.Selection{Globs: []string{"**/d", "b"}, Actions: []int{three, four, two}}, []string{both[1], both[3]}, nil},
		"files":          {api.Selection{Files: []api.Choice{{Key: key("own")}, {Key: key("src/d")}}}, both[2:], nil},
		"an action less": {api.Selection{Actions: []int{one, two}, Without: []int{two}}, []string{"M a " + flat(line("1=one")), "A own 1"}, nil},
	} {

		changes, conflicts, err := r.selected(c.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !slices.Equal(changes, c.changes) || !slices.Equal(conflicts, c.conflicts) {
			t.Errorf("%s:\n%q\n%q, want\n%q\n%q", name, changes, conflicts, c.changes, c.conflicts)
		}
	}
}

// TestSelectHunks: hunks of one action, and of the session, where the file is as
// it was shown.
func TestSelectHunks(t *testing.T) {
	long := strings.Repeat("0\n", 20)
	r := newRecorded(t, "a "+seven+long+seven)
	one := r.did("a " + line("1=one") + long + line("7=two"))
	hunks := func(in api.Scope) api.FileDiff {
		t.Helper()
		d, err := r.h.Diff(t.Context(), "test", key("a"), in)
		if err != nil || len(d.Hunks) != 2 || d.Hash == "" {
			t.Fatalf("the difference is %+v, %v", d, err)
		}
		return d
	}
	d := hunks(api.Scope{Action: one})
	for i, want := range []string{line("1=one") + long + seven, seven + long + line("7=two")} {
		for _, actions := range [][]int{nil, {one}} {
			in := api.Selection{Actions: actions, Files: []api.Choice{{Key: key("a"), Hunks: []int{i}, Of: d.Hash}}}
			got, conflicts, err := r.selected(in)
			if err != nil || len(conflicts) > 0 || !slices.Equal(got, []string{"M a " + strings.ReplaceAll(want, "\n", "|")}) {
				t.Errorf("hunk %d of %v: %q, %q, %v", i, actions, got, conflicts, err)
			}
		}
	}
	r.did("a " + line("1=one") + long + line("7=three"))
	choice := []api.Choice{{Key: key("a"), Hunks: []int{1}, Of: d.Hash}}
	for name, c := range map[string]struct {
		in   api.Selection
		code string
	}{
		"of what isn't there now":  {api.Selection{Files: choice}, api.CodeStale},
		"of two actions":           {api.Selection{Files: choice, Actions: []int{1, 2}}, api.CodeInvalid},
		"of a file that is as was": {api.Selection{Files: []api.Choice{{Key: key("b")}}}, api.CodeNotFound},
		"a pattern that is none":   {api.Selection{Globs: []string{"[a"}}, api.CodeUsage},
		"an action that isn't":     {api.Selection{Actions: []int{3}}, api.CodeNotFound},
	} {
		var p *api.Problem
		if _, _, err := r.selected(c.in); !errors.As(err, &p) || p.Code != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}
