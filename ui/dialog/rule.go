package dialog

import (
	"cmp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// extents are for how long a rule may hold, the shortest first.
var extents = []api.Extent{api.ExtentSession, api.ExtentProject, api.ExtentAlways}

// extentWords says for how long an answer holds.
func extentWords(e api.Extent) string {
	switch e {
	case api.ExtentSession:
		return "in this session"
	case api.ExtentProject:
		return "in this project"
	case api.ExtentAlways:
		return "always"
	}
	return "once"
}

// RuleWords says what a rule does, and for how long.
func RuleWords(r api.Rule) string {
	verb := map[api.Verdict]string{api.Allow: "allow", api.Deny: "deny", api.Ask: "ask about"}[r.Verdict]
	return verb + " " + paint.Clean(r.Command+r.Host) + " " + extentWords(r.For)
}

// Rule is where an answer becomes a rule: which one, of some from narrow to wide, and
// for how long. Enter answers so; nothing else does.
type Rule struct {
	sheet
	About string       // what was asked about, or tried
	Shown state.Target // what keys would decide, but for what is chosen

	// do makes the answer of what was chosen.
	do        func(p api.Proposal, e api.Extent) intent.Intent
	verdict   api.Verdict
	commands  bool // it is on commands
	counted   bool // proposals say what of the past they cover
	loaded    bool
	problem   string // why there are no proposals but the narrowest
	uncounted string // why there can't be any
	off       string // why enter does nothing, or ""
	sent      bool
	failed    string
	proposals []api.Proposal
	offered   string // the pattern that the question offers by itself
	at        int
	extent    int
	held      []api.Question // all that waits
	step      bool           // what rules allow is asked about
	itself    bool           // the agent's own program starts it
	seen      int            // rows from the first on that have been in view, at
	seenAt    int            // this width
	whole     bool           // all were that say what enter does
}

// NewAlways asks which rule the answer to a question becomes. Where Lacks says so, its
// proposals come later.
func NewAlways(q api.Question, print string) *Rule {
	shown := state.Target{Question: q.ID, Hash: print, Place: "rule"}
	if c := q.Connection; c != nil && c.Host == "" {
		var of []api.Proposal
		for _, host := range c.Many {
			of = append(of, api.Proposal{Pattern: host, Means: "one of those that are tried"})
		}
		return NewRule(asked(q), shown, api.Allow, of)
	}
	offered := ""
	if o := q.Offer; o != nil && o.Answer != api.AnswerDeny {
		offered = o.Pattern
	}
	return &Rule{
		sheet: sheet{dock: dockRows}, offered: offered, uncounted: uncounted(q),
		counted: true, About: asked(q), verdict: api.Allow, commands: q.Connection == nil, Shown: shown, proposals: exactly(q),
		do: func(p api.Proposal, e api.Extent) intent.Intent {
			return intent.Decide{Question: q.ID, Hash: q.Hash, Answer: api.AnswerApprove, For: e, Pattern: p.Pattern}
		},
	}
}

// NewRule asks which of some rules on what may be reached is made, of no question.
func NewRule(about string, shown state.Target, v api.Verdict, proposals []api.Proposal) *Rule {
	return &Rule{
		About: about, verdict: v, Shown: shown, loaded: true, proposals: proposals,
		do: func(p api.Proposal, e api.Extent) intent.Intent {
			return intent.MakeRule{Rule: api.Rule{Verdict: v, Host: p.Pattern, For: e}}
		},
	}
}

// asked is what a question is about, in one line.
func asked(q api.Question) string {
	switch {
	case q.Apart():
		return paint.Wants(q)
	case q.Command != nil:
		return q.Command.Title()
	}
	return q.Title
}

// exactly is the rule that is always proposed: what was asked about, and no more.
func exactly(q api.Question) []api.Proposal {
	if q.Connection != nil {
		return []api.Proposal{{Pattern: q.Connection.Rule, Means: "exactly this destination"}}
	}
	return []api.Proposal{{Means: "exactly this command"}}
}

// Lacks says whether its proposals are still to be looked up.
func (r *Rule) Lacks() bool { return !r.loaded }

// Set takes the proposals, or why there is only the one that there always is.
func (r *Rule) Set(p []api.Proposal, err error) {
	r.problem, r.loaded = paint.Failed(err), true
	r.choose(0)
	if err == nil {
		r.proposals = p
	}
	if i := slices.IndexFunc(r.proposals, func(p api.Proposal) bool { return r.offered != "" && p.Pattern == r.offered }); i > 0 {
		r.choose(i)
	}
	r.Shown.Hash += " proposed" // what enter does is another thing now
}

func (r *Rule) Scope() keys.Scope    { return keys.Rule }
func (r *Rule) Target() state.Target { return r.Shown }
func (r *Rule) Leave() string        { return "back, nothing answered" }
func (r *Rule) Fail(words string)    { r.sent, r.failed = false, words }

// Care: what enter does must have been in view; what is chosen moves with keys.
func (r *Rule) Care(i intent.Intent) state.Care {
	if _, yes := i.(intent.Yes); yes {
		return state.InView
	}
	return state.AtOnce
}

// Sync says when the question isn't what it was any more.
func (r *Rule) Sync(n News) {
	id := r.Shown.Question
	r.held, r.step = n.State.Questions, n.State.Session.Mode == api.ModeStep
	if r.Shown.Place != "rule" {
		return
	}
	q, ok := n.State.Question(id)
	if ok && q.Command != nil {
		r.itself = q.Command.Itself
	}
	switch print := n.State.Print(id); {
	case !ok && !r.sent:
		r.off = n.Closed(id)
	case ok && !strings.HasPrefix(r.Shown.Hash, print):
		r.off = "the question changed meanwhile: go back and look again"
	}
}

// Why says why enter does nothing now.
func (r *Rule) Why(i intent.Intent) string {
	if _, yes := i.(intent.Yes); !yes {
		return ""
	}
	switch {
	case r.off != "":
		return r.off
	case r.sent:
		return OnItsWay
	case !r.loaded:
		return "what it would be about is being looked up"
	case len(r.proposals) == 0:
		return "no rule can be made of it: a and d answer it once"
	case !r.whole:
		return r.unread(r.seen)
	}
	return ""
}

// choose chooses a rule. What was read of another doesn't count.
func (r *Rule) choose(at int) {
	if at = max(0, min(at, len(r.proposals)-1)); at != r.at {
		r.at, r.top, r.seen, r.whole = at, 0, 0, false
	}
}

// Handle chooses, and answers.
func (r *Rule) Handle(i intent.Intent) intent.Intent {
	switch i := i.(type) {
	case intent.Back:
		return i
	case intent.Yes:
		if r.Why(i) == "" {
			r.sent, r.failed = true, ""
			return r.do(r.proposals[r.at], extents[r.extent])
		}
	case intent.Extent:
		r.extent = (r.extent + i.By + len(extents)) % len(extents)
	case intent.Move:
		r.choose(r.at + i.By)
	case intent.Top:
		r.choose(0)
	case intent.Bottom:
		r.choose(len(r.proposals))
	case intent.Page:
		was := r.top
		r.scroll(i)
		r.onlySeen(i, was, r.seen)
	}
	return nil
}

func (r *Rule) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b := r.begin(f, area, 100)
	b.gap()
	b.say(r.About, themes.Strong)
	b.cut(1 + 3)
	b.gap()
	var chosen, examples, tail []row
	hints := []paint.Hint{leave(r.Leave())}
	switch {
	case !r.loaded:
		b.muted("⋯ looking up what rules would be about")
	case len(r.proposals) > 0:
		chosen, examples = r.chosen(f.Screen, b.width)
	case r.uncounted != "":
		b.say("no rule that allows counts for it: "+r.uncounted, themes.Surface)
		b.gap()
	}
	if !r.loaded || len(r.proposals) > 0 {
		tail = rowsOf(f.Screen, b.width, r.last)
		hints = append([]paint.Hint{
			{Key: "↑↓", Words: "which"}, hint(intent.Extent{By: 1}, keys.Rule, "for how long", false),
			hint(intent.Yes{}, keys.Rule, string(r.verdict)+" so", r.Why(intent.Yes{}) != ""),
		}, hints...)
	}
	// The list has the room that the rest leaves.
	room := area.Dy() - r.chrome(len(paint.WrapHints(f.Screen, hints, b.width)), true) - len(b.rows) - len(chosen) - len(examples) - len(tail)
	if room < len(r.proposals) { // better than blanks are those that can be chosen
		for _, part := range []*[]row{&b.rows, &chosen, &tail} {
			before := len(*part)
			*part = slices.DeleteFunc(*part, func(x row) bool { return len(x.spans) == 0 })
			room += before - len(*part)
		}
	}
	if room >= min(len(r.proposals), leastRows) {
		chosen, examples = append(chosen, examples...), nil
	} else { // better than examples is what has to be read
		room += len(examples)
	}
	r.list(b, max(1, room))
	b.add(chosen...)
	b.add(tail...)
	covered := len(b.rows)
	b.add(examples...)
	if r.failed != "" {
		r.top = covered
	}
	if r.seenAt != b.width {
		r.seen, r.seenAt = 0, b.width
	}
	r.draw(b, area, f, []text{{"◆ ", themes.Held}, {"Make it a rule", themes.Strong}}, hints, r.note())
	if len(r.rows) < len(b.rows) { // the dock leaves the first blank out
		covered--
	}
	if f.Focused && r.loaded && r.top <= r.seen {
		r.seen = max(r.seen, r.top+r.height)
		r.whole = r.whole || r.seen >= covered
	}
	return nil
}

// last adds for how long the rule may hold, and what was wrong.
func (r *Rule) last(b *paper) {
	extent := []text{{b.pad("for", 6), themes.SurfaceMuted}}
	for i, e := range extents {
		extent = append(extent, r.mark(i == r.extent, map[api.Extent]string{
			api.ExtentSession: "this session", api.ExtentProject: "this project", api.ExtentAlways: "always",
		}[e])...)
		extent = append(extent, text{"   ", themes.Surface})
	}
	b.gap()
	b.line(extent...)
	b.gap()
	if r.failed != "" { // whole: what to do about it comes last in it
		b.say("! "+r.failed, themes.Warn)
	}
}

// note is why enter does nothing, or what it does.
func (r *Rule) note() text {
	switch why := r.Why(intent.Yes{}); {
	case why != "" && r.loaded:
		return warning(why)
	case r.loaded && len(r.proposals) > 0:
		extent := extentWords(extents[r.extent])
		if extents[r.extent] == api.ExtentAlways {
			extent += ", in all of your sessions"
		}
		if r.step && r.commands && r.verdict == api.Allow {
			switch {
			case extents[r.extent] == api.ExtentSession && r.itself:
				extent += " in step mode, to the agent's own program"
			default:
				extent += " (step mode still asks)"
			}
		}
		return text{"→ " + string(r.verdict) + " " + extent + ": " + cmp.Or(paint.Clean(r.proposals[r.at].Pattern), "exactly this"), themes.OK}
	}
	return text{}
}

// named is a proposal's pattern as the list has room for it.
func named(dst uv.Screen, p api.Proposal, width int) string {
	return paint.Shorten(dst, cmp.Or(paint.Clean(p.Pattern), "exactly this"), width*3/5)
}

// column is how wide the list's patterns are.
func (r *Rule) column(dst uv.Screen, width int) (column int) {
	for _, p := range r.proposals {
		column = max(column, paint.Width(dst, named(dst, p, width))+2)
	}
	return column
}

// list adds the proposals in view, in so many rows.
func (r *Rule) list(b *paper, room int) {
	first, column := max(0, min(r.at-room/2, len(r.proposals)-room)), r.column(b.dst, b.width)
	for i := first; r.loaded && i < min(first+room, len(r.proposals)); i++ {
		p := r.proposals[i]
		spans := r.mark(i == r.at, b.pad(named(b.dst, p, b.width), column))
		b.line(append(spans, text{paint.Clean(p.Means), themes.SurfaceMuted})...)
	}
}

// mark is a choice, and whether it is what is chosen.
func (r *Rule) mark(chosen bool, words string) []text {
	if chosen {
		return []text{{"● ", themes.Key}, {words, themes.Strong}}
	}
	return []text{{"○ ", themes.SurfaceMuted}, {words, themes.Surface}}
}
