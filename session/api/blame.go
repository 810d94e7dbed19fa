package api

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Blame says of each line of a file who wrote it.
type Blame struct {
	Session string      `json:"session,omitempty"` // the id of the session as which it is asked; none for the project's file as it is now
	Path    string      `json:"path"`              // escaped
	Lines   []BlameLine `json:"lines"`             // of the file
	By      []Author    `json:"by"`                // each once; the first is the project, which has what no action wrote
	Removed bool        `json:"removed,omitempty"` // sessions aren't in the record any more: lines of the project's file may be of one of them
	Note    string      `json:"note,omitempty"`    // why there are no lines: binary, too large, not kept
}

// BlameLine is one line of a file.
type BlameLine struct {
	Text  string `json:"text"` // escaped; tabs are kept
	NoEnd bool   `json:"no_end,omitempty"`
	By    int    `json:"by"` // index in Blame.By
}

// Author is an action that wrote lines, of the session that is asked about or of one
// that it is a fork of.
type Author struct {
	Session string     `json:"session,omitempty"` // its id
	Name    string     `json:"name,omitempty"`    // the session's
	Action  int        `json:"action,omitempty"`  // 0: the project; with a session, it isn't known which one, and Title says why
	With    []int      `json:"with,omitempty"`    // actions that may have written it as well
	Kind    ActionKind `json:"kind,omitempty"`
	Title   string     `json:"title,omitempty"`
	Said    string     `json:"said,omitempty"` // the agent's own words
	At      time.Time  `json:"at,omitzero"`    // when the action began
}

// Blame asks which action wrote each line of a file as it was at a moment of a session.
func (c *Client) Blame(ctx context.Context, id, key string, at Moment) (Blame, error) {
	return fetch[Blame](ctx, c, http.MethodGet, path(id, "blame")+"?key="+url.QueryEscape(key)+"&at="+url.QueryEscape(string(at)), nil)
}

// FirstChange asks when a file first changed in a session, wherever that is looked at.
func (c *Client) FirstChange(ctx context.Context, id, key string) (At, error) {
	return fetch[At](ctx, c, http.MethodGet, path(id, "first")+"?key="+url.QueryEscape(key), nil)
}

// BlameToday asks which sessions' actions wrote each line of a project's file as it is
// on the host now, by what was applied. The key is that of its absolute path.
func (c *Client) BlameToday(ctx context.Context, key string) (Blame, error) {
	return fetch[Blame](ctx, c, http.MethodGet, "/v1/blame?key="+url.QueryEscape(key), nil)
}
