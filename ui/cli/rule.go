package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

// holding is for how long an answer holds, as flags say it.
type holding struct{ once, session, project, always bool }

func (h *holding) flags(cmd *cobra.Command, usual string) {
	for _, f := range []struct {
		to   *bool
		name string
		help string
	}{
		{&h.once, "once", "for what waits now, and what the same action tries again"},
		{&h.session, "session", "for this session, also when it is resumed"},
		{&h.project, "project", "for this project: a rule in its .stepbox.yaml"},
		{&h.always, "always", "for all that you run: a rule in your policy.yaml"},
	} {
		if f.name == usual {
			f.help += ", which is usual"
		}
		cmd.Flags().BoolVar(f.to, f.name, false, f.help)
	}
	cmd.MarkFlagsMutuallyExclusive("once", "session", "project", "always")
}

func (h *holding) extent(usual api.Extent) api.Extent {
	switch {
	case h.once:
		return api.ExtentOnce
	case h.session:
		return api.ExtentSession
	case h.project:
		return api.ExtentProject
	case h.always:
		return api.ExtentAlways
	}
	return usual
}

// forWords says for how long something holds.
func forWords(e api.Extent) string {
	switch e {
	case api.ExtentSession:
		return "for this session"
	case api.ExtentProject:
		return "for this project"
	case api.ExtentAlways:
		return "always"
	}
	return "once"
}

const forgetHelp = "forget the rule on it, where it was made or the flag says"

func allow(connect Connect) *cobra.Command {
	var to holding
	var forget, words bool
	cmd := wrap(connect, "allow [SESSION] HOST[:PORT][/PROTOCOL]", "Let a session's agent reach a host, or start commands of a pattern", cobra.RangeArgs(1, 2), func(c command, args []string) error {
		word, what := apart(args)
		return c.ruling(word, ruleOn(api.Allow, what, words), to, forget)
	})
	to.flags(cmd, "session")
	cmd.Flags().BoolVar(&forget, "forget", false, forgetHelp)
	cmd.Flags().BoolVar(&words, "command", false, "what is named isn't a host, but a pattern of commands, as 'go test *'")
	return cmd
}

// ruleOn is a rule on a host, or on commands.
func ruleOn(v api.Verdict, what string, words bool) api.Rule {
	if words {
		return api.Rule{Verdict: v, Command: what, By: "cli"}
	}
	return api.Rule{Verdict: v, Host: what, By: "cli"}
}

// notSession refuses a host that is the name of a session, where none is named: the host
// was forgotten.
func (c command) notSession(word, host string) error {
	if word != "" || host == "" || strings.ContainsAny(host, ".:/*") {
		return nil
	}
	all, err := c.client.Sessions(c.ctx)
	if err == nil && slices.ContainsFunc(all, func(s api.Session) bool { return s.Name == host || s.ID == host }) {
		err = usage("%s is a session: name the host after it, as in stepbox allow %s example.org:443", host, host)
	}
	return err
}

// ruling makes a rule in the session that is meant, or takes one back, and where none runs
// in the file that it is for.
func (c command) ruling(word string, r api.Rule, to holding, forget bool) error {
	if err := c.notSession(word, r.Host); err != nil {
		return err
	}
	s, err := c.ruled(word, to)
	switch {
	case err != nil:
		return err
	case s.Live():
		return c.rule(s, r, to, forget)
	case !to.project && !to.always:
		const what = "answers once and for the session need one that runs: use --always for a rule in your policy, or --project for one in the project's"
		if s.ID == "" {
			return api.Problemf(api.CodeNotFound, "no session is running; %s", what)
		}
		return api.Problemf(api.CodeNotLive, "session %s isn't running; %s", s.Name, what)
	}
	at := api.FolderRule{Folder: s.Folder, Rule: r}
	if at.Rule.For = to.extent(""); at.Folder == "" {
		if at.Folder, err = real(""); err != nil {
			return err
		}
	}
	if forget {
		out, err := c.client.ForgetRule(c.ctx, at)
		return c.say(out, err, "%s: there is no rule any more to %s", out.File, r.Words())
	}
	out, err := c.client.KeepRule(c.ctx, at)
	return c.say(out, err, "%s: %s%s", out.File, r.Words(), beatenWords(out.Beaten))
}

// ruled is the session in which a rule is made. Where none is named, it is the only one
// that runs; for a project's, in this folder. It is none, without an ID, where a file is
// enough and no one session is meant.
func (c command) ruled(word string, to holding) (api.Session, error) {
	all, err := c.client.Sessions(c.ctx)
	if err != nil || word != "" {
		if err != nil {
			return api.Session{}, err
		}
		return Find(all, word)
	}
	live := only(all, api.Session.Live)
	if to.project {
		if live, err = ofHere(live); err != nil {
			return api.Session{}, err
		}
	}
	if len(live) == 0 || len(live) > 1 && (to.project || to.always) {
		return api.Session{}, nil
	}
	return Find(live, "")
}

// beatenWords say that a rule doesn't hold, if another wins.
func beatenWords(by string) string {
	if by == "" {
		return ""
	}
	return "\nbut it doesn't hold: " + by + " wins"
}

// rule makes a rule, takes it back, or answers what it would answer once.
func (c command) rule(s api.Session, r api.Rule, to holding, forget bool) error {
	if forget {
		if to.once {
			return usage("what was answered once is no rule that could be forgotten")
		}
		r.For = to.extent("")
		s, err := c.client.RemoveRule(c.ctx, s.ID, r)
		return c.say(s, err, "%s: there is no rule any more to %s", s.Name, r.Words())
	}
	if r.For = to.extent(api.ExtentSession); r.For != api.ExtentOnce {
		s, err := c.client.AddRule(c.ctx, s.ID, r)
		return c.say(s, err, "%s: %s %s%s", s.Name, r.Words(), forWords(r.For), beatenWords(s.Beaten))
	}
	if r.Command != "" {
		return usage("what waits is answered by its number: stepbox approve ACTION")
	}
	return c.once(s, r)
}

// once answers what is asked about a host; "*" is all of a program that tries too many.
func (c command) once(s api.Session, r api.Rule) error {
	all, err := c.client.Questions(c.ctx, s.ID)
	if err != nil {
		return err
	}
	answer := map[api.Verdict]api.Answer{api.Allow: api.AnswerApprove, api.Deny: api.AnswerDeny}[r.Verdict]
	var answered []api.Question
	for _, q := range all {
		if q.Connection == nil {
			continue
		}
		if c := q.Connection; c.Rule != r.Host && cmp.Or(c.Host, "*") != r.Host {
			continue
		}
		d := api.Decision{Question: q.ID, Hash: q.Hash, Answer: answer, Reason: r.Why, By: "cli"}
		if len(answered) > 0 {
			d.With = answered[0].ID
		}
		q, err := c.client.Decide(c.ctx, s.ID, d)
		if err != nil {
			return err
		}
		answered = append(answered, q)
	}
	if len(answered) == 0 {
		return api.Problemf(api.CodeNotFound, "%s asks nothing about %s now; stepbox net %s lists what it tries", s.Name, api.Escape(r.Host), s.ID)
	}
	return c.say(answered, nil, "%s: %s once", s.Name, r.Words())
}

// sticking is for how long an answer holds, and for what.
func (c command) sticking(d *api.Decision, to holding, pattern string) error {
	if d.For = to.extent(""); pattern != "" {
		if d.For == "" || d.For == api.ExtentOnce {
			return usage("--rule says what is answered for longer: add --session, --project or --always")
		}
		d.Pattern = pattern
	}
	return nil
}
