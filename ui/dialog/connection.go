package dialog

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// ThisMachine is the name by which the sandbox reaches ports of the machine that it is on.
const ThisMachine = "host.stepbox.internal"

// headline is the first row of a body: what is asked about, with what is odd of it marked.
func headline(sign, about string) row {
	out := row{inset: true, spans: []text{{sign, themes.Held}}}
	for _, part := range paint.Marked(about) {
		k := themes.Inset
		if part.Odd {
			k = themes.Odd
		}
		out.spans = append(out.spans, text{part.Text, k})
	}
	return out
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
func connection(dst uv.Screen, q api.Question, action string, width int, now time.Time) []row {
	c := q.Connection
	if c.Host == "" {
		return flood(dst, q, width, now)
	}
	out := []row{headline(" → ", paint.Reach(c))}
	add := adder(dst, &out, width)
	where := c.Host + ", " + strings.ToUpper(c.Protocol)
	if c.Port != 0 {
		where += " port " + strconv.Itoa(c.Port)
	}
	if c.Host == ThisMachine && c.Port != 0 {
		where = fmt.Sprintf("this machine's 127.0.0.1:%d, as %s", c.Port, where)
	}
	add("to", where, themes.Surface)
	add("program", cmp.Or(c.Program, "it isn't known which"), themes.Surface)
	add("for", asker(q, action), themes.Surface)
	add("limit", c.Limit, themes.Warn)
	add("asked by", cmp.Or(q.Rule, "no rule decides it"), themes.Surface)
	return out
}

// flood is the body of a question about more destinations than are asked about one
// by one.
func flood(dst uv.Screen, q api.Question, width int, now time.Time) []row {
	c := q.Connection
	out := wrapped(dst, "More destinations are tried than are asked about one by one. They can be denied together; what is to be reached needs a rule.", width, themes.Surface)
	out = append(out, tries(dst, c, width, now)...)
	for i, d := range c.Many {
		name := ""
		if i == 0 {
			name = "to"
		}
		out = append(out, pair(dst, name, d, width, themes.Surface)...)
	}
	out = append(out, pair(dst, "asked by", cmp.Or(q.Rule, "no rule decides it"), width, themes.Surface)...)
	return out
}

// tries says how a connection's tries stand now.
func tries(dst uv.Screen, c *api.Connection, width int, now time.Time) []row {
	var out []row
	add := adder(dst, &out, width)
	tried := "tried " + paint.Count(c.Tries, "time", "times")
	if !c.LastTry.IsZero() {
		tried += ", the last " + paint.Clock(now.Sub(c.LastTry)) + " ago"
	}
	waits := paint.Count(c.Waiting, "connection waits", "connections wait") + " for the answer"
	if c.Waiting == 0 {
		waits = "it gave up; the answer serves its next try"
	}
	add("now", waits, themes.Surface)
	if c.Pid != 0 {
		tried += fmt.Sprintf(", by process %d", c.Pid)
	}
	add("tries", tried, themes.SurfaceMuted)
	add("last time", c.LastTime, themes.SurfaceMuted)
	return out
}
