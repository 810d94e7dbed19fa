package api

import (
	"context"
	"io"
	"net/http"
)

// The forms in which a session is exported. docs/export.md says what is in each.
const (
	ExportPatch  = "patch"  // its changes, as git apply takes them
	ExportCast   = "cast"   // the terminal as asciicast v3
	ExportCast2  = "cast2"  // the same as v2
	ExportJSONL  = "jsonl"  // all events, one on a line
	ExportHTML   = "html"   // a report for a browser
	ExportInToto = "intoto" // an in-toto statement, signed
)

// ExportFormats lists them.
var ExportFormats = []string{ExportPatch, ExportCast, ExportCast2, ExportJSONL, ExportHTML, ExportInToto}

// ExportRequest says what is exported.
type ExportRequest struct {
	Format   string `json:"format"`
	NoRedact bool   `json:"no_redact,omitempty"` // with the secrets as they are
	Unsigned bool   `json:"unsigned,omitempty"`  // of ExportInToto: the bare statement
	Output   bool   `json:"output,omitempty"`    // of ExportJSONL: with the terminal's output

	// Of ExportPatch: which changes.
	PatchRequest
}

// Secret is what an export replaces: what has the shape of one, in one place.
type Secret struct {
	Kind  string `json:"kind"`  // in words: "GitHub token"
	Where string `json:"where"` // in words: "the terminal's output"
	Count int    `json:"count"`
}

// ExportPlan says what an export would redact.
type ExportPlan struct {
	Secrets []Secret `json:"secrets"`
}

// ExportPlan asks what an export would redact. It takes as long as the export.
func (c *Client) ExportPlan(ctx context.Context, id string, r ExportRequest) (ExportPlan, error) {
	return fetch[ExportPlan](ctx, c, http.MethodPost, path(id, "export-plan"), r)
}

// Export gives a session in another form. What breaks off ends with an error. The
// caller closes it.
func (c *Client) Export(ctx context.Context, id string, r ExportRequest) (io.ReadCloser, error) {
	resp, err := c.do(ctx, http.MethodPost, path(id, "export"), r)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}
