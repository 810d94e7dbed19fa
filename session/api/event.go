package api

import "time"

// Note is something Stepbox wants its person to know.
type Note struct {
	ID   int64     `json:"id"`
	At   time.Time `json:"at"`
	Text string    `json:"text"`
	Warn bool      `json:"warn,omitempty"`
}

// Event is one thing that happened. Exactly one of the pointers is set, and it
// holds the resource as it is after the event. Events with a Seq are recorded
// before they are sent; those without pass by.
type Event struct {
	Seq        uint64      `json:"seq,omitempty"`
	At         time.Time   `json:"at"`
	Kind       string      `json:"kind"` // session.*, action.*, question.*, decision, exec.*, execs.ended, attempt.*, checkpoint, rollback.*, apply.*, claim.*, note, usage, changes
	Session    *Session    `json:"session,omitempty"`
	Action     *Action     `json:"action,omitempty"`
	Question   *Question   `json:"question,omitempty"`
	Decision   *Decision   `json:"decision,omitempty"`
	Exec       *Exec       `json:"exec,omitempty"`
	Ends       *Ends       `json:"ends,omitempty"`
	Attempt    *Attempt    `json:"attempt,omitempty"`
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	Rollback   *Rollback   `json:"rollback,omitempty"`
	Apply      *Apply      `json:"apply,omitempty"`
	Claim      *Claim      `json:"claim,omitempty"`
	Note       *Note       `json:"note,omitempty"`
	Usage      *Usage      `json:"usage,omitempty"`   // passing
	Changes    *int64      `json:"changes,omitempty"` // passing: the newest version of Changes
}
