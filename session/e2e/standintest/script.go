// Package standintest holds local HTTP servers that speak the protocols of model
// providers from a fixed script, so that tests run real agents without a model,
// an account or a network.
//
// It is for tests only. The script, its turns and the record of what was asked
// are free of any protocol; each protocol is a file of its own that turns its
// requests into a Request and a Turn into its answer. A server speaks all of
// them at once, by path. Its methods may be called from any goroutine.
package standintest

import (
	"net/http"
	"slices"
	"strings"
)

// Turn is what the model says once: words, then calls of the agent's tools.
// A turn without calls ends the agent's work.
type Turn struct {
	Text  string
	Calls []Call
}

// Call is one use of a tool that the agent offers. The input is what the
// agent's tool takes: an object, or for a tool of free text a string.
type Call struct {
	Tool  string
	Input any
}

// Step makes the turn that answers a request. What it needs to know, such as
// how the agent names its tools and what came of the last calls, is in there.
type Step func(Request) Turn

// Say is a turn of words alone.
func Say(text string) Step { return func(Request) Turn { return Turn{Text: text} } }

// Use is a turn that calls one tool.
func Use(tool string, input any) Step {
	return func(Request) Turn { return Turn{Calls: []Call{{Tool: tool, Input: input}}} }
}

// Request is what an agent sent, with what all protocols have in common.
type Request struct {
	Method string
	Path   string // with its query
	Header http.Header
	Body   []byte

	// Tools are the names of those that the agent offers.
	Tools []string
	// Formed says that the answer has to be JSON of a given form.
	Formed bool
	// Results are what came of calls, as words, in the order in which they
	// were made, over the whole conversation.
	Results []string
}

// Aside tells whether the request isn't a turn of the conversation, but for a title
// or the like: it offers no tools, or wants a form.
func (r Request) Aside() bool { return len(r.Tools) == 0 || r.Formed }

// Offers tells whether the agent has a tool of that name.
func (r Request) Offers(tool string) bool { return slices.Contains(r.Tools, tool) }

// Last is what came of the last call, or nothing.
func (r Request) Last() string {
	if len(r.Results) == 0 {
		return ""
	}
	return r.Results[len(r.Results)-1]
}

// Says tells whether words are anywhere in the request's body.
func (r Request) Says(words string) bool { return strings.Contains(string(r.Body), words) }
