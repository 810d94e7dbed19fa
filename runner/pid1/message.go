package pid1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// MessageLimit bounds a message in either direction, in bytes.
const MessageLimit = 4096

// ProgramLimit bounds a Program's encoding, in bytes; the kernel's own bound on
// arguments and environment together is a quarter of the stack limit.
const ProgramLimit = 8 << 20

// Program is what PID 1 starts: the agent.
type Program struct {
	Argv []string // Argv[0] is looked up in the environment's PATH unless it has a slash
	Env  []string
	Cwd  string // absolute

	Rlimits []Rlimit // of the agent and what it starts
	Sockets []string // file names in SocketDir, at most MaxSockets, to listen at before it starts

	// Common is a folder that other sandboxes have too: no socket can be made in it, as by that they could hand
	// each other what they have open. "" is none. Own are those below it that they haven't.
	Common string
	Own    []string
}

// Rlimit is a resource limit, soft and hard, that is lowered to Value where it
// is higher. See getrlimit(2).
type Rlimit struct {
	Resource int
	Value    uint64
}

// encoded is a Program in JSON, whose strings can't hold every byte.
type encoded struct {
	Argv, Env Exact
	Cwd       []byte
	Rlimits   []Rlimit
	Sockets   []string
	Common    []byte
	Own       Exact
}

// MarshalJSON keeps the exact bytes.
func (p Program) MarshalJSON() ([]byte, error) {
	return json.Marshal(encoded{Argv: p.Argv, Env: p.Env, Cwd: []byte(p.Cwd), Rlimits: p.Rlimits, Sockets: p.Sockets, Common: []byte(p.Common), Own: p.Own})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Program) UnmarshalJSON(b []byte) error {
	var e encoded
	if err := json.Unmarshal(b, &e); err != nil {
		return err
	}
	*p = Program{Argv: e.Argv, Env: e.Env, Cwd: string(e.Cwd), Rlimits: e.Rlimits, Sockets: e.Sockets, Common: string(e.Common), Own: e.Own}
	return nil
}

// Exact are strings of any bytes, which JSON's own can't hold.
type Exact []string

// MarshalJSON keeps the exact bytes.
func (l Exact) MarshalJSON() ([]byte, error) {
	out := make([][]byte, len(l))
	for i, s := range l {
		out[i] = []byte(s)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *Exact) UnmarshalJSON(b []byte) error {
	var in [][]byte
	err := json.Unmarshal(b, &in)
	*l = make(Exact, len(in))
	for i, s := range in {
		(*l)[i] = string(s)
	}
	return err
}

// Kind names a message.
type Kind string

// What PID 1 says, in this order: Ready with the gate's listener attached and
// behind it the Program's sockets, if they could be had; Started, Exited; or Failed instead of any of the first two. It is told Start
// (with the Program in an attached file), Go and End.
const (
	Ready   Kind = "ready"   // the filter stands; nothing has run yet
	Started Kind = "started" // the agent's program runs
	Exited  Kind = "exited"  // the agent ended; its output may still be in the terminal
	Failed  Kind = "failed"  // the agent can't be started; PID 1 exits

	Start Kind = "start"
	Go    Kind = "go"
	End   Kind = "end" // exit, which kills whatever is left
)

// Message is one message between PID 1 and the supervisor.
type Message struct {
	Kind   Kind   `json:"kind"`
	Error  string `json:"error,omitempty"`  // of Failed: one line for a person
	Code   int    `json:"code,omitempty"`   // of Exited: 0…255; of Failed: CannotRun, NotFound or 0
	Signal int    `json:"signal,omitempty"` // of Exited: 1…64, 0 when the agent exited by itself
}

// Parse reads a message from PID 1. PID 1 lives among hostile processes, so
// whatever isn't exactly what an honest one sends is an error.
func Parse(p []byte) (Message, error) {
	if len(p) > MessageLimit {
		return Message{}, errors.New("a message from PID 1 is too large")
	}
	d := json.NewDecoder(bytes.NewReader(p))
	d.DisallowUnknownFields()
	var m Message
	if err := d.Decode(&m); err != nil {
		return Message{}, fmt.Errorf("cannot read a message from PID 1: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Message{}, errors.New("a message from PID 1 has something after it")
	}
	var ok bool
	switch m.Kind {
	case Ready, Started:
		ok = m == Message{Kind: m.Kind}
	case Failed:
		ok = m == Message{Kind: Failed, Error: m.Error, Code: m.Code} && m.Error != "" && printable(m.Error) &&
			(m.Code == 0 || m.Code == CannotRun || m.Code == NotFound)
	case Exited:
		ok = m.Error == "" && m.Code >= 0 && m.Code <= 255 && m.Signal >= 0 && m.Signal <= 64 &&
			(m.Code == 0 || m.Signal == 0)
	}
	if !ok {
		return Message{}, fmt.Errorf("a message from PID 1 of kind %.20q doesn't hold what it should", m.Kind)
	}
	return m, nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}
