package gate

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// What a marked program starts has its mark, also once its parents are gone and
// whatever it runs then; what its process had started before has none.
func TestMark(t *testing.T) {
	const mark = 7
	s := start(t, setup{
		args: []string{"sh", "-c", `mkfifo ended
exec sh -c '(sh -c "until read -r a b c parent d </proc/self/stat && [ \$parent = 1 ]; do :; done; exec true" >ended &); cat ended; exec ls'`},
		decide: func(e *Exec) {
			if strings.HasPrefix(e.Argv[len(e.Argv)-1], "(") {
				e.OnBegin(func() error { return SetMark(e.PID, mark) })
			}
			e.Allow()
		},
	})
	if code := s.wait(); code != 0 {
		t.Fatalf("it ended with %d", code)
	}
	for _, name := range []string{"ls", "true"} {
		if got := s.find("/" + name).Mark; got != mark {
			t.Errorf("%s has the mark %d, want %d", name, got, mark)
		}
	}
	if first := s.seen()[0]; first.Mark != 0 {
		t.Errorf("%q has the mark %d before it was given one", first.Argv, first.Mark)
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

// A program that its owner doesn't let begin never runs.
func TestNotBegun(t *testing.T) {
	dir := t.TempDir()
	s := start(t, setup{
		args: []string{"sh", "-c", "touch " + dir + "/ran; echo $?"},
		decide: func(e *Exec) {
			if strings.HasSuffix(e.Path, "/touch") {
				e.OnBegin(func() error { return errors.New("it isn't recorded") })
			}
			e.Allow()
		},
	})
	s.wait()
	if got := s.out.String(); got != "137\n" {
		t.Errorf("it ended with %q, want to see it killed", got)
	}
	if _, err := os.Stat(dir + "/ran"); err == nil {
		t.Error("it ran")
	}
	if got := s.failures(); len(got) != 1 || !strings.Contains(got[0], "it isn't recorded") {
		t.Errorf("it failed with %q", got)
	}
}
