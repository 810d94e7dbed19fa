package api

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
)

// CheckoutRequest asks for the project as a session saw it at a moment, or some of it,
// in a folder.
type CheckoutRequest struct {
	At    Moment   `json:"at"`
	Into  []byte   `json:"into"`            // absolute, exact; it must be empty, or not there yet
	Paths [][]byte `json:"paths,omitempty"` // in the project, exact, each with all below it; none: all
}

// Checkout is what was written.
type Checkout struct {
	At      At        `json:"at"`
	Into    string    `json:"into"` // escaped
	Files   int       `json:"files"`
	Links   int       `json:"links"` // symbolic ones
	Folders int       `json:"folders"`
	Bytes   int64     `json:"bytes"`
	Inexact []Trouble `json:"inexact,omitempty"` // what isn't there as it was; the first of them
	More    int       `json:"more,omitempty"`    // further ones
}

// Checkout writes the project as it was to a folder on the host. Git's own folders
// are never written, nor what is neither a file, a folder nor a symbolic link.
func (c *Client) Checkout(ctx context.Context, id string, r CheckoutRequest) (Checkout, error) {
	return fetch[Checkout](ctx, c, http.MethodPost, path(id, "checkout"), r)
}

// Compare yields the differences of all files between what one session saw at a
// moment and what another saw, by path. A path that can't be compared says so in its
// note.
func (c *Client) Compare(ctx context.Context, id string, at Moment, other string, then Moment) iter.Seq2[FileDiff, error] {
	q := url.Values{"at": {string(at)}, "with": {other}, "then": {string(then)}}
	return stream[FileDiff](ctx, c, http.MethodGet, path(id, "compare")+"?"+q.Encode(), nil, "the differences")
}

// ComparePatch is Compare as a patch that git apply takes, of the paths that match a
// pattern, or of all without any. The caller closes it.
func (c *Client) ComparePatch(ctx context.Context, id string, at Moment, other string, then Moment, globs []string) (io.ReadCloser, error) {
	q := url.Values{"at": {string(at)}, "with": {other}, "then": {string(then)}, "path": globs, "patch": {""}}
	resp, err := c.do(ctx, http.MethodGet, path(id, "compare")+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}
