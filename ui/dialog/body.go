package dialog

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// write writes the body, and says how many rows of it, from the first on, show what a decision
// covers. What is needed to answer comes first: what it is, by which rule it is asked,
// what it did the last time. Long lists come last.
func (d *Decision) write(b *paper, now time.Time) (covered int) {
	q := d.shown
	for _, w := range warnings(q) {
		b.say("⚠ "+w, themes.Warn)
	}
	if n := len(d.equal); n > 0 {
		b.say("≡ and "+paint.Count(n, "equal one", "equal ones")+", answered with it: "+actions(d.equal), themes.Info)
	}
	if d.also != "" {
		b.say("≡ "+paint.Clean(d.also), themes.Info)
	}
	b.offer(q)
	switch {
	case q.Connection != nil:
		b.connection(q, d.action, now)
		if covered = len(b.rows); q.Connection.Host != "" {
			b.tries(q.Connection, now)
			b.factIn("so far", d.sofar, themes.SurfaceMuted)
		}
		return covered
	case q.Request != nil:
		b.request(q, d.action)
		return len(b.rows)
	case q.Command != nil:
		return d.commands(b)
	}
	return d.edit(b)
}

func actions(qs []api.Question) string {
	var out []string
	for _, q := range qs {
		out = append(out, "#"+strconv.Itoa(q.Action))
	}
	return strings.Join(out, ", ")
}

// commands is the body of a question about what is to run.
func (d *Decision) commands(b *paper) (covered int) {
	all := d.shown.Command.All()
	for i, c := range all {
		if i > 0 {
			b.muted("together with, as one job:")
		}
		b.command(c.Title())
		b.parts(c)
		if c.Written {
			b.pair("program", c.Program+", which this session wrote", themes.Warn)
		} else {
			b.pair("program", cmp.Or(c.Program, "—"), themes.Surface)
		}
		b.pair("folder", c.Cwd, themes.Surface)
	}
	d.facts(b)
	usual, some := 0, false
	for _, c := range all {
		usual += len(c.EnvUsual)
		some = some || len(c.Env) > 0
		b.facts("variables", c.Env, themes.Surface)
	}
	covered = len(b.rows)
	switch {
	case d.raw:
		d.arguments(b)
	case usual > 0 && some:
		b.factIn("", "and "+strconv.Itoa(usual)+" as approved before, or that say where it runs (v)", themes.SurfaceMuted)
	}
	return covered
}

// facts are why a command is asked about, and what is known of it.
func (d *Decision) facts(b *paper) {
	q, c := d.shown, d.shown.Command
	b.fact("asked by", cmp.Or(q.Rule, "—"))
	if why := uncounted(q); why != "" {
		b.fact("rules", "none that allows counts: "+why)
	}
	b.facts("sends", c.Sends, themes.Warn)
	b.fact("last time", c.LastTime)
	b.fact("said", d.said)
	b.factIn("started by", strings.Join(c.Parents, " ← "), themes.SurfaceMuted)
	if c.Before != 0 {
		// Of the home folder, and of what is sent, nothing is kept.
		b.factIn("roll back", fmt.Sprintf("the project to checkpoint %d, nothing else", c.Before), themes.SurfaceMuted)
	}
}

// uncounted is why no rule that allows counts for what a question is about; "": they do.
func uncounted(q api.Question) string {
	if q.Command == nil {
		return ""
	}
	for _, c := range q.Command.All() {
		if c.Uncounted != "" {
			return c.Uncounted
		}
	}
	return ""
}

// arguments are those of each program as they are, and the variables that aren't shown
// with each question.
func (d *Decision) arguments(b *paper) {
	b.gap()
	b.muted("arguments as they are executed")
	for _, c := range d.shown.Command.All() {
		for i, a := range c.Argv {
			b.pair("  "+strconv.Itoa(i), a, themes.Surface)
		}
		if len(c.EnvUsual) > 0 {
			b.muted("variables as approved before, or that say where it runs")
			b.facts("", c.EnvUsual, themes.Surface)
		}
	}
}

// edit is the body of a question about changes: all of them, which is what a decision
// covers, and below them their differences.
func (d *Decision) edit(b *paper) (covered int) {
	q := d.shown
	if len(q.Changes) == 0 {
		b.say(q.Title, themes.Strong)
	}
	alone := len(q.Changes) == 1 && len(d.diffs) == 1 // its difference needs no name
	for _, c := range q.Changes {
		if alone {
			f := d.diffs[0].Change
			c.Counted, c.Added, c.Removed = f.Counted, f.Added, f.Removed
		}
		b.change(c, text{})
	}
	covered = len(b.rows)
	if d.kind == api.KindCommand {
		b.fact("made by", "$ "+d.action)
	}
	b.fact("asked by", cmp.Or(q.Rule, "—"))
	b.fact("said", d.said)
	b.differences(d.diffs, alone, mostRows)
	if d.unread != "" {
		b.say(d.unread, themes.SurfaceMuted)
	}
	return covered
}

// Lacks is the action whose differences the question about its changes lacks, or 0.
// It says so once for each text of the question.
func (d *Decision) Lacks() int {
	if d.shown.Subject != api.SubjectEdit || d.over != "" || d.asked == d.print {
		return 0
	}
	d.asked = d.print
	return d.shown.Action
}

// SetDiffs takes the differences that Lacks asked for: of how many files more there are
// some, or why they can't be had.
func (d *Decision) SetDiffs(diffs []api.FileDiff, problem string) {
	d.diffs, d.unread, d.made = diffs, "", made{}
	switch n := len(d.shown.Changes) - len(diffs); {
	case problem != "":
		d.unread = "the differences can't be read: " + problem
	case n > 0 && len(diffs) == maxDiffs:
		d.unread = "⋯ and " + paint.Files(n) + " more; Changes has all of them"
	}
}

// ThisMachine is the name by which the sandbox reaches ports of the machine that it is on.
const ThisMachine = "host.stepbox.internal"

// headline is the first row of a body: what is asked about, with what is odd of it marked.
func headline(sign, about string) row {
	return row{inset: true, spans: append([]text{{sign, themes.Held}}, odd(about)...)}
}

// asker says which action asks.
func asker(q api.Question, action string) string {
	if q.Action == 0 {
		return "no action: the agent itself, or what it left running"
	}
	return fmt.Sprintf("#%d  %s", q.Action, action)
}

// connection is the body of a question about a connection, as far as a decision covers
// it: who wants to go where, and why that is asked. The rest is what tries says.
func (b *paper) connection(q api.Question, action string, now time.Time) {
	c := q.Connection
	if c.Host == "" {
		b.flood(q, now)
		return
	}
	b.add(headline(" → ", paint.Reach(c)))
	where := c.Host + ", " + strings.ToUpper(c.Protocol)
	if c.Port != 0 {
		where += " port " + strconv.Itoa(c.Port)
	}
	if c.Host == ThisMachine && c.Port != 0 {
		where = fmt.Sprintf("this machine's 127.0.0.1:%d, as %s", c.Port, where)
	}
	b.fact("to", where)
	b.facts("sends", c.Sends, themes.Warn)
	b.fact("program", cmp.Or(c.Program, "it isn't known which"))
	b.fact("for", asker(q, action))
	b.factIn("limit", c.Limit, themes.Warn)
	b.fact("asked by", cmp.Or(q.Rule, "no rule decides it"))
}

// flood is the body of a question about more destinations than are asked about one
// by one.
func (b *paper) flood(q api.Question, now time.Time) {
	b.say("More destinations are tried than are asked about one by one. They can be denied together; what is to be reached needs a rule.", themes.Surface)
	b.tries(q.Connection, now)
	b.facts("to", q.Connection.Many, themes.Surface)
	b.fact("asked by", cmp.Or(q.Rule, "no rule decides it"))
}

// tries says how a connection's tries stand now.
func (b *paper) tries(c *api.Connection, now time.Time) {
	tried := "tried " + paint.Count(c.Tries, "time", "times")
	if !c.LastTry.IsZero() {
		tried += ", the last " + paint.Clock(now.Sub(c.LastTry)) + " ago"
	}
	waits := paint.Count(c.Waiting, "connection waits", "connections wait") + " for the answer"
	if c.Waiting == 0 {
		waits = "it gave up; the answer serves its next try"
	}
	b.fact("now", waits)
	if c.Pid != 0 {
		tried += fmt.Sprintf(", by process %d", c.Pid)
	}
	b.factIn("tries", tried, themes.SurfaceMuted)
	b.factIn("last time", c.LastTime, themes.SurfaceMuted)
}

// request is the body of a question about what a program wants of the person's.
func (b *paper) request(q api.Question, action string) {
	r := q.Request
	b.add(headline(" ? ", paint.Spelled(b.dst, q.Title)))
	for _, f := range r.Facts {
		b.fact(f.Name, f.Value)
	}
	program := cmp.Or(r.Program, "it isn't known which")
	if r.Pid != 0 {
		program += fmt.Sprintf(", process %d", r.Pid)
	}
	b.fact("program", program)
	b.fact("for", asker(q, action))
	b.fact("asked by", q.Rule)
}

// Offered is the pattern of a rule that the question itself offers to allow by, in a
// few words; "" when it offers none.
func Offered(q api.Question) string {
	if q.Offer == nil || q.Offer.Answer == api.AnswerDeny {
		return ""
	}
	return cmp.Or(paint.Clean(q.Offer.Pattern), "this")
}

// offer says that the same was answered the same several times, and how it is answered
// for longer.
func (b *paper) offer(q api.Question) {
	o := q.Offer
	if o == nil {
		return
	}
	said, how := "allowed", keys.First(intent.Always{}, keys.Decision)+" makes that a rule"
	if o.Answer == api.AnswerDeny {
		said = "denied"
		how = fmt.Sprintf("%s, then %s, has that hold for longer", keys.First(intent.Deny{}, keys.Decision), keys.First(intent.Extent{By: 1}, keys.Denial))
	}
	words := fmt.Sprintf("↻ you %s this %s: %s", said, paint.Count(o.Times, "time", "times"), how)
	if p := cmp.Or(paint.Clean(o.Pattern), paint.Clean(o.Means)); p != "" && o.Answer != api.AnswerDeny {
		words += " (" + p + ")"
	}
	b.say(words, themes.Info)
}
