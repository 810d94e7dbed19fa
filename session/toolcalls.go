package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/runner/socket"
	"stepbox/session/api"
	"stepbox/session/files"
	"stepbox/session/tell"
)

// Bounds of what a tool of `stepbox mcp` tells.
const (
	maxToldDenials = 10
	maxToldChanges = 50
	maxToldHosts   = 100
	maxMark        = 100 // bytes of what a checkpoint is for
)

// errTooOften is said to an agent that would fill the record or the person's screen.
var errTooOften = errors.New("you call this too often: wait some seconds")

// byAgent is who takes something back that the agent did itself.
const byAgent = "the agent"

// called answers a tool that the agent called. Nothing of it can allow anything: it
// tells, it looks, and it takes back what the agent could undo itself.
func (s *Session) called(ctx context.Context, conn *socket.Conn, c tell.Call, speaker int) tell.Reply {
	refused := func(why string) tell.Reply { return tell.Reply{Failed: true, Text: why} }
	if speaker != 0 {
		return refused("only the agent itself may ask that")
	}
	var text string
	var err error
	switch c.Tool {
	case tell.ToolMay:
		err = s.loop.Request(ctx, func() { text = s.mayDo() })
	case tell.ToolWhy:
		err = s.loop.Request(ctx, func() { text = s.whyDenied() })
	case tell.ToolChanges:
		err = s.loop.Request(ctx, func() { text = s.changesSoFar() })
	case tell.ToolCheckpoint:
		if !s.claims.calls.Allow() {
			return refused(errTooOften.Error())
		}
		text, err = s.markState(ctx, c.Text)
	case tell.ToolAsk:
		text, err = s.asksPerson(ctx, conn, c.Text)
	case tell.ToolTakeBack:
		text, err = s.takeBackLast(ctx)
	default:
		return refused("there is no such tool")
	}
	if err != nil {
		return refused(api.Escape(api.Trim(err.Error(), maxReason)))
	}
	return tell.Reply{Text: text}
}

// mayDo is what the session's mode and rules let the agent do, in words.
func (s *Session) mayDo() string {
	var b strings.Builder
	b.WriteString("You work in a sandbox over " + api.Escape(s.cfg.Workspace) + ". What you change there is reviewed before it reaches the real folder, and can be rolled back.\n")
	switch s.info.Mode {
	case api.ModeStep:
		b.WriteString("Mode step: the person is asked about every command, connection and edit.\n")
	case api.ModeWatch:
		b.WriteString("Mode watch: every command runs and is recorded; rules that deny hold.\n")
	default:
		b.WriteString("Mode policy: commands run unless a rule asks or denies; hosts that no rule allows are asked about.\n")
	}
	if s.info.Asking.On == api.OnAskDeny {
		b.WriteString("Nobody answers questions in this session: what would be asked is denied.\n")
	}
	said := map[policy.Verdict][]string{}
	for _, l := range s.judge.Policy().Layers() {
		for i := range l.Network {
			r := &l.Network[i]
			said[r.Verdict] = append(said[r.Verdict], r.Host.String())
		}
		for i := range l.Rules {
			switch r := &l.Rules[i]; {
			case r.Verdict == policy.Ask && r.Why != "": // there are many, for few reasons
				said[policy.Ask] = append(said[policy.Ask], "a command where "+r.Why)
			case r.Verdict != policy.Allow:
				said[r.Verdict] = append(said[r.Verdict], r.String())
			}
		}
	}
	for _, v := range []struct {
		verdict policy.Verdict
		words   string
	}{{policy.Allow, "Hosts that can be reached"}, {policy.Ask, "The person is asked about"}, {policy.Deny, "Refused"}} {
		list := said[v.verdict]
		slices.Sort(list)
		list = slices.Compact(list)
		if n := len(list); n > 0 {
			b.WriteString(v.words + ": " + listed(api.EscapeAll(list[:min(n, maxToldHosts)]), n, maxToldHosts) + ".\n")
		}
	}
	return b.String()
}

// whyDenied tells of what was refused last.
func (s *Session) whyDenied() string {
	var lines []string
	for _, a := range slices.Backward(s.actions.all) {
		if a.State == api.ActionDenied && len(lines) < maxToldDenials {
			lines = append(lines, fmt.Sprintf("#%d, %s: %s", a.N, api.Trim(a.Title, 200), strings.TrimPrefix(a.Rule+": "+a.Reason, ": ")))
		}
	}
	for _, r := range s.refusals {
		lines = append(lines, "a connection: "+r)
	}
	if len(lines) == 0 {
		return "Nothing was denied."
	}
	return strings.Join(lines, "\n")
}

// changesSoFar tells of what the agent's actions changed, and what became of it.
func (s *Session) changesSoFar() string {
	var lines []string
	for _, a := range slices.Backward(s.actions.all) {
		if a.Files > 0 && !a.apart() && len(lines) < maxToldChanges {
			lines = append(lines, fmt.Sprintf("#%d, %s: %d files, +%d −%d lines, %s", a.N, api.Trim(a.Title, 200), a.Files, a.Added, a.Removed, string(a.Review)))
		}
	}
	if len(lines) == 0 {
		return "Nothing has changed so far."
	}
	return "The newest first:\n" + strings.Join(lines, "\n")
}

// markState has the files as they are now be found again.
func (s *Session) markState(ctx context.Context, what string) (string, error) {
	var id int64
	if err := s.loop.Do(ctx, func(done func(error)) {
		s.checkpoint(func(cp *files.Checkpoint, err error) {
			if err == nil {
				what = api.Escape(api.Trim(strings.TrimSpace(what), maxMark))
				id = cp.ID
				s.note(false, "the agent marks checkpoint %d: %s", id, what)
			}
			done(err)
		})
	}); err != nil {
		return "", err
	}
	return fmt.Sprintf("The files as they are now are checkpoint %d.", id), nil
}

// takesBack is why the agent may not roll back an action of its own, or nil.
func (s *Session) takesBack(a *action) error {
	switch {
	case s.questions.about(a):
		return fmt.Errorf("the person is being asked about #%d", a.N)
	case a.Review != api.ReviewOpen || a.Shared || a.alive():
		return fmt.Errorf("#%d (%s) can't be rolled back by you: it still runs, others share its changes, or the person has kept it", a.N, api.Trim(a.Title, 200))
	}
	return nil
}

// takeBackLast takes back the agent's own last action, when that is all there is to it:
// no other action's changes, nobody's word on it yet, and nothing that runs.
func (s *Session) takeBackLast(ctx context.Context) (string, error) {
	var n int
	var title string
	err := s.loop.Do(ctx, func(done func(error)) {
		for _, a := range slices.Backward(s.actions.all) {
			// One that runs may have made changes that nobody has looked at yet.
			if (a.Files > 0 || a.alive()) && !a.apart() && a.Review != api.ReviewRolledBack {
				n, title = a.N, a.Title
				done(s.takesBack(a))
				return
			}
		}
		done(errors.New("there is nothing to roll back"))
	})
	if err != nil {
		return "", err
	}
	p, err := s.plan(ctx, api.RollbackRequest{RollbackTarget: api.RollbackTarget{Selection: &api.Selection{Actions: []int{n}}}})
	if err != nil {
		return "", err
	}
	if len(p.Shown.Conflicts)+len(p.Shown.Problems)+len(p.Shown.Ends) > 0 {
		return "", fmt.Errorf("#%d can't be rolled back alone: later changes meet it; ask the person", n)
	}
	done, err := s.carryOut(context.WithoutCancel(ctx), p, byAgent, "")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("#%d (%s) is rolled back: %d files are as they were before it.", n, api.Trim(title, 200), done.Files), nil
}
