package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"stepbox/session/api"
	"stepbox/ui/link"
)

// fakeClient is a server of sessions held in memory. It is safe for concurrent use.
type fakeClient struct {
	mu        sync.Mutex
	list      []api.Session                              // guarded by mu
	queries   []api.Query                                // guarded by mu
	events    []api.Event                                // guarded by mu
	more      chan struct{}                              // guarded by mu; closed and replaced when events grow
	ended     bool                                       // guarded by mu; the stream ends
	broken    error                                      // guarded by mu; the stream breaks
	decisions []api.Decision                             // guarded by mu
	calls     []string                                   // guarded by mu
	terms     []*fakeStream                              // guarded by mu
	changes   map[api.Scope]api.Changes                  // guarded by mu
	patch     string                                     // what patches have besides; set before it is used
	diffIn    []api.Scope                                // guarded by mu; of which scopes differences were asked for
	diffs     map[string]api.FileDiff                    // guarded by mu
	all       []api.Action                               // guarded by mu; also those that no event told of
	execs     map[int][]api.Exec                         // guarded by mu
	plans     map[int]api.RollbackPlan                   // guarded by mu
	back      func(api.RollbackRequest) api.RollbackPlan // guarded by mu; of selections
	apply     func(api.ApplyRequest) api.ApplyPlan       // guarded by mu
	undo      api.ApplyPlan                              // guarded by mu
	applied   []api.Apply                                // guarded by mu
	steps     <-chan api.Progress                        // guarded by mu; how an apply goes, until it is closed
	carried   []api.ApplyRequest                         // guarded by mu
	refuse    func(api.Decision) *api.Problem            // guarded by mu
	proposed  map[int64][]api.Proposal                   // guarded by mu; by question
	screen    api.Frame                                  // guarded by mu
	record    record                                     // guarded by mu
	wait      <-chan struct{}                            // guarded by mu; pauses take until it is closed
	of        map[string][]api.Event                     // guarded by mu; of sessions beside the first
	answers   []string                                   // guarded by mu; SESSION#QUESTION, of decisions
}

// lock locks, and returns what unlocks.
func (c *fakeClient) lock() func() {
	c.mu.Lock()
	return c.mu.Unlock
}

// newFake makes one that knows these sessions.
func newFake(list ...api.Session) *fakeClient {
	return &fakeClient{
		list: list, more: make(chan struct{}),
		changes: map[api.Scope]api.Changes{}, diffs: map[string]api.FileDiff{},
		proposed: map[int64][]api.Proposal{},
		execs:    map[int][]api.Exec{}, plans: map[int]api.RollbackPlan{},
		screen: api.Frame{Kind: api.FrameKeyframe, Cols: 80, Rows: 24},
	}
}

// Put adds events to the stream. Those without a Seq get the next one when they
// are of a recorded kind.
func (c *fakeClient) Put(events ...api.Event) {
	defer c.lock()()
	for _, e := range events {
		if e.Seq == 0 && e.Usage == nil && e.Changes == nil {
			e.Seq = uint64(len(c.events) + 1)
		}
		c.events = append(c.events, e)
		if e.Session != nil {
			for i := range c.list {
				if c.list[i].ID == e.Session.ID {
					c.list[i] = *e.Session
				}
			}
		}
	}
	c.wake()
}

// wake is called with mu held.
func (c *fakeClient) wake() {
	close(c.more)
	c.more = make(chan struct{})
}

// End ends the stream, as a session that is over does; Break breaks it.
func (c *fakeClient) End() {
	defer c.lock()()
	c.ended = true
	c.wake()
}

// Break makes streams fail with err until it is called with nil.
func (c *fakeClient) Break(err error) {
	defer c.lock()()
	c.broken = err
	c.wake()
}

// SetScreen sets the keyframe that terminals begin with.
func (c *fakeClient) SetScreen(cols, rows int, data string) {
	defer c.lock()()
	c.screen = api.Frame{Kind: api.FrameKeyframe, Cols: cols, Rows: rows, Data: []byte(data)}
}

// SetChanges, SetDiff, SetPlan and Refuse set what requests answer.
func (c *fakeClient) SetChanges(action int, x api.Changes) {
	defer c.lock()()
	c.changes[api.Scope{Action: action}] = x
}

// DiffScopes are the scopes of which differences were asked for, in that order.
func (c *fakeClient) DiffScopes() []api.Scope {
	defer c.lock()()
	return append([]api.Scope(nil), c.diffIn...)
}

// SetSince sets what has changed since a checkpoint.
func (c *fakeClient) SetSince(checkpoint int64, x api.Changes) {
	defer c.lock()()
	c.changes[api.Scope{Since: checkpoint}] = x
}

func (c *fakeClient) SetDiff(d api.FileDiff) {
	defer c.lock()()
	c.diffs[d.Change.Key] = d
}

func (c *fakeClient) SetPlan(n int, p api.RollbackPlan) {
	defer c.lock()()
	c.plans[n] = p
}

// SetBack, SetApply, SetUndo and SetApplied set what plans answer, and the list of
// applies; Steps sets how applies go.
func (c *fakeClient) SetBack(f func(api.RollbackRequest) api.RollbackPlan) {
	defer c.lock()()
	c.back = f
}

func (c *fakeClient) SetApply(f func(api.ApplyRequest) api.ApplyPlan) {
	defer c.lock()()
	c.apply = f
}

func (c *fakeClient) SetUndo(p api.ApplyPlan) {
	defer c.lock()()
	c.undo = p
}

func (c *fakeClient) SetApplied(list ...api.Apply) {
	defer c.lock()()
	c.applied = list
}

func (c *fakeClient) Steps(ch <-chan api.Progress) {
	defer c.lock()()
	c.steps = ch
}

// Carried lists the applies that were carried out.
func (c *fakeClient) Carried() []api.ApplyRequest {
	defer c.lock()()
	return append([]api.ApplyRequest(nil), c.carried...)
}

// Wait makes pauses take until the channel is closed.
func (c *fakeClient) Wait(ch <-chan struct{}) {
	defer c.lock()()
	c.wait = ch
}

func (c *fakeClient) Refuse(f func(api.Decision) *api.Problem) {
	defer c.lock()()
	c.refuse = f
}

// Decisions lists what was decided, Calls everything else that was asked for.
func (c *fakeClient) Decisions() []api.Decision {
	defer c.lock()()
	return append([]api.Decision(nil), c.decisions...)
}

func (c *fakeClient) Calls() []string {
	defer c.lock()()
	return append([]string(nil), c.calls...)
}

func (c *fakeClient) called(what string) {
	defer c.lock()()
	c.calls = append(c.calls, what)
}

func (c *fakeClient) find(id string) (api.Session, error) {
	defer c.lock()()
	for _, s := range c.list {
		if s.ID == id {
			return s, nil
		}
	}
	return api.Session{}, &api.Problem{Code: api.CodeNotFound, Message: "there is no session " + id}
}

func (c *fakeClient) Session(_ context.Context, id string) (api.Session, error) { return c.find(id) }

func (c *fakeClient) Actions(context.Context, string) ([]api.Action, error) {
	defer c.lock()()
	c.calls = append(c.calls, "actions")
	return c.all, nil
}

func (c *fakeClient) Execs(_ context.Context, _ string, n int) ([]api.Exec, error) {
	defer c.lock()()
	return c.execs[n], nil
}

func (c *fakeClient) Changes(_ context.Context, id string, in api.Scope, most int) (api.Changes, error) {
	s, err := c.find(id)
	defer c.lock()()
	x := c.changes[in]
	x.Final, x.Total = err == nil && !s.Live(), len(x.Files)+x.More
	if most > 0 && len(x.Files) > most {
		x.More += len(x.Files) - most
		x.Files, x.Next = x.Files[:most], x.Files[most-1].Key
	}
	return x, nil
}

func (c *fakeClient) Diff(_ context.Context, _, key string, in api.Scope) (api.FileDiff, error) {
	defer c.lock()()
	c.diffIn = append(c.diffIn, in)
	d, ok := c.diffs[key]
	if !ok || in.To != "" && len(c.changes[in].Files) == 0 {
		return d, &api.Problem{Code: api.CodeNotFound, Message: "that file isn't changed any more"}
	}
	return d, nil
}

// File names what it was asked for.
func (c *fakeClient) File(_ context.Context, _, key string, at api.Moment) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("file " + key + " at " + string(at))), nil
}

// Patch names what it was asked for.
func (c *fakeClient) Patch(_ context.Context, _ string, r api.PatchRequest) (io.ReadCloser, error) {
	b, err := json.Marshal(r)
	return io.NopCloser(strings.NewReader("patch of " + string(b) + "\n" + c.patch)), err
}

func (c *fakeClient) Diffs(_ context.Context, _ string, in api.Scope) iter.Seq2[api.FileDiff, error] {
	defer c.lock()()
	c.diffIn = append(c.diffIn, in)
	var out []api.FileDiff
	for _, key := range slices.Sorted(maps.Keys(c.diffs)) {
		out = append(out, c.diffs[key])
	}
	return func(yield func(api.FileDiff, error) bool) {
		for _, d := range out {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func (c *fakeClient) Decide(_ context.Context, id string, d api.Decision) (api.Question, error) {
	c.mu.Lock()
	c.answers = append(c.answers, fmt.Sprintf("%s#%d", id, d.Question))
	c.decisions = append(c.decisions, d)
	refuse := c.refuse
	c.mu.Unlock()
	if refuse != nil {
		if p := refuse(d); p != nil {
			return api.Question{}, p
		}
	}
	return api.Question{ID: d.Question, Hash: d.Hash, Closed: string(d.Answer)}, nil
}

func (c *fakeClient) Proposals(_ context.Context, _ string, question int64) ([]api.Proposal, error) {
	defer c.lock()()
	if p, ok := c.proposed[question]; ok {
		return p, nil
	}
	return nil, &api.Problem{Code: api.CodeNotFound, Message: "there is nothing here"}
}

// Propose sets what is proposed for a question's answer.
func (c *fakeClient) Propose(question int64, p ...api.Proposal) {
	defer c.lock()()
	c.proposed[question] = p
}

func (c *fakeClient) AddRule(_ context.Context, id string, r api.Rule) (api.Ruled, error) {
	c.called(string(r.Verdict) + " " + r.Host + " " + string(r.For))
	s, err := c.ruled(id, func(was []api.Rule) []api.Rule { return append([]api.Rule{r}, was...) })
	return api.Ruled{Session: s}, err
}

func (c *fakeClient) RemoveRule(_ context.Context, id string, r api.Rule) (api.Session, error) {
	c.called("take back " + string(r.Verdict) + " " + r.Command + r.Host + " " + string(r.For))
	return c.ruled(id, func(was []api.Rule) []api.Rule { return slices.DeleteFunc(slices.Clone(was), r.Same) })
}

// ruled changes a session's rules.
func (c *fakeClient) ruled(id string, to func([]api.Rule) []api.Rule) (api.Session, error) {
	s, err := c.find(id)
	s.Rules = to(s.Rules)
	if err == nil {
		c.Put(api.Event{Session: &s})
	}
	return s, err
}

func (c *fakeClient) action(n int) api.Action {
	defer c.lock()()
	a := api.Action{N: n}
	for _, e := range c.events {
		if e.Action != nil && e.Action.N == n {
			a = *e.Action
		}
	}
	return a
}

func (c *fakeClient) Keep(_ context.Context, _ string, n int) (api.Action, error) {
	c.called("keep")
	a := c.action(n)
	a.Review = api.ReviewKept
	return a, nil
}

func (c *fakeClient) KillAction(_ context.Context, _ string, n int) (api.Action, error) {
	c.called("kill action")
	return c.action(n), nil
}

// planOf is called with mu held.
func (c *fakeClient) planOf(r api.RollbackRequest) api.RollbackPlan {
	if r.ToBefore == 0 && c.back != nil {
		return c.back(r)
	}
	return c.plans[r.ToBefore]
}

func (c *fakeClient) RollbackPlan(_ context.Context, _ string, r api.RollbackRequest) (api.RollbackPlan, error) {
	defer c.lock()()
	return c.planOf(r), nil
}

func (c *fakeClient) Rollback(_ context.Context, _ string, r api.RollbackRequest) (api.Rollback, error) {
	c.called("rollback " + r.Hash)
	defer c.lock()()
	p := c.planOf(r)
	if p.Hash != r.Hash {
		return api.Rollback{}, &api.Problem{Code: api.CodeStale, Message: "the files have moved on"}
	}
	return api.Rollback{ID: int64(len(c.calls)), RollbackTarget: r.RollbackTarget, Actions: p.Actions, Files: len(p.Files)}, nil
}

func (c *fakeClient) ApplyPlan(_ context.Context, _ string, r api.ApplyRequest) (api.ApplyPlan, error) {
	defer c.lock()()
	return c.apply(r), nil
}

// Apply carries out a plan as the steps say.
func (c *fakeClient) Apply(ctx context.Context, _ string, r api.ApplyRequest) iter.Seq2[api.Progress, error] {
	c.called("apply " + r.Hash)
	defer c.lock()()
	c.carried = append(c.carried, r)
	return c.going(ctx, c.apply(r).Hash == r.Hash)
}

// going is called with mu held.
func (c *fakeClient) going(ctx context.Context, current bool) iter.Seq2[api.Progress, error] {
	steps := c.steps
	return func(yield func(api.Progress, error) bool) {
		if !current {
			yield(api.Progress{}, &api.Problem{Code: api.CodeStale, Message: "things have moved on"})
			return
		}
		for {
			select {
			case p, more := <-steps:
				if !more || !yield(p, nil) {
					return
				}
			case <-ctx.Done():
				yield(api.Progress{}, ctx.Err())
				return
			}
		}
	}
}

func (c *fakeClient) Applies(context.Context, string) ([]api.Apply, error) {
	defer c.lock()()
	return c.applied, nil
}

func (c *fakeClient) UndoPlan(context.Context, string, int64) (api.ApplyPlan, error) {
	defer c.lock()()
	return c.undo, nil
}

func (c *fakeClient) Undo(ctx context.Context, _ string, apply int64, r api.UndoRequest) iter.Seq2[api.Progress, error] {
	c.called(fmt.Sprint("undo ", apply, " ", r.Hash))
	defer c.lock()()
	return c.going(ctx, c.undo.Hash == r.Hash)
}

func (c *fakeClient) SetMode(_ context.Context, id string, m api.Mode) (api.Session, error) {
	c.called("mode " + string(m))
	s, err := c.find(id)
	s.Mode = m
	return s, err
}

func (c *fakeClient) Pause(_ context.Context, id string) (api.Session, error) {
	c.called("pause")
	c.mu.Lock()
	wait := c.wait
	c.mu.Unlock()
	if wait != nil {
		<-wait
	}
	s, err := c.find(id)
	s.State = api.SessionPaused
	return s, err
}

func (c *fakeClient) Continue(_ context.Context, id string) (api.Session, error) {
	c.called("continue")
	s, err := c.find(id)
	s.State = api.SessionRunning
	return s, err
}

func (c *fakeClient) Publish(_ context.Context, _ string, p api.Publishing) (api.Port, error) {
	c.called(fmt.Sprintf("publish %d %v %s", p.Port, p.Exactly, p.For))
	return api.Port{Port: p.Port, At: p.Port}, nil
}

func (c *fakeClient) Unpublish(_ context.Context, id string, port int) (api.Session, error) {
	c.called(fmt.Sprintf("unpublish %d", port))
	return c.find(id)
}

func (c *fakeClient) Kill(_ context.Context, id string) (api.Session, error) {
	c.called("kill")
	s, err := c.find(id)
	s.State = api.SessionEnded
	return s, err
}

// Events yields what was put from a sequence number on, and waits for more.
func (c *fakeClient) Events(ctx context.Context, _ string, from uint64) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		at := 0
		for {
			c.mu.Lock()
			events, more, ended, broken := c.events, c.more, c.ended, c.broken
			c.mu.Unlock()
			if broken != nil {
				yield(api.Event{}, broken)
				return
			}
			for ; at < len(events); at++ {
				if s := events[at].Seq; s != 0 && s < from {
					continue
				}
				if !yield(events[at], nil) {
					return
				}
			}
			if ended {
				return
			}
			select {
			case <-more:
			case <-ctx.Done():
				yield(api.Event{}, ctx.Err())
				return
			}
		}
	}
}

// Terminal joins the terminal.
func (c *fakeClient) Terminal(_ context.Context, id string) (link.Stream, error) {
	s, err := c.find(id)
	if err != nil {
		return nil, err
	}
	defer c.lock()()
	t := &fakeStream{out: make(chan api.Frame, 256), done: make(chan struct{}), sent: make(chan struct{}, 1)}
	t.out <- c.screen
	if !s.Live() {
		close(t.out)
	}
	c.terms = append(c.terms, t)
	return t, nil
}

// LastTerminal is the newest terminal connection that nobody left (home looks at a session's
// screen and leaves), else the newest, or nil.
func (c *fakeClient) LastTerminal() *fakeStream {
	defer c.lock()()
	for _, t := range slices.Backward(c.terms) {
		select {
		case <-t.done:
		default:
			return t
		}
	}
	if len(c.terms) == 0 {
		return nil
	}
	return c.terms[len(c.terms)-1]
}

// fakeStream is a terminal connection.
type fakeStream struct {
	out  chan api.Frame
	done chan struct{}
	once sync.Once
	sent chan struct{}

	mu    sync.Mutex
	input []byte   // guarded by mu
	sizes [][2]int // guarded by mu
	stuck bool     // guarded by mu; the agent doesn't read
}

func (t *fakeStream) lock() func() {
	t.mu.Lock()
	return t.mu.Unlock
}

// Output sends a frame to the viewer.
func (t *fakeStream) Output(data string) {
	t.Frame(api.Frame{Kind: api.FrameOutput, Data: []byte(data)})
}

// Frame sends any frame.
func (t *fakeStream) Frame(f api.Frame) {
	select {
	case t.out <- f:
	case <-t.done:
	}
}

// Stick makes the agent stop reading its input.
func (t *fakeStream) Stick() {
	defer t.lock()()
	t.stuck = true
}

// Got is all input so far, Sizes all sizes that were asked for.
func (t *fakeStream) Got() string {
	defer t.lock()()
	return string(t.input)
}

func (t *fakeStream) Sizes() [][2]int {
	defer t.lock()()
	return append([][2]int(nil), t.sizes...)
}

func (t *fakeStream) Read() (api.Frame, error) {
	select {
	case f, ok := <-t.out:
		if !ok {
			return api.Frame{}, io.EOF
		}
		return f, nil
	case <-t.done:
		return api.Frame{}, io.ErrClosedPipe
	}
}

func (t *fakeStream) Input(p []byte) error {
	t.mu.Lock()
	stuck := t.stuck
	if !stuck {
		t.input = append(t.input, p...)
	}
	t.mu.Unlock()
	if stuck {
		<-t.done
		return io.ErrClosedPipe
	}
	return nil
}

func (t *fakeStream) Resize(cols, rows int) error {
	t.mu.Lock()
	t.sizes = append(t.sizes, [2]int{cols, rows})
	t.mu.Unlock()
	select {
	case t.out <- api.Frame{Kind: api.FrameResize, Cols: cols, Rows: rows}:
	case <-t.done:
	}
	return nil
}

func (t *fakeStream) Close() error {
	t.once.Do(func() { close(t.done) })
	return nil
}
