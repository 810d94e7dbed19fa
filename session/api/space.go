package api

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// Space is what a session takes on the disk, in bytes.
type Space struct {
	Files     int64 `json:"files"`     // what it wrote in the project, kept until it is removed
	Temporary int64 `json:"temporary"` // its /tmp
	Beside    int64 `json:"beside"`    // what it wrote in other folders of the person's
	Record    int64 `json:"record"`    // its terminal's output and the like, without contents of files, which sessions share

	Written []Written `json:"written,omitempty"` // to folders that it has besides the project
}

// Written is what a session wrote to a folder besides the project.
type Written struct {
	Dir   string   `json:"dir"`            // escaped
	Paths []string `json:"paths"`          // the first of them, relative and escaped
	More  bool     `json:"more,omitempty"` // there are others, or some that can't be looked at
}

// CollectRequest says what is to be removed: always contents that no session names any
// more, and sessions that were put into the trash a while ago; and sessions that have ended, the
// oldest first, as long as any of these asks for it. Pinned ones stay.
type CollectRequest struct {
	Dry       bool          `json:"dry,omitempty"`        // only say what would be
	OlderThan time.Duration `json:"older_than,omitempty"` // those that ended longer ago
	Keep      *int          `json:"keep,omitempty"`       // all but the newest so many
	MaxSize   int64         `json:"max_size,omitempty"`   // until what is left takes no more bytes than this
	Unapplied bool          `json:"unapplied,omitempty"`  // also those with changes that were never applied, or commits that were never fetched, and folders of sessions that the record doesn't know
}

// Dropped is a session that a collection removed, or would.
type Dropped struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Number  int64     `json:"number"`
	At      time.Time `json:"at"`                // when it ended, or began if that isn't known
	Why     string    `json:"why"`               // in words
	Stays   string    `json:"stays,omitempty"`   // why it stays all the same; "": it doesn't
	Bytes   int64     `json:"bytes,omitempty"`   // that only it had
	Applied bool      `json:"applied,omitempty"` // something of it was: blame needs it to know that
}

// Collecting is how a collection goes: a session, or how many of how many were weighed.
type Collecting struct {
	Dropped *Dropped   `json:"dropped,omitempty"`
	Weighed int        `json:"weighed,omitempty"`
	Of      int        `json:"of,omitempty"`
	Done    *Collected `json:"done,omitempty"`
	Problem *Problem   `json:"problem,omitempty"` // why it couldn't go on; the last line then
}

// Collected is what a collection removed from the record, or would remove.
type Collected struct {
	Sessions int   `json:"sessions"`
	Freed    int64 `json:"freed"`          // bytes that only those sessions had, contents included
	Bodies   int   `json:"bodies"`         // contents that no session names
	Bytes    int64 `json:"bytes"`          // of those, and of the folders
	Folders  int   `json:"folders"`        // of sessions that the record doesn't have
	Left     int64 `json:"left,omitempty"` // bytes that what is left takes, where sessions were weighed
	Dry      bool  `json:"dry,omitempty"`
}

// Collect removes what is asked for and tells how that goes; the last value has Done or
// Problem set. Contents are removed only while no session runs: else it is busy.
func (c *Client) Collect(ctx context.Context, r CollectRequest) iter.Seq2[Collecting, error] {
	return stream[Collecting](ctx, c, http.MethodPost, "/v1/collect", r, "what is removed")
}
