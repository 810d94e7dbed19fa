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
	out := []row{headline(" ? ", paint.Spelled(dst, q.Title))}
	add := adder(dst, &out, width)
	for _, f := range r.Facts {
		add(f.Name, f.Value, themes.Surface)
	}
	program := cmp.Or(r.Program, "it isn't known which")
	if r.Pid != 0 {
		program += fmt.Sprintf(", process %d", r.Pid)
	}
	add("program", program, themes.Surface)
	add("for", asker(q, action), themes.Surface)
	add("asked by", q.Rule, themes.Surface)
	return out
}
