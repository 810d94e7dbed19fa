// Package mcp is `stepbox mcp`: a server of the Model Context Protocol over standard
// input and output, which an agent starts in its sandbox. Its tools ask the supervisor
// over the socket that hooks use (see package tell), and what they can do is up to that:
// nothing here grants anything.
package mcp

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"stepbox/session/tell"
)

// instructions are what a model is told of the server.
const instructions = "You work in a sandbox that a person supervises with Stepbox. " +
	"These tools say what you may do there and why something was denied, mark states of the files, take your own last change back, and ask the person. " +
	"They can't give you any more rights."

// nothing is the input of tools that take none.
type nothing struct{}

type note struct {
	Text string `json:"text,omitempty" jsonschema:"a few words that say what this state of the files is"`
}

type question struct {
	Text string `json:"text" jsonschema:"the question, in one or two sentences"`
}

// Serve answers until standard input ends.
func Serve(ctx context.Context, version, socket string) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "stepbox", Title: "Stepbox", Version: version}, &mcp.ServerOptions{Instructions: instructions})
	add(s, socket, tell.ToolMay, "What may I do here: which mode is on, which hosts can be reached, what a person is asked about.", func(nothing) string { return "" })
	add(s, socket, tell.ToolWhy, "Why was something denied: the last commands and connections that were refused, and by what.", func(nothing) string { return "" })
	add(s, socket, tell.ToolChanges, "What have I changed so far, and what did the person say of it.", func(nothing) string { return "" })
	add(s, socket, tell.ToolCheckpoint, "Mark the state of the files as it is now, so that the person finds it again.", func(n note) string { return n.Text })
	add(s, socket, tell.ToolTakeBack, "Roll back the files of my own last action. What the person has kept stays.", func(nothing) string { return "" })
	add(s, socket, tell.ToolAsk, "Ask the person who supervises this session a question, and wait for the answer. An answer is words: it allows nothing.", func(q question) string { return q.Text })
	return s.Run(ctx, &mcp.StdioTransport{MaxLineLength: tell.MessageLimit})
}

// add adds a tool whose one argument, if any, is a text.
func add[In any](s *mcp.Server, socket, name, description string, text func(In) string) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: description}, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		ctx, cancel := context.WithTimeout(ctx, tell.AskWait)
		defer cancel()
		reply, err := tell.Say(ctx, socket, tell.Message{Call: &tell.Call{Tool: name, Text: text(in)}})
		switch {
		case err != nil:
			return nil, nil, err
		case reply.Failed:
			return nil, nil, errors.New(reply.Text)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: reply.Text}}}, nil, nil
	})
}
