package dialog

import (
	"cmp"
	"fmt"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// request is the body of a question about what a program wants of the person's.
func (b *body) request(q api.Question, action string) {
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
