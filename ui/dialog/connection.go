package dialog

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

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
func (b *body) connection(q api.Question, action string, now time.Time) {
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
	b.fact("program", cmp.Or(c.Program, "it isn't known which"))
	b.fact("for", asker(q, action))
	b.factIn("limit", c.Limit, themes.Warn)
	b.fact("asked by", cmp.Or(q.Rule, "no rule decides it"))
}

// flood is the body of a question about more destinations than are asked about one
// by one.
func (b *body) flood(q api.Question, now time.Time) {
	b.say("More destinations are tried than are asked about one by one. They can be denied together; what is to be reached needs a rule.", themes.Surface)
	b.tries(q.Connection, now)
	b.facts("to", q.Connection.Many, themes.Surface)
	b.fact("asked by", cmp.Or(q.Rule, "no rule decides it"))
}

// tries says how a connection's tries stand now.
func (b *body) tries(c *api.Connection, now time.Time) {
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
