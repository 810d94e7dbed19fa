package api

import (
	"context"
	"iter"
	"net/http"
)

// BisectRequest asks for the action after which a command fails.
type BisectRequest struct {
	Command string `json:"command"` // for a shell, in the project's folder
	From    Moment `json:"from,omitempty"`
	To      Moment `json:"to,omitempty"`
	Jobs    int    `json:"jobs,omitempty"` // runs at once; 0 leaves it to the machine
	Once    bool   `json:"once,omitempty"` // what the answer rests on isn't run again
}

// BisectStep is what led from one state of the files to the next: actions, or
// something else.
type BisectStep struct {
	Actions []int  `json:"actions,omitempty"` // the one that changed the files; several that ran at once
	Title   string `json:"title"`             // of the first; of what was no action, what it was
	Said    string `json:"said,omitempty"`
	From    Moment `json:"from"` // before and after it
	To      Moment `json:"to"`
}

// Words name the step on a line.
func (s BisectStep) Words() string {
	if len(s.Actions) == 0 {
		return s.Title
	}
	return Numbered(s.Actions) + ": " + s.Title
}

// BisectRun is one run of the command.
type BisectRun struct {
	State   int         `json:"state"`  // after so many of the steps
	Result  string      `json:"result"` // "passes", "fails" or "skipped"
	Again   bool        `json:"again,omitempty"`
	Stopped bool        `json:"stopped,omitempty"` // others made its result needless; there is none
	Check   CheckResult `json:"check"`
}

// Words say how the run went, of a search among those steps.
func (r BisectRun) Words(steps []BisectStep) string {
	words := r.Result
	if r.Again {
		words += " again"
	}
	if r.State > 0 && r.State <= len(steps) {
		return words + " after " + steps[r.State-1].Words()
	}
	return words + " before all of them"
}

// Bisected is the answer.
type Bisected struct {
	// Steps are those of which one broke it: a single one, or more where states
	// between them were skipped or are flaky. None when No says why there is no answer.
	Steps []BisectStep `json:"steps,omitempty"`
	No    string       `json:"no,omitempty"`

	All         int         `json:"all"`               // steps that were looked among
	Runs        int         `json:"runs"`              // of the search
	Again       int         `json:"again,omitempty"`   // runs to see whether what the answer rests on comes out the same
	Flaky       []int       `json:"flaky,omitempty"`   // states whose result didn't
	Failed      CheckResult `json:"failed,omitzero"`   // the run after the step
	Inexact     []Trouble   `json:"inexact,omitempty"` // files that weren't as they were then; the first of them
	InexactMore int         `json:"inexact_more,omitempty"`
}

// BisectProgress is a line of the answer to a bisection: Steps comes first, and Done or
// Problem last. Who closes the connection ends all runs.
type BisectProgress struct {
	Steps   []BisectStep `json:"steps,omitempty"`
	Line    string       `json:"line,omitempty"` // a run printed it
	State   int          `json:"state,omitempty"`
	Run     *BisectRun   `json:"run,omitempty"`
	Done    *Bisected    `json:"done,omitempty"`
	Problem *Problem     `json:"problem,omitempty"`
}

// Bisect finds the action after which a command fails, and tells how that goes. Ending
// ctx ends it, with nothing left of its sandboxes.
func (c *Client) Bisect(ctx context.Context, id string, r BisectRequest) iter.Seq2[BisectProgress, error] {
	return stream[BisectProgress](ctx, c, http.MethodPost, path(id, "bisect"), r, "how the bisection goes")
}
