package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

// sessionOf records a session with members of its document.
func sessionOf(t testing.TB, s *Store, id, doc string) {
	t.Helper()
	if _, err := s.CreateSession(t.Context(), id, json.RawMessage(doc)); err != nil {
		t.Fatal(err)
	}
}

// labelOf labels a session.
func labelOf(t testing.TB, s *Store, id, doc string) {
	t.Helper()
	must.OK(t, s.Label(t.Context(), id, func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(doc), nil }))
}

// chosen lists the sessions of a choice by ID, part after part.
func chosen(t testing.TB, s *Store, c Choice) (ids string) {
	t.Helper()
	for {
		got, err := s.Choose(t.Context(), c)
		must.OK(t, err)
		for _, d := range got.Docs {
			var x struct{ ID string }
			must.OK(t, json.Unmarshal(d, &x))
			ids += x.ID
		}
		if len(ids) > got.Total {
			t.Fatalf("%s of %d", ids, got.Total)
		}
		if c.After = got.Next; c.After == "" {
			if c.Skip == 0 && len(ids) != got.Total {
				t.Errorf("%s of %d", ids, got.Total)
			}
			return ids
		}
	}
}

func TestChoose(t *testing.T) {
	s := open(t)
	at := func(h int) string { return time.Date(2026, 11, 1, h, 0, 0, 5, time.UTC).Format(time.RFC3339Nano) }
	sessionOf(t, s, "a", `{"id":"a","name":"Beta","agent":"claude","command":"claude 100%","folder":"/home/x","state":"ended","unapplied":3,"started_at":"`+at(1)+`","ended_at":"`+at(4)+`"}`)
	sessionOf(t, s, "b", `{"id":"b","name":"alpha","agent":"codex","command":"codex","folder":"/home/x/y","state":"ended","exit":{"code":1},"changed":9,"started_at":"`+at(2)+`","resumed_at":"`+at(22)+`","ran_before":1800000000000,"ended_at":"`+at(23)+`"}`)
	sessionOf(t, s, "c", `{"id":"c","name":"gamma","agent":"codex","command":"run 1000","folder":"/home/xy","state":"running","parent":{"id":"a"},"started_at":"`+at(3)+`"}`)
	sessionOf(t, s, "d", `{"id":"d","name":"delta","agent":"codex","command":"x","folder":"/","state":"ended","started_at":"`+at(4)+`"}`)
	sessionOf(t, s, "e", `{"id":"e","name":"again","folder":"/e","state":"ended","started_at":"`+at(1)+`","resumed_at":"`+at(5)+`"}`)
	labelOf(t, s, "e", `{"trashed":"`+at(6)+`"}`)
	labelOf(t, s, "b", `{"trashed":"`+at(3)+`","tags":["urgent","x_y"],"note":"look \u001b here"}`)
	labelOf(t, s, "d", `{"name":"old","trashed":"2026-01-01T00:00:00Z"}`)
	labelOf(t, s, "a", `{"name":"zeta","pinned":true}`)
	for _, c := range []struct {
		of   Choice
		want string
	}{
		{Choice{}, "cba"},
		{Choice{First: []string{"a"}}, "acb"},
		{Choice{Order: ByLength}, "abc"},
		{Choice{Order: ByChanges}, "bac"},
		{Choice{Order: ByName}, "bca"},
		{Choice{Trashed: true}, "ed"}, // b was resumed since
		{Choice{Trashed: true, First: []string{"e"}}, "d"},
		{Choice{Folder: "/e", First: []string{"e"}}, "e"}, // it lives
		{Choice{Session: "d"}, "d"},
		{Choice{Folder: "/home/x/"}, "ba"},
		{Choice{Folder: "/"}, "cba"},
		{Choice{Agent: "codex", NotIn: []string{"b"}}, "c"},
		{Choice{In: &[]string{"a", "d"}}, "a"},
		{Choice{In: &[]string{}}, ""},
		{Choice{Tags: []string{"urgent", "x_y"}}, "b"},
		{Choice{Tags: []string{"urgent", "none"}}, ""},
		{Choice{State: "ended"}, "ba"},
		{Choice{Failed: true}, "b"},
		{Choice{Unapplied: true, Also: []string{"c"}}, "ca"},
		{Choice{Pinned: true}, "a"},
		{Choice{Parent: "a"}, "c"},
		{Choice{Since: time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)}, "cb"},
		{Choice{Before: time.Date(2026, 11, 1, 2, 0, 0, 0, time.UTC)}, "a"},
		{Choice{Words: []Word{{Text: "0%"}}}, "a"}, // a wildcard is none
		{Choice{Words: []Word{{Text: "ZETA"}}}, "a"},
		{Choice{Words: []Word{{Text: "beta"}}}, "a"}, // what it began with
		{Choice{Words: []Word{{Text: "_"}}}, "b"},
		{Choice{Words: []Word{{Text: "look \x1b"}}}, "b"},
		{Choice{Words: []Word{{Text: "nowhere", In: []string{"b", "c"}}, {Text: "codex"}}}, "cb"},
		{Choice{Words: []Word{{Text: `' OR 1=1 --`}}}, ""},
	} {
		for _, c.of.Limit = range []int{1, 2, 10} {
			if got := chosen(t, s, c.of); got != c.want {
				t.Errorf("%+v gives %q, want %q", c.of, got, c.want)
			}
		}
	}
	if got := chosen(t, s, Choice{Skip: 1, Limit: 10}); got != "ba" {
		t.Errorf("what follows the first is %q", got)
	}
	if _, err := s.Choose(t.Context(), Choice{After: "x", Limit: 1}); !errors.Is(err, ErrChoice) {
		t.Errorf("a cursor that isn't one: %v", err)
	}
	if got, err := s.Unended(t.Context()); err != nil || !slices.Equal(got, []string{"c"}) {
		t.Errorf("unended are %v, %v", got, err)
	}
	must.OK(t, s.Remove(t.Context(), "b"))
	if l, err := s.Labels(t.Context()); err != nil || len(l) != 3 || l["b"] != nil {
		t.Errorf("the labels that stay are %v, %v", l, err)
	}
	if err := s.Label(t.Context(), "b", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("a label of a session that was removed: %v", err)
	}
}

// manySessions are recorded as they are after months of work.
func manySessions(b *testing.B, n int) *Store {
	b.Helper()
	s := open(b)
	b.StopTimer()
	for i := range n {
		doc := fmt.Sprintf(`{"id":"s%d","name":"project-%d","agent":"claude","command":"claude --model x","workspace":"/home/me/src/project-%d","folder":"/home/me/src/project-%d","mode":"policy","state":"ended","exit":{"code":0},"started_at":%q,"ended_at":%q,"counted":true,"padding":%q}`,
			i, i%40, i%40, i%40, time.Unix(int64(1.7e9)+int64(i)*3600, 0).UTC().Format(time.RFC3339Nano), time.Unix(int64(1.7e9)+int64(i)*3600+500, 0).UTC().Format(time.RFC3339Nano), strings.Repeat("x", 1000))
		sessionOf(b, s, fmt.Sprintf("s%d", i), doc)
	}
	b.StartTimer()
	return s
}

// One part of 10,000 sessions.
func BenchmarkChoose(b *testing.B) {
	s := manySessions(b, 10_000)
	for _, c := range []struct {
		name string
		of   Choice
	}{
		{"newest", Choice{}}, {"besideLive", Choice{First: []string{"s5", "s9000"}}}, {"longest", Choice{Order: ByLength}}, {"name", Choice{Order: ByName}},
		{"word", Choice{Words: []Word{{Text: "project-7"}}}}, {"failed", Choice{Failed: true}}, {"folder", Choice{Folder: "/home/me/src/project-7"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.of.Limit = 50
			timed(b, func(int) {
				if _, err := s.Choose(context.Background(), c.of); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
