package gate

import (
	"slices"
	"strings"
	"testing"
)

// More execs than there are descriptors for wait, and that is told; none is refused.
func TestMoreThanThereIsRoomFor(t *testing.T) {
	shown, full := make(chan *Exec, 10), make(chan int, 10)
	b := start(t, setup{
		args:    []string{"sh", "-c", "for i in 1 2 3 4 5 6; do /bin/echo $i & done; wait"},
		options: Options{places: 3, Full: func(most int) { full <- most }},
		decide: func(e *Exec) {
			if e.Argv[0] == "sh" {
				e.Allow()
				return
			}
			shown <- e
		},
	})
	held := []*Exec{<-shown, <-shown, <-shown}
	if most := <-full; most != 3 || len(shown) > 0 {
		t.Errorf("%d may be held, and %d more are", most, len(shown))
	}
	for n := len(held); ; n++ {
		held[0].Allow()
		if held = held[1:]; n == 6 && len(held) == 0 {
			break
		}
		if n < 6 {
			held = append(held, <-shown)
		} else {
			n--
		}
	}
	b.wait()
	out := strings.Fields(b.out.String())
	if slices.Sort(out); strings.Join(out, "") != "123456" {
		t.Errorf("it said %q", out)
	}
	if len(full) > 0 {
		t.Error("it was told more than once")
	}
}
