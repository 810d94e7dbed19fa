package terminal

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// Who watches is told where an action begins, at that place of the stream; who joins later
// where those began whose lines are still there.
func TestMark(t *testing.T) {
	p := newPipeTerminal(t)
	defer p.close()
	v := p.Join()
	defer v.Close()
	read := func(v *View, until func(f api.Frame) bool) (out string) {
		for {
			frames, err := v.Next(t.Context())
			must.OK(t, err)
			for _, f := range frames {
				out += string(f.Data)
				if until(f) {
					return out
				}
			}
		}
	}
	prints := func(text, last string) {
		if _, err := p.agent.WriteString(text); err != nil {
			t.Fatal(err)
		}
		read(v, func(f api.Frame) bool { return strings.Contains(string(f.Data), last) })
	}
	prints("one\r\ntwo\r\n", "two")
	p.Mark(4)
	read(v, func(f api.Frame) bool { return slices.Equal(f.Marks(), []api.Begun{{Action: 4}}) })
	prints(strings.Repeat("x", 200)+"\r\nmore\r\n", "more")
	p.Mark(5)
	read(v, func(f api.Frame) bool { return slices.Equal(f.Marks(), []api.Begun{{Action: 5}}) })
	prints("last", "last")
	late := p.Join()
	defer late.Close()
	read(late, func(f api.Frame) bool { return slices.Equal(f.Marks(), []api.Begun{{Action: 4, Back: 2}, {Action: 5}}) })
	prints(strings.Repeat("\r\n", 2100)+"end", "end")
	later := p.Join()
	defer later.Close()
	if f, err := later.Next(t.Context()); err != nil || len(f) != 1 || f[0].Kind != api.FrameKeyframe {
		t.Errorf("after all of them have gone it gets %d frames (%v)", len(f), err)
	}
}

// An action begins after what was printed before it, however far that is read by then.
func TestMarkAfterWhatIsUnread(t *testing.T) {
	p := newPipeTerminal(t)
	defer p.close()
	v := p.Join()
	defer v.Close()
	p.do(func() { // which keeps what comes from being shown
		for i := range 60 {
			text := fmt.Sprintf("%03d\r\n", i+1)
			if _, err := p.agent.WriteString(text); err != nil {
				t.Error(err)
			}
			for i < 2 && p.taken.Load() < int64((i+1)*len(text)) { // two reads are in hand then, and no third
				runtime.Gosched()
			}
			p.Mark(i + 1)
		}
	})
	for out, begun := "", 0; begun < 60; {
		frames, err := v.Next(t.Context())
		must.OK(t, err)
		for _, f := range frames {
			for _, m := range f.Marks() {
				if begun++; m.Action != begun || !strings.HasSuffix(out, fmt.Sprintf("%03d\r\n", begun)) {
					t.Fatalf("action %d began after %q", m.Action, out)
				}
			}
			if f.Kind == api.FrameOutput {
				out += string(f.Data)
			}
		}
	}
}

// What isn't a mark, and what never could be one, is left out.
func TestMarksFrame(t *testing.T) {
	f := api.Frame{Kind: api.FrameMarks, Data: []byte("1 2\n\nx y\n0 4\n-3 1\n3 -1\n99999999999999999999 1\n7 0")}
	if got := f.Marks(); !slices.Equal(got, []api.Begun{{Action: 1, Back: 2}, {Action: 7}}) {
		t.Errorf("read are %v", got)
	}
}
