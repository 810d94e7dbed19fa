package gate

import (
	"strconv"
	"strings"
	"testing"
)

// What a marked program starts has its mark, also once its parents are gone and
// whatever it runs then; what its process had started before has none.
func TestMark(t *testing.T) {
	const mark = 7
	s := start(t, setup{
		args:    []string{"sh", "-c", "exec sh -c '(sh -c \"read x; exec true\" &) ; exec ls' </dev/null"},
		options: Options{Group: func(m uint64) string { return strconv.FormatUint(m, 10) }},
		decide: func(e *Exec) {
			if len(e.Argv) == 3 && strings.HasSuffix(e.Argv[2], "exec ls") {
				e.OnBegin(func(b Beginning) {
					if err := SetMark(b.PID, mark); err != nil {
						t.Error(err)
					}
				})
			}
			e.Allow()
		},
	})
	if code := s.wait(); code != 0 {
		t.Fatalf("it ended with %d", code)
	}
	s.eventually("the orphan's program", func() bool { return s.find("/true") != nil })
	want := map[string]string{"ls": "7", "true": "7"}
	for name, mark := range want {
		if got := s.find("/" + name).Group; got != mark {
			t.Errorf("%s has the mark %q, want %q", name, got, mark)
		}
	}
	for _, e := range s.seen()[:2] {
		if e.Group != "0" {
			t.Errorf("%q has the mark %q before it was given one", e.Argv, e.Group)
		}
	}
}

// A mark is never given back: a bound can only be lowered.
func TestMarkOnlyRises(t *testing.T) {
	s := start(t, setup{args: []string{"true"}, decide: func(e *Exec) {
		if MarkOf(e.PID) != 0 {
			t.Error("it has a mark from the start")
		}
		for _, mark := range []uint64{3, 4} {
			if err := SetMark(e.PID, mark); err != nil {
				t.Error(err)
			}
			if got := MarkOf(e.PID); got != mark {
				t.Errorf("its mark is %d, want %d", got, mark)
			}
		}
		e.Allow()
	}})
	s.wait()
	if got := MarkOf(s.find("/true").PID); got != 0 {
		t.Errorf("a process that is gone has the mark %d", got)
	}
}
