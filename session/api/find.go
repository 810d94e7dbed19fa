package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of what a person says of a session.
const (
	NameMost = 64   // characters, of a tag as well
	NoteMost = 2000 // characters, escaped
	TagsMost = 32
)

// NameForm says what a name or a tag has, see ValidName.
const NameForm = "1 to 64 letters, digits, dots, dashes or underscores"

// ValidName says whether a session may be called so, or a tag: letters, digits and a
// few marks, at most 64 of them.
func ValidName(s string) bool {
	n := utf8.RuneCountInString(s)
	return n > 0 && n <= NameMost && Escape(s) == s && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("._-", r)
	})
}

// Reserved says whether a word means something else where a session is named: a session's
// number, or moments of one's course, like 12 and 3..end.
func Reserved(word string) bool {
	for part := range strings.SplitSeq(word, "..") {
		if _, err := Moment(part).Parse(); err != nil && strings.Trim(part, "0123456789") != "" {
			return false
		}
	}
	return true
}

// NameFault says why a session can't be called so; "": it can.
func NameFault(name string) string {
	switch {
	case !ValidName(name):
		return fmt.Sprintf("a session's name has %s, not %q", NameForm, Escape(Trim(name, 80)))
	case Reserved(name):
		return fmt.Sprintf("a session can't be called %q: that means a session's number, or moments of its course", name)
	}
	return ""
}

// Label is what a person says of a session. It isn't evidence: it isn't part of the
// chain of events and can be changed at any time. In a request, nil leaves a field
// as it is.
type Label struct {
	Name    *string   `json:"name,omitempty"` // in place of the one it was started with; "" is that one again
	Tags    *[]string `json:"tags,omitempty"`
	Note    *string   `json:"note,omitempty"`
	Pinned  *bool     `json:"pinned,omitempty"`  // kept, whatever the rules of retention say
	Trashed *bool     `json:"trashed,omitempty"` // listed no more, until it is taken back or removed for good
}

// Label changes what is said of a session, and returns the session.
func (c *Client) Label(ctx context.Context, id string, l Label) (Session, error) {
	return fetch[Session](ctx, c, http.MethodPatch, path(id), l)
}

// Sort is an order of sessions.
type Sort string

const (
	SortNewest  Sort = ""        // started last first; live ones first of all
	SortLongest Sort = "longest" // how long they ran
	SortChanges Sort = "changes" // files changed
	SortName    Sort = "name"
)

// Query asks for sessions. Fields narrow each other down; the zero Query is all
// that aren't trashed.
type Query struct {
	Text    string    `json:"text,omitempty"`   // words, all of which are in its name, note, tags, commands, paths, hosts or terminal; the last may be begun only
	Agent   string    `json:"agent,omitempty"`  // a profile's name
	Folder  string    `json:"folder,omitempty"` // the project's, or one above it
	Tags    []string  `json:"tags,omitempty"`   // all of them
	State   string    `json:"state,omitempty"`  // live, past (all others), ended, interrupted, failed, unapplied, pinned or trashed
	Since   time.Time `json:"since,omitzero"`
	Before  time.Time `json:"before,omitzero"`
	Session string    `json:"session,omitempty"` // this one alone, by ID
	Parent  string    `json:"parent,omitempty"`  // forked from this one, by ID
	Sort    Sort      `json:"sort,omitempty"`
	After   string    `json:"after,omitempty"` // the Next of the page before
	Skip    int       `json:"skip,omitempty"`  // or so many of them, for who jumps about in a list
	Limit   int       `json:"limit,omitempty"` // sessions; 0 leaves it to the server
	Hits    int       `json:"hits,omitempty"`  // at most so many places of each; 0: none, only which sessions
}

// HitKind is where a text was found.
type HitKind string

const (
	HitLabel    HitKind = "label" // name, note, tags, folder, command
	HitAction   HitKind = "action"
	HitPath     HitKind = "path"
	HitAttempt  HitKind = "attempt"
	HitTerminal HitKind = "terminal"
)

// Hit is a place where a text was found.
type Hit struct {
	Kind   HitKind       `json:"kind"`
	Key    int64         `json:"key,omitempty"` // of the action or attempt
	Action int           `json:"action,omitempty"`
	Offset time.Duration `json:"offset"`        // since the session began, in nanoseconds
	Seq    uint64        `json:"seq,omitempty"` // of the event; 0: of the terminal
	Text   string        `json:"text"`          // the line that has it, escaped and bounded
}

// Moment is when it was; "" of a label, which is of no moment.
func (h Hit) Moment() Moment {
	switch {
	case h.Kind == HitLabel:
		return ""
	case h.Seq != 0:
		return MomentOf(h.Seq)
	}
	return Moment("+" + h.Offset.String())
}

// Found is a session that a Query finds.
type Found struct {
	Session Session `json:"session"`
	Hits    []Hit   `json:"hits,omitempty"`
	More    bool    `json:"more,omitempty"` // there are more places in it
}

// FoundPage is a part of what a Query finds.
type FoundPage struct {
	Found []Found `json:"found"`
	Next  string  `json:"next,omitempty"` // "" after the last
	Total int     `json:"total"`          // sessions that the Query finds
	// Behind is how many sessions aren't searched yet, but for what they are called:
	// asked again, there are fewer.
	Behind int      `json:"behind,omitempty"`
	Notes  []string `json:"notes,omitempty"` // what couldn't be searched, in words
}

// Find asks for sessions.
func (c *Client) Find(ctx context.Context, q Query) (FoundPage, error) {
	return fetch[FoundPage](ctx, c, http.MethodPost, "/v1/find", q)
}

// Searched asks again, with Find, until all that there is was searched.
func Searched(ctx context.Context, find func(context.Context, Query) (FoundPage, error), q Query) (FoundPage, error) {
	for {
		p, err := find(ctx, q)
		if err != nil || p.Behind == 0 {
			return p, err
		}
		select { // another process may be at it
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return p, ctx.Err()
		}
	}
}
