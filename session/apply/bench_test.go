package apply

import (
	"fmt"
	"testing"

	"stepbox/session/api"
)

// BenchmarkPlan plans the changes of a session: cost follows their number.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			r := newRig(b, nil)
			for i := range n {
				name := fmt.Sprintf("d%d/f%d", i/50, i)
				r.host(name, "one\n")
				r.agent(name, "two\n")
			}
			r.action(api.ReviewKept)
			for b.Loop() {
				if p := r.plan(api.ApplyRequest{}); p.Written != n {
					b.Fatalf("%d are written", p.Written)
				}
			}
		})
	}
}
