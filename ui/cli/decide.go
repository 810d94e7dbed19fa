package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

// question finds what is held of an action, the one with a hash if one is given.
// What it prints and what it answers is one and the same, bound by the hash. A connection or
// a request of the action's isn't what its number names: that is another question.
func (c command) question(s api.Session, n int, hash string) (api.Question, error) {
	all, err := c.client.Questions(c.ctx, s.ID)
	if err != nil {
		return api.Question{}, err
	}
	held := slices.DeleteFunc(all, func(q api.Question) bool { return q.Action != n })
	if i := slices.IndexFunc(held, func(q api.Question) bool { return q.Hash == hash }); i >= 0 {
		return held[i], nil
	}
	if i := slices.IndexFunc(held, func(q api.Question) bool { return !q.Apart() }); i >= 0 {
		return held[i], nil
	}
	if len(held) > 0 {
		waits := strings.TrimPrefix(heldLine(s.ID, held[0]), "stepbox: held: ")
		return api.Question{}, api.Problemf(api.CodeGone, "#%d itself isn't held; of what it does waits: %s", n, waits)
	}
	if a, err := c.client.Action(c.ctx, s.ID, n); err == nil {
		if !s.Live() {
			return api.Question{}, api.Problemf(api.CodeNotLive, "#%d isn't held any more: the session is %s; stepbox resume %s goes on with it", n, s.State, s.ID)
		}
		state := string(a.State)
		if a.By != "" && a.Verdict != "" {
			state += fmt.Sprintf(" (%s by %s)", a.Verdict, a.By)
		}
		return api.Question{}, api.Problemf(api.CodeGone, "#%d isn't held: it is %s", n, state)
	}
	return api.Question{}, api.Problemf(api.CodeNotFound, "there is no #%d", n)
}

// answer answers what is held of an action.
func (c command) answer(s api.Session, n int, d api.Decision) error {
	q, err := c.question(s, n, d.Hash)
	if err != nil {
		return err
	}
	if d.Hash == "" && d.Answer != api.AnswerDeny && q.Subject == api.SubjectNested {
		// One after the other may be held under the same number: what was
		// seen may have gone away and something else have come.
		return fmt.Errorf("#%d may hold another program soon; this one is approved by its hash (stepbox approve %s %d --hash %s): %s",
			n, s.ID, n, q.Hash, cut(q.Title, lineMost))
	}
	d.Question, d.Hash, d.By = q.ID, cmp.Or(d.Hash, q.Hash), "cli"
	q, err = c.client.Decide(c.ctx, s.ID, d)
	if d.For == "" {
		return c.say(q, err, "%s: #%d  %s", q.Closed, q.Action, cut(q.Title, lineMost))
	}
	return c.say(q, err, "%s %s: #%d  %s", q.Closed, forWords(d.For), q.Action, cut(cmp.Or(d.Pattern, q.Title), lineMost))
}

// answerNamed answers what is held of an action, or a request, whichever is named last.
func (c command) answerNamed(args []string, d api.Decision) error {
	word, last := apart(args)
	id := requestNamed(last)
	if id == 0 {
		s, n, err := c.sessionAnd(args)
		if err != nil {
			return err
		}
		return c.answer(s, n, d)
	}
	s, err := c.session(word)
	if err != nil {
		return err
	}
	all, err := c.client.Questions(c.ctx, s.ID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(q api.Question) bool { return q.ID == id && q.Request != nil })
	if i < 0 {
		return api.Problemf(api.CodeNotFound, "no request q%d waits; stepbox show %s lists those that do", id, s.ID)
	}
	q := all[i]
	d.Question, d.Hash, d.By = id, cmp.Or(d.Hash, q.Hash), "cli"
	q, err = c.client.Decide(c.ctx, s.ID, d)
	return c.say(q, err, "%s: %s", q.Closed, cut(q.Title, lineMost))
}

// requestNamed is a request's number, as q7; 0: the word isn't one.
func requestNamed(word string) int64 {
	n, err := strconv.ParseInt(strings.TrimPrefix(word, "q"), 10, 64)
	if err != nil || n < 1 || !strings.HasPrefix(word, "q") {
		return 0
	}
	return n
}

const ruleHelp = "the pattern that --session, --project or --always is for, as 'go test *'; else it is exactly what is held"

const hashHelp = "only if this is still the hash of what is held (from show or --json)"

func approve(connect Connect) *cobra.Command {
	var hash, pattern, reason string
	var into, over, keep bool
	var to holding
	cmd := wrap(connect, "approve [SESSION] ACTION|qREQUEST", "Let a held action run, or a request through", cobra.RangeArgs(1, 2), func(c command, args []string) error {
		answer := api.AnswerApprove
		switch {
		case into && over, into && keep, over && keep:
			return usage("--into, --over and --keep exclude each other")
		case keep:
			answer = api.AnswerApproveKeep
		case into:
			answer = api.AnswerStepInto
		case over:
			answer = api.AnswerStepOver
		}
		d := api.Decision{Hash: hash, Answer: answer, Reason: reason}
		if err := c.sticking(&d, to, pattern); err != nil {
			return err
		}
		return c.answerNamed(args, d)
	})
	to.flags(cmd, "once")
	f := cmd.Flags()
	f.StringVar(&pattern, "rule", "", ruleHelp)
	f.StringVar(&hash, "hash", "", hashHelp+"; needed for a program within a running action")
	f.StringVar(&reason, "reason", "", "of what the agent itself asks: one line that it is answered")
	f.BoolVar(&into, "into", false, "step into: hold each program that it starts")
	f.BoolVar(&over, "over", false, "step over: run it, and hold the next action; of a program within one: hold no more of what that starts")
	f.BoolVar(&keep, "keep", false, "keep what it changes, too, without being asked")
	return cmd
}

func deny(connect Connect) *cobra.Command {
	var hash, reason, pattern string
	var forget, words bool
	var to holding
	cmd := wrap(connect, "deny [SESSION] ACTION|qREQUEST|HOST[:PORT][/PROTOCOL]", "Refuse a held action, a request, or to reach a host; the agent is told why", cobra.RangeArgs(1, 2), func(c command, args []string) error {
		if word, what := apart(args); words || strings.ContainsAny(what, ".:*") && requestNamed(what) == 0 {
			r := ruleOn(api.Deny, what, words)
			r.Why = reason
			return c.ruling(word, r, to, forget)
		}
		d := api.Decision{Hash: hash, Answer: api.AnswerDeny, Reason: reason}
		if err := c.sticking(&d, to, pattern); err != nil {
			return err
		}
		return c.answerNamed(args, d)
	})
	to.flags(cmd, "")
	f := cmd.Flags()
	f.StringVar(&pattern, "rule", "", ruleHelp)
	f.BoolVar(&forget, "forget", false, "a host or a pattern: "+forgetHelp)
	f.BoolVar(&words, "command", false, "what is named isn't an action or a host, but a pattern of commands, as 'npm publish *'")
	f.StringVar(&reason, "reason", "", "one line that the agent reads on its standard error, and that a rule says why")
	f.StringVar(&hash, "hash", "", hashHelp)
	return cmd
}

func keep(connect Connect) *cobra.Command {
	var home bool
	cmd := wrap(connect, "keep [SESSION] ACTION | --home SESSION [PATH...]", "Mark an action's changes as reviewed, or take over what a session changed in its home", cobra.MinimumNArgs(1), func(c command, args []string) error {
		if home {
			return keepHome(c, args)
		}
		if len(args) > 2 {
			return usage("keep marks one action at a time")
		}
		s, n, err := c.sessionAnd(args)
		if err != nil {
			return err
		}
		a, err := c.client.Keep(c.ctx, s.ID, n)
		return c.say(a, err, "kept: #%d  %s", a.N, cut(a.Title, lineMost))
	})
	cmd.Flags().BoolVar(&home, "home", false, "take what an ended session changed in its home (run --home session), or only PATHs of it, into its profile's")
	return cmd
}

func pause(connect Connect) *cobra.Command {
	return onSession(connect, command.session, "pause [SESSION]", "Freeze every process of a session's agent", func(c command, s api.Session) error {
		s, err := c.client.Pause(c.ctx, s.ID)
		return c.say(s, err, "paused: %s", s.Name)
	})
}

func resume(connect Connect) *cobra.Command {
	return onSession(connect, command.session, "continue [SESSION]", "Let a paused session go on", func(c command, s api.Session) error {
		if s.State == api.SessionRunning {
			return c.say(s, nil, "%s isn't paused: it is running", s.Name)
		}
		s, err := c.client.Continue(c.ctx, s.ID)
		return c.say(s, err, "continued: %s", s.Name)
	})
}

func mode(connect Connect) *cobra.Command {
	cmd := wrap(connect, "mode [SESSION] step|policy|watch", "Change which actions are held", cobra.RangeArgs(1, 2), func(c command, args []string) error {
		word, last := apart(args)
		to := api.Mode(last)
		if !to.Valid() {
			return NoMode(to)
		}
		s, err := c.session(word)
		if err != nil {
			return err
		}
		if s, err = c.client.SetMode(c.ctx, s.ID, to); s.Held == 0 || to == api.ModeStep {
			return c.say(s, err, "mode %s: %s", s.Mode, s.Name)
		}
		return c.say(s, err, "mode %s: %s\nwhat was held before waits on (%d): stepbox show %s", s.Mode, s.Name, s.Held, s.ID)
	})
	cmd.ValidArgs = []string{"step", "policy", "watch"}
	return cmd
}

func kill(connect Connect) *cobra.Command {
	var action int
	cmd := onSession(connect, command.session, "kill [SESSION]", "End a session's sandbox, or one action's processes", func(c command, s api.Session) error {
		if action > 0 {
			a, err := c.client.KillAction(c.ctx, s.ID, action)
			return c.say(a, err, "killed: #%d  %s", a.N, cut(a.Title, lineMost))
		}
		ended, err := c.client.Kill(c.ctx, s.ID)
		return c.say(ended, err, "killed: %s", s.Name) // as it is called now
	})
	cmd.Flags().IntVar(&action, "action", 0, "only the processes of this action")
	return cmd
}
