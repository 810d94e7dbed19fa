package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"stepbox/session/api"
)

// Rank is what is asked about first. What leaves the sandbox can't be undone and comes
// first; then changes, which other answers may have to wait for; then commands. Last is
// what a program gave up: nothing waits for it now.
func Rank(q api.Question) int {
	switch q.Subject {
	case api.SubjectRequest:
		return 0
	case api.SubjectConnection:
		if q.Connection != nil && q.Connection.Waiting == 0 {
			return 3
		}
		return 0
	case api.SubjectEdit:
		return 1
	}
	return 2
}

// queue puts a question where it belongs, in the place of what it was.
func queue(list []api.Question, q api.Question) []api.Question {
	list = slices.DeleteFunc(list, func(x api.Question) bool { return x.ID == q.ID })
	i, _ := slices.BinarySearchFunc(list, q, func(x, q api.Question) int {
		return cmp.Or(cmp.Compare(Rank(x), Rank(q)), cmp.Compare(x.ID, q.ID))
	})
	return slices.Insert(list, i, q)
}

// Print is a fingerprint of all that is shown of an open question: two questions
// with the same one read the same. The question's own hash is part of it, and so is
// which others its answer would be for.
func (s *State) Print(id int64) string {
	p := s.prints[id]
	for _, q := range s.Equal(id) {
		p += fmt.Sprintf("+%d", q.ID)
	}
	return p + s.Also[id]
}

// Kin covers all that is shown of an open question but whose it is: questions of sessions
// over one folder that have the same one read the same, and one answer can be for all of
// them. "" is of one that has none: it is about files, or about what a person is asked
// about one by one.
func (s *State) Kin(q api.Question) string {
	switch {
	case q.Subject != api.SubjectCommand && q.Subject != api.SubjectNested && q.Subject != api.SubjectConnection:
		return ""
	case q.Command != nil && q.Same == "", q.Connection != nil && q.Connection.Host == "":
		return ""
	}
	a, _ := s.Action(q.Action)
	k := struct {
		Folder, Action, Said string
		Question             api.Question
	}{s.Session.Folder, "", a.Said(), api.Question{Subject: q.Subject, Title: q.Title, Rule: q.Rule, Same: q.Same}}
	if c := q.Connection; c != nil {
		k.Action = a.Title // what tried it
		only := *c
		only.Tries, only.Waiting, only.Pid, only.LastTry = 0, min(c.Waiting, 1), 0, time.Time{}
		k.Question.Connection = &only
	}
	if c := q.Command; c != nil {
		only := *c
		only.Pipeline = slices.Clone(c.Pipeline)
		for _, c := range append([]*api.Command{&only}, pointers(only.Pipeline)...) {
			c.Pid, c.Before = 0, 0
		}
		k.Question.Command = &only
	}
	b, err := json.Marshal(k)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b) // see alike
	return string(sum[:])
}

// Equal are the other open questions on just the same command: one answer can be for
// all of them.
func (s *State) Equal(id int64) (out []api.Question) {
	same := s.alike[id]
	if same == "" {
		return nil
	}
	for _, q := range s.Questions {
		if q.ID != id && s.alike[q.ID] == same {
			out = append(out, q)
		}
	}
	return out
}

// Traffic is how many bytes a program has sent to where a connection is to go, by its name,
// and received from there.
func (s *State) Traffic(c *api.Connection) (sent, received int64) {
	for i := range s.Attempts {
		if a := &s.Attempts[i]; a.Program == c.Program && a.Port == c.Port && a.Protocol == c.Protocol && a.Host() == c.Host {
			sent, received = sent+a.Sent, received+a.Received
		}
	}
	return sent, received
}

// print covers what is shown of a question.
func print(q api.Question) string {
	q.Offer = nil            // it is of what was answered before
	if q.Connection != nil { // how often it is tried moves on; what a decision covers doesn't
		c := *q.Connection
		c.Tries, c.Waiting, c.Pid, c.LastTry, c.LastTime, c.Many = 0, 0, 0, time.Time{}, "", nil
		q.Connection = &c
	}
	b, err := json.Marshal(q)
	if err != nil {
		return q.Hash // its fields are plain data, which can always be encoded
	}
	h := fnv.New64a()
	h.Write(b) // never fails
	return q.Hash + "/" + strconv.FormatUint(h.Sum64(), 16)
}

// alike covers what equal questions have in common; "" is of one that has no equals.
func alike(q api.Question) string {
	if q.Command == nil || q.Same == "" || q.Subject == api.SubjectEdit {
		return ""
	}
	c := *q.Command
	c.Pipeline = slices.Clone(c.Pipeline)
	for _, c := range append([]*api.Command{&c}, pointers(c.Pipeline)...) {
		c.Pid, c.Before, c.LastTime, c.Parents = 0, 0, "", nil
	}
	b, err := json.Marshal(api.Question{Subject: q.Subject, Title: q.Title, Rule: q.Rule, Same: q.Same, Command: &c})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b) // whoever makes another with the same one would have it answered unseen
	return string(sum[:])
}

func pointers(list []api.Command) (out []*api.Command) {
	for i := range list {
		out = append(out, &list[i])
	}
	return out
}
