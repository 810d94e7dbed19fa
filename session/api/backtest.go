package api

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// PastOf says which recorded sessions are meant. Its fields narrow each other down; the
// zero PastOf is all that aren't trashed.
type PastOf struct {
	Sessions []string  `json:"sessions,omitempty"` // ids
	Folder   string    `json:"folder,omitempty"`   // their project's, or one above it; absolute
	Since    time.Time `json:"since,omitzero"`     // they began
}

// PolicyTry asks what a file of rules would have said of what recorded sessions did.
type PolicyTry struct {
	PastOf
	File string `json:"file,omitempty"` // absolute host path; "": the rules that hold now
	// As is in whose place the file's rules stand: always for the person's own, which ""
	// is too, project for those of the project.
	As Extent `json:"as,omitempty"`
}

// PolicyTried is what came of a PolicyTry. Texts are escaped. Each list has what is alike
// once, the most frequent first.
type PolicyTried struct {
	Sessions    int `json:"sessions"`    // that were gone through
	Commands    int `json:"commands"`    // that began an action, without the agents' housekeeping
	Programs    int `json:"programs"`    // that commands started in turn
	Connections int `json:"connections"` // that were tried
	Edits       int `json:"edits"`       // by agents themselves; step mode asks about each

	Then QuestionCount `json:"then"` // questions that were asked, whatever the mode was
	Now  QuestionCount `json:"now"`  // that the rules in force now ask in policy mode
	With QuestionCount `json:"with"` // that they ask with the file
	Step QuestionCount `json:"step"` // that step mode asks, with the file

	LetThrough []PolicyChange `json:"let_through,omitempty"` // was denied, or waited unanswered, and would run
	Asked      []PolicyChange `json:"asked,omitempty"`       // isn't asked now, and would be
	Stopped    []PolicyChange `json:"stopped,omitempty"`     // isn't denied now, and would be
	Saved      []PolicyChange `json:"saved,omitempty"`       // is asked now, and wouldn't be
	Unknown    []PolicyChange `json:"unknown,omitempty"`     // can't be told with the file; the record doesn't have enough of it
	More       int            `json:"more,omitempty"`        // different ones that the lists don't have

	// Denied is how much of LetThrough a person denied.
	Denied int `json:"denied"`
	// AsNow is how much a person denied that runs with the file, and by the rules in
	// force now as well: in step mode all is asked.
	AsNow int `json:"as_now,omitempty"`
}

// Same says that the file changes nothing.
func (t *PolicyTried) Same() bool {
	return len(t.LetThrough)+len(t.Asked)+len(t.Stopped)+len(t.Saved) == 0 && t.More == 0
}

// QuestionCount is how many questions there are.
type QuestionCount struct {
	Commands    int `json:"commands"` // programs that commands start included
	Connections int `json:"connections"`
	Edits       int `json:"edits,omitempty"`
	Unknown     int `json:"unknown,omitempty"` // may be further ones: it can't be told
}

// Total is all of them.
func (c QuestionCount) Total() int { return c.Commands + c.Connections + c.Edits }

// PolicyChange is things alike of which the rules say something else.
type PolicyChange struct {
	Kind string     `json:"kind"` // command, joined, nested or connection
	What string     `json:"what"` // the command, or the destination
	Now  PolicySays `json:"now"`
	With PolicySays `json:"with"`

	Times    int    `json:"times"`
	Sessions int    `json:"sessions"`
	Denied   int    `json:"denied,omitempty"`   // by a person
	Approved int    `json:"approved,omitempty"` // by a person
	Waited   int    `json:"waited,omitempty"`   // nobody answered
	By       string `json:"by,omitempty"`       // who denied it last, or else approved it
	Newest   Past   `json:"newest"`             // the newest of them; of those that were denied, if any were
}

// PolicySays is what rules say of something: allow, ask, deny, or unknown where the
// record doesn't have enough of it to tell.
type PolicySays struct {
	Verdict Verdict `json:"verdict"`
	Ruling
}

// Past is where something is in the record.
type Past struct {
	Session string    `json:"session"`
	Name    string    `json:"name,omitempty"` // what it is called
	Action  int       `json:"action,omitempty"`
	Moment  Moment    `json:"moment"`
	At      time.Time `json:"at"`
}

// PastSeen is how far something is that goes through recorded sessions.
type PastSeen struct {
	Session string `json:"session,omitempty"` // that was gone through
	Number  int    `json:"number,omitempty"`  // of it, from 1
	Of      int    `json:"of,omitempty"`
}

// PastTold is a line of what it tells: how far it is, or the end.
type PastTold[T any] struct {
	PastSeen
	Done    *T       `json:"done,omitempty"`
	Problem *Problem `json:"problem,omitempty"`
}

// TryPolicy has the rules of a file judge what recorded sessions did, and yields how far
// that is, last what came of it.
func (c *Client) TryPolicy(ctx context.Context, r PolicyTry) iter.Seq2[PastTold[PolicyTried], error] {
	return stream[PastTold[PolicyTried]](ctx, c, http.MethodPost, "/v1/policy/try", r, "what the rules would have said")
}
