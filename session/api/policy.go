package api

import (
	"context"
	"net/http"
)

// PolicyFile is a file with rules that hold in a session.
type PolicyFile struct {
	For     Extent `json:"for"`               // always: the person's own; project: the project's
	Path    string `json:"path"`              // escaped
	Hash    string `json:"hash,omitempty"`    // of what is in force, BLAKE3; "": there is no such file
	Trusted bool   `json:"trusted,omitempty"` // a person confirmed it; of another what it allows doesn't hold
	Loosens bool   `json:"loosens,omitempty"` // it isn't trusted and would allow something
	Problem string `json:"problem,omitempty"` // why the file as it is now isn't in force, but as it was before
}

// PolicyOf says whose rules are meant: those of a session, or those that one would
// begin with in a project folder.
type PolicyOf struct {
	Session string `json:"session,omitempty"` // id
	Project string `json:"project,omitempty"` // absolute host path
	Agent   string `json:"agent,omitempty"`   // the profile's name; "" is a session's own, or the one of programs that nobody knows
	// Files, if any are named, are the rules beside the built-in: whole, and without
	// the person's own and the project's. Absolute host paths.
	Files []string `json:"files,omitempty"`
}

// Policy is the rules of a session or a project, layer by layer from the general to
// the specific.
type Policy struct {
	Layers []PolicyLayer `json:"layers"`
}

// PolicyLayer is one source of rules. Texts are escaped.
type PolicyLayer struct {
	Name  string   `json:"name"`
	File  string   `json:"file,omitempty"`  // absolute; "": it isn't in a file
	Files []string `json:"files,omitempty"` // that one and those that it includes
	// Absent says that there is no such file. Confirmed says that all in it holds: of
	// a project's policy that nobody confirmed only what takes away.
	Absent    bool            `json:"absent,omitempty"`
	Confirmed bool            `json:"confirmed"`
	Hash      string          `json:"hash,omitempty"` // of what the files hold
	Problems  []PolicyProblem `json:"problems,omitempty"`
	Entries   []PolicyEntry   `json:"entries,omitempty"`
}

// PolicyEntry is one thing that a layer says.
type PolicyEntry struct {
	// Section is commands, network, hide, read-only, review, limits, pass, set, mounts,
	// ask or checks.
	Section string `json:"section"`
	Text    string `json:"text"` // in words, with its verdict and why
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Idle    bool   `json:"idle,omitempty"` // it doesn't hold, since nobody confirmed the file
}

// PolicyProblem is what is wrong in a file.
type PolicyProblem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // from 1; 0: the whole file
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

// PolicyFiles names files, as absolute host paths.
type PolicyFiles struct {
	Files []string `json:"files"`
}

// PolicyChecked is what is wrong in some files, and in those that they include.
type PolicyChecked struct {
	Files    []string        `json:"files"` // that were read
	Problems []PolicyProblem `json:"problems"`
}

// ExplainRequest asks what rules say of one thing: a command, a connection, a file, a variable of
// the environment, a limit or a section.
type ExplainRequest struct {
	PolicyOf
	Argv     []string `json:"argv,omitempty"` // a single one with spaces is a line for a shell
	Cwd      string   `json:"cwd,omitempty"`  // absolute; "": the project's folder
	Host     string   `json:"host,omitempty"` // HOST:PORT[/PROTOCOL]
	Program  string   `json:"program,omitempty"`
	Path     string   `json:"path,omitempty"`     // absolute, or relative to the project
	Variable string   `json:"variable,omitempty"` // name of one of the environment
	Limit    string   `json:"limit,omitempty"`    // name of one, as memory or action.files
	Section  string   `json:"section,omitempty"`  // names, ask or checks
}

// Explained is what rules say, and why. Texts are escaped.
type Explained struct {
	What    string  `json:"what"`              // that was asked about
	Verdict Verdict `json:"verdict,omitempty"` // of a command or a connection
	Treated string  `json:"treated,omitempty"` // of a file: shown, hidden, read-only or review; of a variable: set, passed or kept out; of a limit: limited or unlimited; of a section: set or usual
	Ruling
	Parts []PartRuling `json:"parts,omitempty"` // of a command that is made of several
	Notes []string     `json:"notes,omitempty"` // what else matters, in sentences
}

// Ruling is a rule that decided, and where it stands.
type Ruling struct {
	Rule  string `json:"rule"`            // in words
	Layer string `json:"layer,omitempty"` // "": no rule, but what is so without one
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
}

// PartRuling is what rules say of one simple command.
type PartRuling struct {
	Text    string  `json:"text"`
	Verdict Verdict `json:"verdict"`
	Ruling
}

// PolicyTest asks whether rules say what files of expectations want.
type PolicyTest struct {
	PolicyOf
	Tests []string `json:"tests"` // absolute host paths
}

// PolicyTested is what became of a PolicyTest.
type PolicyTested struct {
	Met   int         `json:"met"` // expectations
	Unmet []PolicyGap `json:"unmet,omitempty"`
}

// PolicyGap is an expectation that isn't met.
type PolicyGap struct {
	File string `json:"file"`
	Line int    `json:"line"`
	What string `json:"what"`
	Want string `json:"want"`
	Got  string `json:"got"`
}

// PolicyMade is a file of rules that was just made.
type PolicyMade struct {
	File string `json:"file"`
}

// Policy fetches the rules of a session or a project.
func (c *Client) Policy(ctx context.Context, of PolicyOf) (Policy, error) {
	return fetch[Policy](ctx, c, http.MethodPost, "/v1/policy/show", of)
}

// CheckPolicy reads files of rules and says what is wrong in them.
func (c *Client) CheckPolicy(ctx context.Context, files ...string) (PolicyChecked, error) {
	return fetch[PolicyChecked](ctx, c, http.MethodPost, "/v1/policy/check", PolicyFiles{files})
}

// Explain says which rule decides on a command, a connection or a file, and why.
func (c *Client) Explain(ctx context.Context, r ExplainRequest) (Explained, error) {
	return fetch[Explained](ctx, c, http.MethodPost, "/v1/policy/explain", r)
}

// TestPolicy says which expectations rules don't meet.
func (c *Client) TestPolicy(ctx context.Context, r PolicyTest) (PolicyTested, error) {
	return fetch[PolicyTested](ctx, c, http.MethodPost, "/v1/policy/test", r)
}

// InitPolicy writes a file of rules to begin with, a project's or, without one, the
// person's own. A file that is there stays.
func (c *Client) InitPolicy(ctx context.Context, project string) (PolicyMade, error) {
	return fetch[PolicyMade](ctx, c, http.MethodPost, "/v1/policy/init", PolicyOf{Project: project})
}

// PolicySchema is the format of files of rules as a JSON Schema.
func (c *Client) PolicySchema(ctx context.Context) (map[string]any, error) {
	return fetch[map[string]any](ctx, c, http.MethodGet, "/v1/policy/schema", nil)
}
