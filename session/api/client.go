package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"
)

// maxAnswer bounds what a client reads of one answer, in bytes.
const maxAnswer = 64 << 20

// Client speaks to a supervisor, or to a stepbox command that knows all
// sessions. It is safe for concurrent use; errors that came from the other
// side are of type *Problem.
type Client struct {
	http http.Client
	as   string // whom its requests are from; "" doesn't tell
}

// NewClientFunc makes a client of whatever dial connects to.
func NewClientFunc(dial func(ctx context.Context) (net.Conn, error)) *Client {
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}
	return &Client{http: http.Client{Transport: transport}}
}

// Close drops idle connections; requests under way go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Sessions lists all sessions, newest first.
func (c *Client) Sessions(ctx context.Context) ([]Session, error) {
	return fetch[[]Session](ctx, c, http.MethodGet, "/v1/sessions", nil)
}

// Session fetches one session.
func (c *Client) Session(ctx context.Context, id string) (Session, error) {
	return fetch[Session](ctx, c, http.MethodGet, path(id), nil)
}

// Actions lists a session's actions, oldest first.
func (c *Client) Actions(ctx context.Context, id string) ([]Action, error) {
	return fetch[[]Action](ctx, c, http.MethodGet, path(id, "actions"), nil)
}

// Action fetches one action.
func (c *Client) Action(ctx context.Context, id string, n int) (Action, error) {
	return fetch[Action](ctx, c, http.MethodGet, path(id, "actions", strconv.Itoa(n)), nil)
}

// Execs lists the programs that an action started; for action 0 those of the agent itself.
func (c *Client) Execs(ctx context.Context, id string, n int) ([]Exec, error) {
	return fetch[[]Exec](ctx, c, http.MethodGet, path(id, "actions", strconv.Itoa(n), "execs"), nil)
}

// Questions lists what is held, oldest first.
func (c *Client) Questions(ctx context.Context, id string) ([]Question, error) {
	return fetch[[]Question](ctx, c, http.MethodGet, path(id, "questions"), nil)
}

// ChangesPage fetches a page of what differs in a scope.
func (c *Client) ChangesPage(ctx context.Context, id string, in Scope, p Page) (Changes, error) {
	var more []string
	if p.After != "" {
		more = append(more, "after", p.After)
	}
	if p.Limit > 0 {
		more = append(more, "limit", strconv.Itoa(p.Limit))
	}
	if p.Grouped {
		more = append(more, "grouped", "true")
	}
	return fetch[Changes](ctx, c, http.MethodGet, path(id, "changes")+query(in, more...), nil)
}

// Changes fetches page after page, Grouped, until it has at least most changes, or
// all of them, with all lines counted, when most is 0. When the files move
// meanwhile the pages may be of different states: the version is then that of the
// oldest, so that it is seen to be outdated.
func (c *Client) Changes(ctx context.Context, id string, in Scope, most int) (Changes, error) {
	out, err := c.ChangesPage(ctx, id, in, Page{Limit: most, Grouped: true})
	for err == nil && out.Next != "" && (most == 0 || len(out.Files) < most) {
		var p Changes
		if p, err = c.ChangesPage(ctx, id, in, Page{After: out.Next, Limit: max(0, most-len(out.Files)), Grouped: true}); err != nil {
			break
		}
		p.Files = append(out.Files, p.Files...)
		p.Version, p.Counting = min(p.Version, out.Version), p.Counting || out.Counting
		out = p
	}
	if err == nil && most == 0 && out.Counting {
		return c.Changes(ctx, id, in, most) // each answer has more, and takes its time
	}
	return out, err
}

// Diffs yields the differences of all changed files of a scope, by path, as
// they are worked out. A stream that breaks ends with an error.
func (c *Client) Diffs(ctx context.Context, id string, in Scope) iter.Seq2[FileDiff, error] {
	return stream[FileDiff](ctx, c, http.MethodGet, path(id, "diffs")+query(in), nil, "the differences")
}

// Diff fetches one changed file's difference in the scope. The key is a Change's.
func (c *Client) Diff(ctx context.Context, id, key string, in Scope) (FileDiff, error) {
	return fetch[FileDiff](ctx, c, http.MethodGet, path(id, "diff")+query(in, "key", key), nil)
}

// Patch gives changes as a patch that git apply takes. Contents are in it byte for
// byte. A patch that breaks off ends with an error. The caller closes it.
func (c *Client) Patch(ctx context.Context, id string, r PatchRequest) (io.ReadCloser, error) {
	resp, err := c.do(ctx, http.MethodPost, path(id, "patch"), r)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Space measures what a session takes on the disk.
func (c *Client) Space(ctx context.Context, id string) (Space, error) {
	return fetch[Space](ctx, c, http.MethodGet, path(id, "space"), nil)
}

// HomeChanges lists what a session changed in a home that is its own view of its
// profile's; KeepHome takes it, or some of it, into that one once the session has ended.
func (c *Client) HomeChanges(ctx context.Context, id string) (HomeChanges, error) {
	return fetch[HomeChanges](ctx, c, http.MethodGet, path(id, "home"), nil)
}

// KeepHome is what HomeChanges says.
func (c *Client) KeepHome(ctx context.Context, id string, r KeepHome) (HomeChanges, error) {
	return fetch[HomeChanges](ctx, c, http.MethodPost, path(id, "home", "keep"), r)
}

// Remove takes a session that has ended out of the record, with the files that it
// left. It can't be had back.
func (c *Client) Remove(ctx context.Context, id string) error {
	_, err := fetch[struct{}](ctx, c, http.MethodDelete, path(id), nil)
	return err
}

// Decide answers a question and returns it closed. A *Problem with CodeDecided,
// CodeStale or CodeGone says that the answer didn't count.
func (c *Client) Decide(ctx context.Context, id string, d Decision) (Question, error) {
	return fetch[Question](ctx, c, http.MethodPost, path(id, "decisions"), d)
}

// Keep marks an action's changes as reviewed.
func (c *Client) Keep(ctx context.Context, id string, n int) (Action, error) {
	return fetch[Action](ctx, c, http.MethodPost, path(id, "actions", strconv.Itoa(n), "keep"), nil)
}

// KillAction kills an action's process tree.
func (c *Client) KillAction(ctx context.Context, id string, n int) (Action, error) {
	return fetch[Action](ctx, c, http.MethodPost, path(id, "actions", strconv.Itoa(n), "kill"), nil)
}

// RollbackPlan says what a roll back would do.
func (c *Client) RollbackPlan(ctx context.Context, id string, r RollbackRequest) (RollbackPlan, error) {
	return fetch[RollbackPlan](ctx, c, http.MethodPost, path(id, "rollback-plan"), r)
}

// Rollback carries out the plan with that hash; CodeStale says that the files
// have moved on since the plan was made.
func (c *Client) Rollback(ctx context.Context, id string, r RollbackRequest) (Rollback, error) {
	return fetch[Rollback](ctx, c, http.MethodPost, path(id, "rollback"), r)
}

// ApplyPlan says what an apply would do.
func (c *Client) ApplyPlan(ctx context.Context, id string, r ApplyRequest) (ApplyPlan, error) {
	return fetch[ApplyPlan](ctx, c, http.MethodPost, path(id, "apply-plan"), r)
}

// Apply carries out a plan that was shown and tells how that goes; the last
// value has Done or Problem set. Ending ctx cancels it.
func (c *Client) Apply(ctx context.Context, id string, r ApplyRequest) iter.Seq2[Progress, error] {
	return stream[Progress](ctx, c, http.MethodPost, path(id, "applies"), r, "how the apply goes")
}

// Rollbacks lists a session's roll backs, oldest first.
func (c *Client) Rollbacks(ctx context.Context, id string) ([]Rollback, error) {
	return fetch[[]Rollback](ctx, c, http.MethodGet, path(id, "rollbacks"), nil)
}

// Applies lists a session's applies, oldest first.
func (c *Client) Applies(ctx context.Context, id string) ([]Apply, error) {
	return fetch[[]Apply](ctx, c, http.MethodGet, path(id, "applies"), nil)
}

// UndoPlan says what undoing an apply would do.
func (c *Client) UndoPlan(ctx context.Context, id string, apply int64) (ApplyPlan, error) {
	return fetch[ApplyPlan](ctx, c, http.MethodPost, path(id, "applies", strconv.FormatInt(apply, 10), "undo-plan"), nil)
}

// Undo undoes an apply, as Apply does one.
func (c *Client) Undo(ctx context.Context, id string, apply int64, r UndoRequest) iter.Seq2[Progress, error] {
	return stream[Progress](ctx, c, http.MethodPost, path(id, "applies", strconv.FormatInt(apply, 10), "undo"), r, "how the undoing goes")
}

// ModeRequest changes how a session judges.
type ModeRequest struct {
	Mode Mode `json:"mode"`
}

// SetMode changes the mode. Questions already open stay open.
func (c *Client) SetMode(ctx context.Context, id string, m Mode) (Session, error) {
	return fetch[Session](ctx, c, http.MethodPost, path(id, "mode"), ModeRequest{Mode: m})
}

// Attempts lists what the agent tried to reach, oldest first.
func (c *Client) Attempts(ctx context.Context, id string) ([]Attempt, error) {
	return fetch[[]Attempt](ctx, c, http.MethodGet, path(id, "attempts"), nil)
}

// Proposals are the rules that a question's answer may be made, from narrow to wide.
func (c *Client) Proposals(ctx context.Context, id string, question int64) ([]Proposal, error) {
	return fetch[[]Proposal](ctx, c, http.MethodGet, path(id, "questions", strconv.FormatInt(question, 10), "proposals"), nil)
}

// AddRule makes a rule of the session, the newest of which decides, and judges by it what
// waits. Its Host is a rule's words; By and At are set by the supervisor.
func (c *Client) AddRule(ctx context.Context, id string, r Rule) (Ruled, error) {
	return fetch[Ruled](ctx, c, http.MethodPost, path(id, "rules"), r)
}

// RemoveRule takes a rule of the session back.
func (c *Client) RemoveRule(ctx context.Context, id string, r Rule) (Session, error) {
	return fetch[Session](ctx, c, http.MethodDelete, path(id, "rules"), r)
}

// Pause freezes every process of the agent.
func (c *Client) Pause(ctx context.Context, id string) (Session, error) {
	return fetch[Session](ctx, c, http.MethodPost, path(id, "pause"), nil)
}

// Continue thaws a paused session.
func (c *Client) Continue(ctx context.Context, id string) (Session, error) {
	return fetch[Session](ctx, c, http.MethodPost, path(id, "continue"), nil)
}

// Kill ends the whole sandbox.
func (c *Client) Kill(ctx context.Context, id string) (Session, error) {
	return fetch[Session](ctx, c, http.MethodPost, path(id, "kill"), nil)
}

// Tell tells a live session what a neighbour of its did.
func (c *Client) Tell(ctx context.Context, id string, n News) (Session, error) {
	return fetch[Session](ctx, c, http.MethodPost, path(id, "news"), n)
}

// Events yields a session's events from a sequence number on, as they happen,
// until the session has ended or ctx is done. An error ends the sequence; the
// caller may go on from the last Seq it saw plus one.
func (c *Client) Events(ctx context.Context, id string, from uint64) iter.Seq2[Event, error] {
	return c.events(ctx, path(id, "events")+"?from="+strconv.FormatUint(from, 10))
}

// EventsOf yields those of Events that hold a resource of one kind, like "question", or of
// more.
func (c *Client) EventsOf(ctx context.Context, id, kind string, from uint64, more ...string) iter.Seq2[Event, error] {
	return c.events(ctx, path(id, "events")+"?"+url.Values{"kind": append(more, kind)}.Encode()+"&from="+strconv.FormatUint(from, 10))
}

// EventsFromNow yields how a session stands, as events without a sequence
// number that hold its newest resources, at most last of each kind, and then
// what happens, like Events. An event may repeat what was said before.
func (c *Client) EventsFromNow(ctx context.Context, id string, last int) iter.Seq2[Event, error] {
	return c.events(ctx, path(id, "events")+"?last="+strconv.Itoa(last))
}

// Glance yields what a list says of a session: how it stands, with its newest resources,
// at most last of each kind, or what happened from an event on; and then what becomes of it,
// its actions and what is held, and what it uses.
func (c *Client) Glance(ctx context.Context, id string, from uint64, last int) iter.Seq2[Event, error] {
	q := url.Values{"kind": {"session", "action", "question", "usage"}}
	if from > 1 {
		q.Set("from", strconv.FormatUint(from, 10))
	} else {
		q.Set("last", strconv.Itoa(last))
	}
	return c.events(ctx, path(id, "events")+"?"+q.Encode())
}

// Newest yields how a session stands by what is recorded, as EventsFromNow does,
// and ends.
func (c *Client) Newest(ctx context.Context, id string, last int) iter.Seq2[Event, error] {
	return c.events(ctx, path(id, "events")+"?follow=false&last="+strconv.Itoa(last))
}

// Recorded yields the events from a sequence number on that are recorded by now.
func (c *Client) Recorded(ctx context.Context, id string, from uint64) iter.Seq2[Event, error] {
	return c.events(ctx, path(id, "events")+"?follow=false&from="+strconv.FormatUint(from, 10))
}

func (c *Client) events(ctx context.Context, path string) iter.Seq2[Event, error] {
	return stream[Event](ctx, c, http.MethodGet, path, nil, "the event stream")
}

// stream yields the values of an answer that has one on each line.
func stream[T any](ctx context.Context, c *Client, method, path string, body any, what string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		resp, err := c.do(ctx, method, path, body)
		if err != nil {
			yield(none, err)
			return
		}
		defer resp.Body.Close()
		dec := json.NewDecoder(resp.Body)
		for {
			var v T
			if err := dec.Decode(&v); err != nil {
				if !errors.Is(err, io.EOF) {
					yield(none, fmt.Errorf("cannot read %s: %w", what, err))
				}
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

func path(id string, more ...string) string {
	p := "/v1/sessions/" + url.PathEscape(id)
	for _, m := range more {
		p += "/" + url.PathEscape(m)
	}
	return p
}

func query(in Scope, more ...string) string {
	q := url.Values{}
	if in.Action != 0 {
		q.Set("action", strconv.Itoa(in.Action))
	}
	if in.Since != 0 {
		q.Set("since", strconv.FormatInt(in.Since, 10))
	}
	if in.From != "" {
		q.Set("from", string(in.From))
	}
	if in.To != "" {
		q.Set("to", string(in.To))
	}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

func fetch[T any](ctx context.Context, c *Client, method, path string, body any) (T, error) {
	var out T
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&out); err != nil {
		return out, fmt.Errorf("cannot read the answer to %s %s: %w", method, path, err)
	}
	return out, nil
}

// do sends a request, whose body is JSON unless it is an io.Reader, with some headers and their values, and turns every answer
// that isn't a success into a *Problem.
func (c *Client) do(ctx context.Context, method, path string, body any, headers ...string) (*http.Response, error) {
	r, raw := body.(io.Reader)
	if body != nil && !raw {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the request: %w", err)
		}
		r = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://stepbox"+path, r)
	if err != nil {
		return nil, err
	}
	if c.as != "" {
		req.Header.Set(asHeader, c.as)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the session: %w", errors.Unwrap(err))
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	p := &Problem{Code: CodeInternal, Message: resp.Status}
	if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusMethodNotAllowed {
		p.Code = CodeUnknown // unless the answer knows more
	}
	if b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16)); err == nil {
		// A body that isn't a Problem leaves the status line as the message.
		_ = json.Unmarshal(b, p)
	}
	return nil, p
}
