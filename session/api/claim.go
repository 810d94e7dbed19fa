package api

import (
	"slices"
	"time"
)

// Claim is what an agent says of itself by way of its own hooks: that it calls a
// tool, say. Nobody has checked any of it, and anything in the sandbox can say the
// like. It is recorded, shown as the agent's words and put beside what came of it;
// it never changes a verdict. All texts are escaped.
type Claim struct {
	N         int64     `json:"n"` // counts up in the session
	At        time.Time `json:"at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`    // when the agent said that the call is over
	Event     string    `json:"event"`                // the hook's name: PreToolUse, PermissionRequest, SessionStart, …
	Tool      string    `json:"tool,omitempty"`       // what the agent calls the tool
	Input     string    `json:"input,omitempty"`      // what it gave it, JSON; the first of it
	Cut       bool      `json:"cut,omitempty"`        // there was more
	Text      string    `json:"text,omitempty"`       // what it is for, in the agent's words
	Command   string    `json:"command,omitempty"`    // that it names, exactly but for being escaped
	Paths     []string  `json:"paths,omitempty"`      // that it names
	Writes    bool      `json:"writes,omitempty"`     // its input has what is to be in them
	Call      string    `json:"call,omitempty"`       // the agent's own name of the call
	SessionID string    `json:"session_id,omitempty"` // and of its session
	Helper    string    `json:"helper,omitempty"`     // of the agent's own, which it started for a part of the work; "": the agent
	By        int       `json:"by,omitempty"`         // the action whose process said so; 0: the agent itself
	Actions   []int     `json:"actions,omitempty"`    // that came of it, the first of them
}

// Said is the event that says how a claim stands.
func (c Claim) Said(kind string) Event {
	c.Actions = slices.Clone(c.Actions)
	return Event{Kind: "claim." + kind, Claim: &c}
}

// Words is a claim in a line, as the agent's own words.
func (c Claim) Words() string { return claimWords(c.Tool, c.Text, c.Event) }

// Claimed is a Claim beside an action that came of it.
type Claimed struct {
	N    int64  `json:"n"`
	Tool string `json:"tool"`
	Text string `json:"text,omitempty"`
}

// Words is what the agent says, in a line.
func (c Claimed) Words() string { return claimWords(c.Tool, c.Text, "") }

func claimWords(tool, text, otherwise string) string {
	if tool == "" {
		tool = otherwise
	}
	if text == "" {
		return tool
	}
	return tool + " — “" + text + "”"
}
