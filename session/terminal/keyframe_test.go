package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
	"stepbox/session/replay"
	"stepbox/session/screen"
	"stepbox/store"
)

// Each file of the record begins with the screen that all files before it made, also
// when a resize is the first that it holds; a past session opens as the live one was.
func TestFilesBeginWithTheScreen(t *testing.T) {
	p := newPipeTerminal(t)
	var wrote strings.Builder
	for n := 0; n < 5<<20; {
		line := fmt.Sprintf("\x1b[%dm%d %s\x1b[%d;%dH", 30+n%8, n, strings.Repeat("漢e\u0301x ", n%60), 1+n%24, 1+n%70)
		if n%5 == 0 {
			line += "\x1b[2J" // or all of it would be one line
		}
		p.say(line)
		wrote.WriteString(line)
		if n += len(line); n%97 == 0 {
			p.do(func() { p.setSize(60+n%40, 20+n%10) })
		}
	}
	p.agent.Close()
	arrives(t, "the end of the output", p.eof)
	last := p.Last()
	p.close()

	sc := screen.New(80, 24)
	r, err := p.Store.Recording(t.Context(), p.Session)
	must.OK(t, err)
	// From each keyframe on the rest is the same as from the first.
	keys, printed := 0, 0
	for f, err := range r.From(0) {
		must.OK(t, err)
		switch f.Kind {
		case store.FrameKey:
			keys++
			if f.Cols != 80 || f.Rows != 24 {
				t.Errorf("the first keyframe is of %d×%d", f.Cols, f.Rows)
			}
		case store.FrameOutput:
			printed += len(f.Data)
			_, _ = sc.Write(f.Data)
		case store.FrameResize:
			sc.Resize(f.Cols, f.Rows)
		}
	}
	if keys != 1 || printed != wrote.Len() {
		t.Fatalf("%d keyframes and %d bytes of %d from the start on", keys, printed, wrote.Len())
	}
	if !bytes.Equal(sc.Keyframe(), last.Data) {
		t.Error("played from the start it isn't the last screen")
	}
	late := false
	for f, err := range r.From(r.Length()) {
		must.OK(t, err)
		if f.Kind == store.FrameKey && f.At > 0 {
			late = true
		}
	}
	if !late {
		t.Error("its end is read from its start on")
	}
	for f, err := range replay.Terminal(t.Context(), p.Store, p.Session, replay.End) {
		must.OK(t, err)
		if len(f.Data) > 8 {
			got, want := screen.New(f.Cols, f.Rows), screen.New(last.Cols, last.Rows)
			_, _ = got.Write(f.Data)
			_, _ = want.Write(last.Data)
			if !bytes.Equal(got.KeyframeWithin(0, 0), want.KeyframeWithin(0, 0)) {
				t.Errorf("it opens as\n%.500q\nand was\n%.500q", got.KeyframeWithin(0, 0), want.KeyframeWithin(0, 0))
			}
			break
		}
	}
}
