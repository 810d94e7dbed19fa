// Package tell is what an agent's own hooks and an MCP server say to the supervisor of
// their session from inside the sandbox, and what they are answered: the messages, the
// programs that send them (`stepbox hook`, `stepbox mcp`, `xdg-open`), and what can be read out of
// the tool calls of each kind of agent.
//
// A message is one line of JSON over the socket that PID 1 listens at, see
// runner/socket. Anything in the sandbox can send one: what comes is the agent's
// claim, and hostile. Parsing bounds it and escapes it. The programs trust only the
// socket of process 1, and whatever goes wrong they end without a word and with 0, so
// that no agent fails for want of a supervisor.
package tell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Socket is what the socket is called.
const Socket = "tell"

// Bounds of what is said, in bytes.
const (
	MessageLimit = 1 << 20  // read of one message
	ReplyLimit   = 64 << 10 // of an answer
)

// Waits are how long a hook waits for its answer, and one that asks a person.
const (
	Wait    = 2 * time.Second
	AskWait = 10 * time.Minute
)

// Message is one thing that is said: one of its members.
type Message struct {
	Hook *Hook `json:"hook,omitempty"`
	Call *Call `json:"call,omitempty"`
	Open *Open `json:"open,omitempty"`
}

// Open is what a program wants opened in the person's browser.
type Open struct {
	URL string `json:"url"`
}

// Hook is what an agent handed to one of its hooks.
type Hook struct {
	Agent string          `json:"agent"` // the profile's name
	Event string          `json:"event"` // what the agent calls it
	Input json.RawMessage `json:"input"` // JSON as the agent has it
}

// The tools of `stepbox mcp`.
const (
	ToolMay        = "what_may_i_do"
	ToolWhy        = "why_denied"
	ToolChanges    = "my_changes"
	ToolCheckpoint = "checkpoint"
	ToolTakeBack   = "take_back_last"
	ToolAsk        = "ask_person"
)

// Call is one of a tool of `stepbox mcp`.
type Call struct {
	Tool string `json:"tool"`
	Text string `json:"text,omitempty"` // what its one argument is
}

// Reply is what is said to that.
type Reply struct {
	Context  string    `json:"context,omitempty"`  // what the agent's model is to be told
	Decision *Decision `json:"decision,omitempty"` // of a person, on the agent's own prompt
	Text     string    `json:"text,omitempty"`     // what a tool gives
	Failed   bool      `json:"failed,omitempty"`   // Text is why it gives nothing
}

// Decision is what a person says to an agent's own prompt.
type Decision struct {
	Allow  bool   `json:"allow"`
	Reason string `json:"reason,omitempty"`
}

// Parse reads a message. An error says what is wrong with it.
func Parse(line []byte) (Message, error) {
	var m Message
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return Message{}, fmt.Errorf("cannot read what the sandbox says: %w", err)
	}
	members := 0
	for _, there := range []bool{m.Hook != nil, m.Call != nil, m.Open != nil} {
		if there {
			members++
		}
	}
	if members != 1 {
		return Message{}, errors.New("cannot read what the sandbox says: it isn't one of a hook, a tool and a page to open")
	}
	return m, nil
}
