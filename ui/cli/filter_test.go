package cli

import (
	"testing"

	"stepbox/session/api"
	"stepbox/ui/find"
)

// A line of the log is asked for by what it is of, and else by its words.
func TestFilterOfEvents(t *testing.T) {
	action := api.Event{Action: &api.Action{N: 12, State: api.ActionDenied, Title: "rm x"}}
	attempt := api.Event{Attempt: &api.Attempt{Action: 12, Name: "evil.example", Verdict: api.Deny}}
	exec := api.Event{Exec: &api.Exec{Action: 12}}
	decision := api.Event{Decision: &api.Decision{Action: 3}}
	note := api.Event{Note: &api.Note{}}
	for line, want := range map[string]string{
		"": "action attempt exec decision note", "denied": "action attempt", "#12": "action attempt exec", "host:evil": "action attempt",
		"file:a.go": "action", "words": "exec decision note", "rm": "action", "held": "", "!denied": "exec decision note",
	} {
		f := filter{Filter: find.Parse(line), hosts: map[int][]string{12: {"evil.example"}}, wrote: find.Wrote{"a.go": {12}}}
		got := ""
		for _, e := range []struct {
			name string
			api.Event
		}{{"action", action}, {"attempt", attempt}, {"exec", exec}, {"decision", decision}, {"note", note}} {
			if f.hasEvent(e.Event, "its words") {
				if got != "" {
					got += " "
				}
				got += e.name
			}
		}
		if got != want {
			t.Errorf("%q has %q, not %q", line, got, want)
		}
	}
}
