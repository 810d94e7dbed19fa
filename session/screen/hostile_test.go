package screen

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

// FuzzWrite feeds any bytes, with resizes between them: the first byte of the
// input chooses where.
func FuzzWrite(f *testing.F) {
	for _, p := range pieces {
		f.Add([]byte(p), uint8(10), uint8(10), uint8(3))
	}
	f.Add([]byte("\x1b[1;24r\x1b[3S"), uint8(40), uint8(10), uint8(0))
	f.Add([]byte("a\x1b[88888888b"), uint8(40), uint8(24), uint8(0))
	f.Add([]byte("漢字漢字\x1b[?69h\x1b[2;5s\x1b[3;4H\x1b[@\x1b[P\x1b[L\x1b[M"), uint8(9), uint8(5), uint8(7))
	f.Add([]byte(strings.Join(pieces, "")), uint8(13), uint8(6), uint8(40))
	f.Fuzz(func(t *testing.T, p []byte, cols, rows, every uint8) {
		if len(p) > 1<<10 {
			return
		}
		cols, rows = cols%50, rows%30 // larger ones only take longer
		s := New(int(cols), int(rows))
		s.OnReply(func([]byte) {})
		for i, rest := 0, p; len(rest) > 0; i++ {
			n := len(rest)
			if every > 0 {
				n = min(n, int(every))
			}
			before := s.work
			s.Write(rest[:n])
			if limit := uint64(n+8) * uint64(2*(s.cols+1)*(s.rows+1)); s.work-before > limit {
				t.Fatalf("%q: %d cells of work for %d bytes on %d×%d", rest[:n], s.work-before, n, s.cols, s.rows)
			}
			if every > 0 {
				s.Resize(int(cols)+int(rest[0])%7-3, int(rows)+int(rest[0])/7%7-3)
			}
			rest = rest[n:]
		}
		must.OK(t, sound(s))
		k := New(s.cols, s.rows)
		k.Write(s.Keyframe())
		if a, b := state(s), state(k); a != b {
			t.Fatalf("keyframe %q differs:\n%s", s.Keyframe(), diff(a, b))
		}
	})
}

// What crashed or hung an unguarded emulator, and relatives.
func TestHostileSequencesAreBounded(t *testing.T) {
	for name, p := range map[string]string{
		"margins beyond the screen": "\x1b[1;24r\x1b[3S",
		"repeat without end":        "a\x1b[88888888b",
		"wide repeat":               "漢\x1b[88888888b",
		"numbers that overflow":     "\x1b[99999999999999999999999999A\x1b[99999999999999999999L\x1b[9223372036854775808X",
		"negative numbers":          "\x1b[-5A\x1b[-1;-1H",
		"tabs without end":          "\x1b[99999999I\x1b[3g\x1b[99999999Z",
		"scroll without end":        "\x1b[99999999S\x1b[99999999T",
		"insert without end":        "\x1b[99999999@\x1b[99999999P\x1b[99999999X",
	} {
		t.Run(name, func(t *testing.T) {
			s := New(80, 10)
			before := s.work
			s.Write([]byte(p))
			if n := s.work - before; n > 4*80*10 {
				t.Errorf("%q made %d cells of work", p, n)
			}
			s.Write([]byte("\x1bcfine"))
			if got := s.Text()[0]; got != "fine" {
				t.Errorf("afterwards the screen shows %q", got)
			}
			if err := sound(s); err != nil {
				t.Error(err)
			}
		})
	}
}

// A guest that makes the costliest instructions at full speed gets no more than
// a screen of cells moved for each: a flood of "insert line" was the worst.
func TestLineMovesAreCheap(t *testing.T) {
	s := New(200, 60)
	s.Write([]byte(strings.Repeat("x", 200*60)))
	before := s.work
	p := []byte(strings.Repeat("\x1b[L\x1b[M", 1000))
	s.Write(p)
	if per := (s.work - before) / 2000; per > 200+60 {
		t.Errorf("moving lines costs %d cells each", per)
	}
}

// Sequences that never end keep bounded buffers, and text works after them.
func TestBuffersAreBounded(t *testing.T) {
	big := bytes.Repeat([]byte("A"), 64<<10)
	for name, open := range map[string]string{
		"title": "\x1b]0;", "clipboard": "\x1b]52;c;", "device control": "\x1bP$q", "application": "\x1b_stepbox;",
		"privacy": "\x1b^", "start of string": "\x1bX", "numbers": "\x1b[", "intermediates": "\x1b", "old title": "\x1bk",
	} {
		t.Run(name, func(t *testing.T) {
			s := New(20, 5)
			fill := big
			switch name {
			case "numbers":
				fill = bytes.Repeat([]byte("1;"), 32<<10)
			case "intermediates":
				fill = bytes.Repeat([]byte("#"), 64<<10)
			}
			s.Write([]byte(open))
			for range 64 {
				s.Write(fill)
			}
			if n := cap(s.scan.buf); n > 2*maxString {
				t.Errorf("the buffer has %d bytes", n)
			}
			s.Write([]byte("\x18\x1b[Hok"))
			if got := s.Text()[0]; got != "ok" {
				t.Errorf("afterwards the screen shows %q", got)
			}
		})
	}
	s := New(20, 5)
	s.Write([]byte("a" + strings.Repeat("\u0301", 1<<16)))
	if n := len(s.page.grid.cell(0, 0).text); n > maxCluster {
		t.Errorf("one cell holds %d bytes", n)
	}
	s.Write(bytes.Repeat([]byte("\x1b[22t\x1b]2;x\a"), 1000))
	if n := len(s.title.stack); n > maxTitles {
		t.Errorf("%d titles on the stack", n)
	}
}

// The scrollback is bounded in bytes too, whatever each line holds.
func TestScrollbackIsBounded(t *testing.T) {
	s := New(100, 5)
	var b bytes.Buffer
	for i := range 5000 {
		for x := range 20 {
			fmt.Fprintf(&b, "\x1b[38;2;%d;%d;%dm\x1b]8;;https://example.org/%d/%s\x1b\\x", i%256, x, i/256, i*100+x, strings.Repeat("y", 900))
		}
		b.WriteString("\r\n")
		s.Write(b.Bytes())
		b.Reset()
	}
	if s.history.size > historyBytes {
		t.Errorf("%d bytes of scrollback", s.history.size)
	}
	if s.ScrollbackLen() == 0 {
		t.Error("nothing is kept")
	}
	if n := len(s.Keyframe()); n > maxKeyframe {
		t.Errorf("a keyframe of %d bytes", n)
	}
	s = New(40, 5)
	s.Write([]byte(strings.Repeat("line\r\n", 5000)))
	if n := s.ScrollbackLen(); n != historyRows {
		t.Errorf("%d lines kept", n)
	}
}

// A huge screen full of the costliest cells still fits a frame of the wire.
func TestKeyframeIsBounded(t *testing.T) {
	s := New(maxSize, maxSize)
	cluster := "漢" + strings.Repeat("\u0301", 28)
	var b bytes.Buffer
	for i := range maxSize * maxSize / 2 {
		fmt.Fprintf(&b, "\x1b[38;2;%d;%d;1m%s", i%256, i/256%256, cluster)
		if b.Len() > 1<<16 {
			s.Write(b.Bytes())
			b.Reset()
		}
	}
	k := s.Keyframe()
	if len(k) > maxKeyframe {
		t.Fatalf("a keyframe of %d bytes", len(k))
	}
	c := New(maxSize, maxSize)
	c.Write(k)
	if err := sound(c); err != nil {
		t.Error(err)
	}
	if c.cursor.x != s.cursor.x || c.cursor.y != s.cursor.y {
		t.Error("the cursor is lost")
	}
}

// Whatever fails inside is caught, shown, and leaves a screen that works.
func TestFaultLeavesAWorkingScreen(t *testing.T) {
	s := New(40, 4)
	s.Write([]byte("\x1b[?1049hbefore"))
	n := 0
	s.trip = func() {
		if n++; n == 2 {
			panic("a bug")
		}
	}
	s.Write([]byte("one\x1b[Htwo\r\nthree"))
	if s.faults != 1 {
		t.Fatalf("%d faults", s.faults)
	}
	text := strings.Join(s.Text(), "\n")
	if !strings.Contains(text, "stepbox") || !strings.Contains(text, "three") {
		t.Errorf("the screen shows %q", text)
	}
	s.trip = func() { panic("always") }
	s.Write([]byte("a\x1b[31m\x1b]0;t\a漢\n"))
	s.trip = nil
	s.Write([]byte("\x1b[Hfine"))
	if got := s.Text()[0]; !strings.HasPrefix(got, "fine") {
		t.Errorf("then %q", got)
	}
	s.faults = 0
	if err := sound(s); err != nil {
		t.Error(err)
	}
}

// Frames begun faster than anybody could see don't cost a picture each.
func TestPicturesAreRationed(t *testing.T) {
	s := New(100, 50)
	now := time.Unix(0, 0)
	s.now = func() time.Time { return now }
	s.Write([]byte(strings.Repeat("x", 100*50)))
	before := s.work
	s.Write([]byte(strings.Repeat("\x1b[?2026h\x1b[?2026l", 1000)))
	if n := (s.work - before) / (100 * 50); n > pictureBurst {
		t.Errorf("%d pictures taken at once", n)
	}
}
