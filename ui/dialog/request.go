package dialog

import (
	"cmp"
	"fmt"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// request is the body of a question about what a program wants of the person's.
func request(dst uv.Screen, q api.Question, action string, width int) []row {
	r := q.Request
	out := []row{{inset: true, spans: []text{{" ? ", themes.Held}}}}
	for _, part := range paint.Marked(paint.Spelled(dst, q.Title)) {
		k := themes.Inset
		if part.Odd {
			k = themes.Odd
		}
		out[0].spans = append(out[0].spans, text{part.Text, k})
	}
	add := adder(dst, &out, width)
	for _, f := range r.Facts {
		add(f.Name, f.Value, themes.Surface)
	}
	program := cmp.Or(r.Program, "it isn't known which")
	if r.Pid != 0 {
		program += fmt.Sprintf(", process %d", r.Pid)
	}
	add("program", program, themes.Surface)
	if q.Action != 0 {
		add("for", fmt.Sprintf("#%d  %s", q.Action, action), themes.Surface)
	} else {
		add("for", "no action: the agent itself, or what it left running", themes.Surface)
	}
	add("asked by", q.Rule, themes.Surface)
	return out
}
