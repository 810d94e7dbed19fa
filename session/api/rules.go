package api

import (
	"context"
	"net/http"
)

// Ruled is a session in which a rule was just made.
type Ruled struct {
	Session
	// Beaten is the rule that decides wherever the new one would, which so doesn't hold,
	// and where that stands; escaped. "": it holds.
	Beaten string `json:"beaten,omitempty"`
}

// FolderRule is a rule that is put into a file, or taken out, without a session: the
// person's own with ExtentAlways, a project's with ExtentProject.
type FolderRule struct {
	Folder string `json:"folder"` // the project's, absolute, exact
	Rule   Rule   `json:"rule"`
}

// RuleKept is what became of a FolderRule.
type RuleKept struct {
	File   string `json:"file"`             // that was changed, escaped
	Beaten string `json:"beaten,omitempty"` // as a Ruled has it
}

// KeepRule puts a rule into a file. Sessions that run follow the files, but in step mode
// a file's rules let no connection through.
func (c *Client) KeepRule(ctx context.Context, r FolderRule) (RuleKept, error) {
	return fetch[RuleKept](ctx, c, http.MethodPost, "/v1/policy/rules", r)
}

// ForgetRule takes a rule out of a file.
func (c *Client) ForgetRule(ctx context.Context, r FolderRule) (RuleKept, error) {
	return fetch[RuleKept](ctx, c, http.MethodDelete, "/v1/policy/rules", r)
}
