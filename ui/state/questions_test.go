package state

import (
	"slices"
	"testing"
	"time"

	"stepbox/session/api"
)

// What can't be undone is asked about first, and equal are only those that read the same.
func TestQueue(t *testing.T) {
	var s State
	of := func(id int64, subject api.Subject, line string) api.Question {
		q := api.Question{ID: id, Action: int(id), Subject: subject, Title: line, Hash: line, Same: line}
		if line != "" {
			q.Command = &api.Command{Line: line, Argv: []string{line}, Pid: int(id)}
		}
		return q
	}
	for _, q := range []api.Question{
		of(1, api.SubjectCommand, "make"), of(4, api.SubjectEdit, ""), of(3, api.SubjectConnection, ""),
		of(2, api.SubjectNested, "make"), of(6, api.SubjectConnection, ""), of(5, api.SubjectCommand, "make"), of(3, api.SubjectConnection, ""),
	} {
		s.Apply(api.Event{Question: &q})
	}
	var got []int64
	for _, q := range s.Questions {
		got = append(got, q.ID)
	}
	if want := []int64{3, 6, 4, 1, 2, 5}; !slices.Equal(got, want) {
		t.Errorf("they are %v, want %v", got, want)
	}
	if e := s.Equal(1); len(e) != 1 || e[0].ID != 5 || len(s.Equal(3)) > 0 || len(s.Equal(4)) > 0 {
		t.Errorf("equal are %v", e)
	}
	before := s.Print(1)
	s.Apply(api.Event{Question: &api.Question{ID: 5, Closed: "allow"}})
	if s.Print(1) == before || len(s.Equal(1)) != 0 {
		t.Error("an answer is for others than before, and it reads the same")
	}
}

// What a program gave up comes after what one waits for, until it tries again.
func TestQueueOfWhatWasGivenUp(t *testing.T) {
	var s State
	put := func(id int64, waiting int) {
		s.Apply(api.Event{Question: &api.Question{ID: id, Subject: api.SubjectConnection, Connection: &api.Connection{Host: "a.example.org", Waiting: waiting}}})
	}
	put(1, 1)
	put(2, 1)
	put(1, 0)
	s.Apply(api.Event{Question: &api.Question{ID: 3, Subject: api.SubjectCommand}})
	for _, want := range [][]int64{{2, 3, 1}, {1, 2, 3}} {
		var got []int64
		for _, q := range s.Questions {
			got = append(got, q.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("they are %v, want %v", got, want)
		}
		put(1, 1)
	}
}

// A question about a connection reads the same however often that is tried.
func TestPrintOfConnection(t *testing.T) {
	var s State
	q := api.Question{ID: 1, Subject: api.SubjectConnection, Hash: "h", Connection: &api.Connection{Host: "a.example.org", Tries: 1, Waiting: 1, Pid: 2}}
	s.Apply(api.Event{Question: &q})
	before := s.Print(1)
	more := *q.Connection
	more.Tries, more.Waiting, more.Pid, more.LastTry, more.LastTime = 2, 0, 3, time.Unix(9, 0), "denied: nobody had answered"
	q.Connection = &more
	s.Apply(api.Event{Question: &q})
	if s.Print(1) != before {
		t.Error("it reads otherwise after a try")
	}
	other := more
	other.Written = true
	q.Connection = &other
	s.Apply(api.Event{Question: &q})
	if s.Print(1) == before {
		t.Error("it reads the same though its program was written meanwhile")
	}
}
