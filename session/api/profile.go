package api

import (
	"context"
	"net/http"
	"net/url"
)

// Profile is what is known about one kind of agent. Texts are escaped but for Text.
type Profile struct {
	Name       string   `json:"name"`
	Title      string   `json:"title,omitempty"`    // what a person calls the agent
	File       string   `json:"file,omitempty"`     // the person's own; "": it is built in
	Replaces   bool     `json:"replaces,omitempty"` // it takes the place of a built-in one
	Recognised []string `json:"recognised,omitempty"`
	Home       string   `json:"home,omitempty"` // the folder on the host that is its sessions' home
	Set        []string `json:"set,omitempty"`  // variables, NAME=value
	Passed     []string `json:"passed,omitempty"`
	Wanted     []string `json:"wanted,omitempty"`  // variables that it reads, and that pass if they are named
	SignIn     string   `json:"sign_in,omitempty"` // how a person signs in, in words
	Args       []string `json:"args,omitempty"`    // put behind its program's name
	Hosts      []string `json:"hosts,omitempty"`   // that it may reach
	Refused    []string `json:"refused,omitempty"` // hosts that are denied to it
	Prompts    []string `json:"prompts,omitempty"` // its arguments that turn off its own questions or sandbox, and what each does
	Wrappers   int      `json:"wrappers,omitempty"`
	Text       string   `json:"text,omitempty"` // the file, byte for byte; only of one that is asked for
	// Problem is why the file can't be used; of such a one little else is known.
	Problem string `json:"problem,omitempty"`
}

// Profiles lists the profiles of agents.
func (c *Client) Profiles(ctx context.Context) ([]Profile, error) {
	return fetch[[]Profile](ctx, c, http.MethodGet, "/v1/profiles", nil)
}

// Profile fetches one, with its text.
func (c *Client) Profile(ctx context.Context, name string) (Profile, error) {
	return fetch[Profile](ctx, c, http.MethodGet, "/v1/profiles/"+url.PathEscape(name), nil)
}
