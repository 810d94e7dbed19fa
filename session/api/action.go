package api

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ActionKind is what an agent did.
type ActionKind string

const (
	KindCommand ActionKind = "command"
	KindEdit    ActionKind = "edit"
	KindCall    ActionKind = "call" // a question of the agent's own: nothing runs and nothing changes
)

// Title is the kind as a title begins.
func (k ActionKind) Title() string {
	switch k {
	case KindEdit:
		return "Edit"
	case KindCall:
		return "Question"
	}
	return "Command"
}

// ActionState is where an action is in its life. See session's transition table.
type ActionState string

const (
	ActionHeld      ActionState = "held"      // waits for a verdict before it runs
	ActionRunning   ActionState = "running"   // released
	ActionEnded     ActionState = "ended"     // its leader exited
	ActionDenied    ActionState = "denied"    // never ran
	ActionAbandoned ActionState = "abandoned" // its process went away while held
)

// CutOff is the reason of what a dead supervisor left open.
const CutOff = "the session was interrupted"

// Review is what a person said of an action's changes.
type Review string

const (
	ReviewNone       Review = ""           // nothing changed, or it hasn't ended
	ReviewOpen       Review = "unreviewed" // changes wait to be kept or rolled back
	ReviewKept       Review = "kept"
	ReviewRolledBack Review = "rolled back" // nothing of the changes is left
)

// Span is two checkpoints, of which the second goes on from the first, directly or
// over others in between.
type Span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Action is one thing the agent did that a person may judge.
type Action struct {
	N            int         `json:"n"` // counts up in the session from 1; housekeeping counts too
	Kind         ActionKind  `json:"kind"`
	State        ActionState `json:"state"`
	Review       Review      `json:"review,omitempty"`
	Title        string      `json:"title"`                  // the command as a person would write it, or what was edited
	Housekeeping bool        `json:"housekeeping,omitempty"` // the agent's own upkeep, folded away
	Verdict      Verdict     `json:"verdict,omitempty"`
	Rule         string      `json:"rule,omitempty"` // what gave the verdict, or asked
	By           string      `json:"by,omitempty"`   // who decided: "rule", or what the client called itself
	Reason       string      `json:"reason,omitempty"`
	StartedAt    time.Time   `json:"started_at"` // when it was first seen
	ReleasedAt   time.Time   `json:"released_at,omitzero"`
	EndedAt      time.Time   `json:"ended_at,omitzero"`
	Exit         *Exit       `json:"exit,omitempty"`
	Execs        int         `json:"execs,omitempty"`
	LeftRunning  int         `json:"left_running,omitempty"` // descendants that outlived the leader
	Files        int         `json:"files,omitempty"`        // changed by it
	Kept         string      `json:"kept,omitempty"`         // why its changes were kept without a question
	Added        int         `json:"added,omitempty"`        // lines
	Removed      int         `json:"removed,omitempty"`
	Effects      *Effects    `json:"effects,omitempty"`     // what it did to the files; nil: nothing, or it hasn't ended
	Claim        *Claimed    `json:"claim,omitempty"`       // the tool call that it came of, as the agent tells
	Shared       bool        `json:"shared,omitempty"`      // others ran meanwhile, so some changes may be theirs
	SharedWith   []int       `json:"shared_with,omitempty"` // of an edit: the actions that may have made some of it
	Before       int64       `json:"before,omitempty"`      // checkpoint it can be rolled back to
	After        int64       `json:"after,omitempty"`       // checkpoint at its end
	Spans        []Span      `json:"spans,omitempty"`       // all between which its changes were made
	KeptTo       int64       `json:"kept_to,omitempty"`     // the last checkpoint whose changes of it somebody has kept, or a rule
	ReviewedBy   string      `json:"reviewed_by,omitempty"` // who kept its changes, when that was said by itself
	Reviewed     Review      `json:"reviewed,omitempty"`    // of one that was rolled back: its review before that
}

// Said is what the agent says that it is for: of the tool call that it came of, or else
// what it committed with; "" where it said nothing.
func (a Action) Said() string {
	if a.Claim != nil && a.Claim.Text != "" {
		return a.Claim.Text
	}
	if a.Effects != nil {
		return a.Effects.Committed
	}
	return ""
}

// Judged says whether a rule or a person let the action run, or didn't. An edit is
// just there: it has a verdict once a person has given one.
func (a Action) Judged() bool { return a.Verdict != "" && (a.Rule != "" || a.By != "rule") }

// Numbered names actions by their numbers, the first thirty of them.
func Numbered(ns []int) string {
	var out []string
	for _, n := range ns[:min(len(ns), 30)] {
		out = append(out, "#"+strconv.Itoa(n))
	}
	last := len(out) - 1
	switch more := len(ns) - len(out); {
	case more > 0:
		out = append(out, fmt.Sprintf("%d more", more))
		last++
	case last <= 0:
		return strings.Join(out, "")
	}
	return strings.Join(out[:last], ", ") + " and " + out[last]
}
