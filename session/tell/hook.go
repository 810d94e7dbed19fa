package tell

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"stepbox/runner/socket"
)

// RunHook is `stepbox hook AGENT EVENT`: it says to the supervisor what the agent
// handed over, and prints what the agent is to be answered. When nothing answers in
// time, or it isn't started where there is a supervisor, it says nothing.
func RunHook(agent, event string, in io.Reader, out io.Writer, at string) {
	wait := Wait
	if event == Permission {
		wait = AskWait
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	said := make(chan json.RawMessage, 1)
	go func() { said <- short(in) }()
	var input json.RawMessage
	select {
	case input = <-said:
	case <-time.After(Wait): // an agent that never closes it is left alone, too
	}
	if input == nil {
		return
	}
	reply, err := Say(ctx, at, Message{Hook: &Hook{Agent: agent, Event: event, Input: input}})
	if err != nil {
		return
	}
	if text := output(event, reply); text != nil {
		_, _ = out.Write(append(text, '\n'))
	}
}

// Bounds of what a hook is handed, and of a text in a tool's input, in bytes.
const (
	maxHanded = 64 << 20
	maxText   = 64 << 10
)

// short is what an agent hands to a hook without what nobody reads, such as all that a
// tool gave; nil: it isn't what an agent hands over.
func short(in io.Reader) json.RawMessage {
	var handed input
	if json.NewDecoder(io.LimitReader(in, maxHanded)).Decode(&handed) != nil {
		return nil
	}
	var args map[string]any
	if json.Unmarshal(handed.Input, &args) == nil {
		for name, value := range args {
			if s, ok := value.(string); ok && len(s) > maxText {
				args[name] = s[:maxText]
			}
		}
		if shorter, err := json.Marshal(args); err == nil {
			handed.Input = shorter
		}
	}
	out, err := json.Marshal(handed)
	if err != nil {
		return nil
	}
	return out
}

// Say sends a message and waits for its answer.
func Say(ctx context.Context, at string, m Message) (Reply, error) {
	line, err := json.Marshal(m)
	if err != nil {
		return Reply{}, fmt.Errorf("cannot encode a message: %w", err)
	}
	if len(line) >= MessageLimit {
		return Reply{}, errors.New("cannot say that much at once")
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", at)
	if err != nil {
		return Reply{}, fmt.Errorf("cannot reach Stepbox: %w", err)
	}
	defer c.Close()
	if err := ours(c); err != nil {
		return Reply{}, err
	}
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if _, err := c.Write(append(line, '\n')); err != nil {
		return Reply{}, fmt.Errorf("cannot reach Stepbox: %w", err)
	}
	var r Reply
	// This end stays open for writing: the supervisor sees by it who still waits.
	if err := json.NewDecoder(bufio.NewReader(io.LimitReader(c, ReplyLimit))).Decode(&r); err != nil {
		return Reply{}, fmt.Errorf("cannot read Stepbox's answer: %w", err)
	}
	return r, nil
}

// ours says whether process 1 listens at the other end: an agent's program can put a
// socket of its own there, but not be that.
func ours(c net.Conn) error {
	cred, err := socket.Peer(c)
	if err != nil {
		return err
	}
	if cred.Pid != 1 {
		return errors.New("something else than Stepbox listens there")
	}
	return nil
}

// Permission is the hook in which an agent asks whether it may call a tool.
const Permission = "PermissionRequest"

// Told says whether an answer to a hook may tell the agent's model something.
func Told(event string) bool {
	return event == "PostToolUse" || event == "UserPromptSubmit" || event == "SessionStart"
}

// Next says whether an agent comes to a hook only when no prompt of its own is open any
// more, but for those of calls that it makes at once.
func Next(event string) bool {
	return event == "PreToolUse" || event == "UserPromptSubmit" || event == "SessionStart" || event == "Stop"
}

// output is what an agent expects of a hook, nil for nothing. Claude Code and Codex
// have it alike.
func output(event string, r Reply) []byte {
	type decision struct {
		Behavior string `json:"behavior"`
		Message  string `json:"message,omitempty"`
	}
	specific := struct {
		Event    string    `json:"hookEventName"`
		Context  string    `json:"additionalContext,omitempty"`
		Decision *decision `json:"decision,omitempty"`
	}{Event: event}
	switch {
	case event == Permission && r.Decision != nil && r.Decision.Allow:
		specific.Decision = &decision{Behavior: "allow"}
	case event == Permission && r.Decision != nil:
		specific.Decision = &decision{"deny", r.Decision.Reason}
	case Told(event) && r.Context != "":
		specific.Context = r.Context
	default:
		return nil
	}
	out, err := json.Marshal(map[string]any{"hookSpecificOutput": specific})
	if err != nil {
		return nil
	}
	return out
}
