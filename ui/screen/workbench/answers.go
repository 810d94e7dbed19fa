package workbench

import (
	"fmt"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// nameOf is what a question is called where it is spoken of.
func nameOf(q api.Question) string {
	if q.Apart() {
		return paint.Wants(q)
	}
	return fmt.Sprintf("#%d", q.Action)
}

// andEqual says for how many more an answer was.
func andEqual(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " and its equal"
	}
	return fmt.Sprintf(" and %d equal ones", n)
}
