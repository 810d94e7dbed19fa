package api

import (
	"context"
	"net/http"
	"net/url"
)

// ProjectPolicy is the policy that comes with a project, for a person to confirm.
type ProjectPolicy struct {
	Folder  string       `json:"folder"` // absolute host path, exact
	Hash    string       `json:"hash"`   // of all Files; "": the project has none
	Trusted bool         `json:"trusted"`
	Loosens bool         `json:"loosens"`           // it would allow something, once it is trusted
	Problem string       `json:"problem,omitempty"` // why it can't be used
	Files   []PolicyText `json:"files,omitempty"`   // as they were read; none where there is a Problem
}

// PolicyText is what a file of a policy says.
type PolicyText struct {
	Path string `json:"path"` // escaped
	Text string `json:"text"` // exact
}

// TrustRequest confirms a project's policy, or, without Hash, forgets that it was.
type TrustRequest struct {
	Folder string `json:"folder"`
	Hash   string `json:"hash,omitempty"` // that was shown
}

// ProjectPolicy is the policy that comes with a project.
func (c *Client) ProjectPolicy(ctx context.Context, folder string) (ProjectPolicy, error) {
	return fetch[ProjectPolicy](ctx, c, http.MethodGet, "/v1/policy/trust?folder="+url.QueryEscape(folder), nil)
}

// Trust confirms a project's policy as it was shown: what it allows holds then, in
// sessions that run as well. Changed, it isn't trusted any more.
func (c *Client) Trust(ctx context.Context, r TrustRequest) (ProjectPolicy, error) {
	return fetch[ProjectPolicy](ctx, c, http.MethodPost, "/v1/policy/trust", r)
}

// Distrust forgets whatever of a project's policy was confirmed.
func (c *Client) Distrust(ctx context.Context, folder string) (ProjectPolicy, error) {
	return fetch[ProjectPolicy](ctx, c, http.MethodDelete, "/v1/policy/trust", TrustRequest{Folder: folder})
}
