package dialog

import (
	"slices"
	"strings"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// warnings says what needs care in a question before it is answered.
func warnings(q api.Question) []string {
	var out []string
	texts := []string{q.Title}
	if c := q.Command; c != nil {
		texts = nil
		for _, c := range c.All() {
			texts = append(texts, c.Line, c.Program, c.Cwd)
			texts = append(texts, c.Env...)
		}
	}
	if c := q.Connection; c != nil {
		texts = append([]string{c.Host, c.Program}, c.Many...)
	}
	escapes, foreign := false, false
	for _, t := range texts {
		e, f := paint.Unusual(t)
		escapes, foreign = escapes || e, foreign || f
	}
	if c := q.Command; c != nil { // an escape may be what was typed
		escapes = slices.ContainsFunc(c.All(), func(c *api.Command) bool { return c.Unclear && !c.Clear })
	}
	if escapes {
		out = append(out, "tabs, line breaks or invisible characters are in it; they are shown as marked escapes")
	}
	if foreign {
		out = append(out, "letters outside of ASCII are in it; some look like others, so they are marked")
	}
	if c := q.Connection; c != nil && c.Written {
		out = append(out, "this session wrote the program that connects: "+c.Program)
	}
	if q.Request != nil {
		out = append(out, q.Request.Warn...)
	}
	c := q.Command
	if c == nil {
		return out
	}
	for _, c := range c.All() {
		if c.Truncated {
			out = append(out, "its arguments or variables are too large to be shown whole: you can't see all that would run")
		}
		if c.Written {
			out = append(out, "this session wrote the program that would run: "+c.Program)
		}
		for _, u := range c.Unpinned {
			out = append(out, "what runs may differ from what you see: "+u)
		}
		if len(c.Sources) > 0 {
			out = append(out, "it first reads a file that the agent can write: "+strings.Join(c.Sources, ", "))
		}
	}
	return out
}

// Plain says whether a question is only its command's line: nothing else in it
// needs to be read, so that a row which shows the line whole shows all.
func Plain(q api.Question) bool {
	if q.Connection != nil {
		return q.Connection.Host != "" && len(warnings(q)) == 0
	}
	c := q.Command
	return q.Subject != api.SubjectEdit && c != nil && len(warnings(q)) == 0 &&
		len(c.Env) == 0 && len(c.Pipeline) == 0 && len(c.Parts) < 2 && c.Title() == q.Title
}
