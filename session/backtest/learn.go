package backtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/rules"
)

// usualTimes is how often an answer must have been given to be made a rule.
const usualTimes = 2

// Learn proposes rules from what persons answered in recorded sessions, and tells how far
// it is. It looks at answers alone: what rules let through, or the mode did, teaches
// nothing, nor do sessions that were recorded elsewhere.
func (b *Backtester) Learn(ctx context.Context, r api.PolicyLearn, tell func(api.PastSeen)) (api.PolicyLearned, error) {
	l := lessons{home: b.Home, times: cmp.Or(max(r.Times, 0), usualTimes), commands: make(map[string]*lesson), hosts: make(map[string]*lesson)}
	err := b.walk(ctx, r.PastOf, tell, func(s *api.Session, now Layers) func(*Deed) error {
		l.world, l.seen = NewWorld(b.Home, b.profiles(), now.all()...), make(map[int64]bool)
		l.out.Sessions++
		return l.deed
	})
	if err != nil {
		return l.out, err
	}
	return l.result(), nil
}

// lessons are what answers have taught so far.
type lessons struct {
	out   api.PolicyLearned
	home  string
	times int

	world    *World
	seen     map[int64]bool // answers of the session, by their question
	commands map[string]*lesson
	hosts    map[string]*lesson
	denied   []judgedStart // what no rule that allows may be about
	approved []judgedStart // and none that denies
}

// judgedStart is a program start, and how the rules in force judge it.
type judgedStart struct {
	Start
	policy *policy.Policy
	folder string
}

// lesson is what was answered on one thing.
type lesson struct {
	pattern  string   // as a rule has it
	words    []string // of a command
	fixed    int      // of them: what the rule that asks about it names
	to       policy.Destination
	approved int
	denied   int
	alone    bool // it was all that was asked about, each time it was denied
	sessions map[string]bool
	newest   api.Past
}

// maxLessons are kept of each kind; what is beyond them teaches nothing.
const maxLessons = 5000

// deed takes in one thing, if a person answered a question about it.
func (l *lessons) deed(d *Deed) error {
	if d.Kind == Edited || d.Kind == Asked {
		return nil
	}
	says, err := l.world.Says(d)
	answer := cmp.Or(d.With, d.Question)
	if err != nil || answer == 0 || d.Answer == "" || d.Session.Mode == api.ModeWatch || l.seen[answer] {
		return err
	}
	l.seen[answer] = true
	l.out.Answers++
	if d.Kind == Connected {
		if says.Verdict == policy.Ask {
			l.note(l.hosts, d, &lesson{pattern: d.To.String(), to: d.To, alone: true})
		}
		return nil
	}
	var asked []*lesson
	for _, s := range d.Starts {
		js := judgedStart{s, l.world.policy, d.Session.Folder}
		if d.Denied() && len(l.denied) < maxLessons {
			l.denied = append(l.denied, js)
		} else if d.Approved() && len(l.approved) < maxLessons {
			l.approved = append(l.approved, js)
		}
		asked = append(asked, l.parts(js)...)
	}
	for _, x := range asked {
		x.alone = len(asked) == 1
		l.note(l.commands, d, x)
	}
	return nil
}

func (l *lessons) note(in map[string]*lesson, d *Deed, x *lesson) {
	known := in[x.pattern]
	if known == nil {
		if len(in) >= maxLessons {
			return
		}
		x.sessions = make(map[string]bool)
		in[x.pattern], known = x, x
	}
	if known.sessions[d.Session.ID] = true; d.Denied() {
		known.denied++
		known.alone = known.alone && x.alone
	} else {
		known.approved++
	}
	if d.At.After(known.newest.At) {
		known.newest = pastOf(d)
	}
}

// theLesson is the layer of a rule that is proposed.
const theLesson = "the proposal"

// parts are the simple commands of a start that rules ask about and that a rule can be
// made for, each as such a rule.
func (l *lessons) parts(s judgedStart) (out []*lesson) {
	j := s.start(s.policy, s.folder, l.home)
	if j.Verdict != policy.Ask {
		return nil
	}
	for _, p := range j.Parts {
		if p.Verdict != policy.Ask {
			continue
		}
		for _, words := range p.Readings() {
			text, ok := rules.Exactly(words)
			if ok && l.decides(s, api.Rule{Verdict: api.Allow, Command: text}, p.Text) {
				out = append(out, &lesson{pattern: text, words: words, fixed: named(p.Rule)})
				break
			}
		}
	}
	return out
}

// decides says whether a rule would have the last word on a simple command of a start, or
// on any of them where part is "".
func (l *lessons) decides(s judgedStart, r api.Rule, part string) bool {
	layer, err := rules.Layer(theLesson, []api.Rule{r})
	if err != nil {
		return false
	}
	j := s.start(s.policy.With(layer), s.folder, l.home)
	return slices.ContainsFunc(j.Parts, func(p policy.Part) bool { return (part == "" || p.Text == part) && p.Layer == theLesson })
}

// result proposes what was learned.
func (l *lessons) result() api.PolicyLearned {
	l.out.Proposals = []api.LearnedRule{}
	l.learnHosts()
	l.learnCommands()
	slices.SortStableFunc(l.out.Proposals, func(a, b api.LearnedRule) int {
		return cmp.Or(cmp.Compare(min(len(a.Command), 1), min(len(b.Command), 1)), b.Times-a.Times, cmp.Compare(a.Host+a.Command, b.Host+b.Command))
	})
	return l.out
}

// sorted are lessons in a stable order.
func sorted(of map[string]*lesson) []*lesson {
	var out []*lesson
	for _, k := range slices.Sorted(maps.Keys(of)) {
		out = append(out, of[k])
	}
	return out
}

// propose adds a rule from what was answered alike.
func (l *lessons) propose(r api.Rule, from ...*lesson) {
	r, err := rules.Checked(r)
	if err != nil {
		l.leave(r.Command+r.Host, "no rule can hold it")
		return
	}
	p := api.LearnedRule{Rule: r}
	sessions := make(map[string]bool)
	for _, x := range from {
		p.Times += x.approved + x.denied
		maps.Copy(sessions, x.sessions)
		if x.newest.At.After(p.Newest.At) {
			p.Newest = x.newest
		}
		if len(from) > 1 {
			p.Of = append(p.Of, api.Escape(x.pattern))
		}
	}
	p.Sessions = len(sessions)
	verb := "approved"
	if r.Verdict == api.Deny {
		verb = "denied"
	}
	p.Why = fmt.Sprintf("%s %s in %s, and never otherwise answered", verb, counted(p.Times, "time"), counted(p.Sessions, "session"))
	l.out.Proposals = append(l.out.Proposals, p)
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func (l *lessons) leave(what, why string) {
	l.out.Left = append(l.out.Left, api.LearnedLeave{What: api.Escape(api.Trim(what, maxTitle)), Why: why})
}
