package find

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/files"
	"stepbox/store"
	"stepbox/store/storetest"
)

// record makes an empty record, of which the sessions in live are live.
func record(t testing.TB, live ...string) (*store.Store, *files.History) {
	t.Helper()
	st := storetest.New(t)
	return st, files.NewHistory(st, func(id string) bool { return slices.Contains(live, id) })
}

// begin records a session.
func begin(t testing.TB, st *store.Store, s api.Session) {
	t.Helper()
	if s.StartedAt.IsZero() {
		s.StartedAt = time.Now().UTC()
	}
	storetest.Begin(t, st, s.ID, s)
}

// finds lists which sessions a query finds.
func finds(t testing.TB, f *Finder, q api.Query) string {
	t.Helper()
	p, err := f.Find(t.Context(), q)
	must.OK(t, err)
	var ids []string
	for _, x := range p.Found {
		ids = append(ids, x.Session.ID)
	}
	if p.Next == "" && q.Skip == 0 && q.After == "" && len(ids) != p.Total {
		t.Errorf("%d found of %d", len(ids), p.Total)
	}
	return strings.Join(ids, " ")
}

func problem(err error, code string) bool {
	p := (*api.Problem)(nil)
	return errors.As(err, &p) && p.Code == code
}

func TestLabel(t *testing.T) {
	st, h := record(t, "one", "two")
	f := New(h)
	begin(t, st, api.Session{ID: "one", Name: "first", State: api.SessionRunning})
	begin(t, st, api.Session{ID: "two", Name: "second", State: api.SessionRunning})
	begin(t, st, api.Session{ID: "old", Name: "third", State: api.SessionEnded})
	ptr := func(s string) *string { return &s }
	yes, no := true, false
	s, err := f.Label(t.Context(), "one", api.Label{Name: ptr("renamed"), Tags: &[]string{"b", "a", "b"}, Note: ptr("it\x1b[2Jsaid\n"), Pinned: &yes})
	if err != nil || s.Name != "renamed" || fmt.Sprint(s.Tags) != "[a b]" || s.Note != `it\x1b[2Jsaid\n` || !s.Pinned {
		t.Errorf("labelled: %+v, %v", s, err)
	}
	if s, err = f.Label(t.Context(), "one", api.Label{Pinned: &no}); err != nil || s.Name != "renamed" || s.Pinned {
		t.Errorf("labelled again: %+v, %v", s, err)
	}
	all, err := h.Sessions(t.Context())
	if err != nil || all[2].Name != "renamed" || len(all[2].Tags) != 2 {
		t.Errorf("all are %+v, %v", all, err)
	}
	if s, err = f.Label(t.Context(), "one", api.Label{Name: ptr("")}); err != nil || s.Name != "first" {
		t.Errorf("unnamed: %+v, %v", s, err)
	}
	for _, damaged := range []string{`{`, `[]`} {
		must.OK(t, st.Label(t.Context(), "one", func(json.RawMessage) (json.RawMessage, error) { return []byte(damaged), nil }))
		if got := finds(t, f, api.Query{}); got != "two one old" {
			t.Errorf("with the label %s there are %s", damaged, got)
		}
		if all, err := h.Sessions(t.Context()); err != nil || !all[2].Pinned || !strings.Contains(all[2].Note, "damaged") {
			t.Errorf("with the label %s all are %+v, %v", damaged, all, err)
		}
		if s, err := f.Label(t.Context(), "one", api.Label{Name: ptr("again")}); err != nil || s.Name != "again" || !s.Pinned {
			t.Errorf("labelled after %s: %+v, %v", damaged, s, err)
		}
	}
	tags := make([]string, 33)
	for i := range tags {
		tags[i] = fmt.Sprint(i)
	}
	for _, bad := range []api.Label{
		{Name: ptr("a b")}, {Name: ptr("\x1b[2J")}, {Name: ptr("second")}, {Tags: &[]string{"a/b"}}, {Tags: &[]string{""}},
		{Note: ptr(strings.Repeat("é", 2001))}, {Note: ptr(strings.Repeat("\x01", 1000))}, {Tags: &tags},
	} {
		if _, err := f.Label(t.Context(), "one", bad); !problem(err, api.CodeUsage) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := f.Label(t.Context(), "one", api.Label{Trashed: &yes}); !problem(err, api.CodeBusy) {
		t.Errorf("a live session in the trash: %v", err)
	}
	if _, err := f.Label(t.Context(), "none", api.Label{Pinned: &yes}); !problem(err, api.CodeNotFound) {
		t.Errorf("no session: %v", err)
	}
	if _, err := f.Label(t.Context(), "old", api.Label{Trashed: &yes}); err != nil {
		t.Fatal(err)
	}
	if got := finds(t, f, api.Query{}); got != "two one" {
		t.Errorf("beside the trash: %s", got)
	}
	if got := finds(t, f, api.Query{State: "trashed"}); got != "old" {
		t.Errorf("in the trash: %s", got)
	}
	old, err := f.Session(t.Context(), "old")
	if err != nil || old.Trashed.IsZero() {
		t.Fatalf("it isn't said to be in the trash: %+v, %v", old, err)
	}
	old.Resumed, old.ResumedAt = 1, old.Trashed.Add(time.Second)
	doc, err := json.Marshal(old)
	must.OK(t, err)
	facts(t, st, "old", store.Fact{Kind: store.KindSession, Event: "session.started", Doc: doc})
	if got := finds(t, f, api.Query{}); got != "two one old" {
		t.Errorf("once it was resumed there is: %s", got)
	}
	if old, err = f.Session(t.Context(), "old"); err != nil || !old.Trashed.IsZero() {
		t.Errorf("what was resumed since is in the trash: %+v, %v", old, err)
	}
}

func TestFind(t *testing.T) {
	st, h := record(t, "live")
	f := New(h)
	begin(t, st, api.Session{ID: "live", Name: "x", State: api.SessionRunning})
	begin(t, st, api.Session{ID: "dead", Name: "y", Command: "codex --full", State: api.SessionRunning})
	begin(t, st, api.Session{ID: "gone", Name: "z", State: api.SessionEnded, Unapplied: 2, Exit: &api.Exit{Code: 2}})
	for state, want := range map[string]string{
		"": "live gone dead", "live": "live", "past": "gone dead", "interrupted": "dead", "ended": "gone", "failed": "gone", "unapplied": "gone", "pinned": "", "trashed": "",
	} {
		if got := finds(t, f, api.Query{State: state}); got != want {
			t.Errorf("%q finds %q, want %q", state, got, want)
		}
	}
	if got := finds(t, f, api.Query{Text: `"codex --full"`}); got != "dead" {
		t.Errorf("a phrase finds %q", got)
	}
	for _, bad := range []api.Query{{State: "odd"}, {Sort: "odd"}, {After: "odd"}} {
		if _, err := f.Find(t.Context(), bad); !problem(err, api.CodeUsage) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	p, err := f.Find(t.Context(), api.Query{Session: "dead"})
	if err != nil || len(p.Found) != 1 || p.Found[0].Session.State != api.SessionInterrupted {
		t.Errorf("an interrupted one is %+v, %v", p, err)
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":             "[]",
		"a b":          "[{a false} {b true}]",
		`a "b  c"`:     "[{a false} {b c false}]",
		`"b c" d`:      "[{b c false} {d true}]",
		`a "b c`:       "[{a false} {b c true}]",
		`""`:           "[]",
		`x" y"z`:       "[{x false} {y false} {z true}]",
		"NEAR(a, b) -": "[{NEAR(a, false} {b) false} {- true}]",
	} {
		var list []string
		for _, w := range words(text) {
			list = append(list, fmt.Sprintf("{%s %t}", w.text, w.begun))
		}
		if got := fmt.Sprint(list); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
