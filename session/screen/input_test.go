package screen

import (
	"strings"
	"testing"
	"unicode"

	uv "github.com/charmbracelet/ultraviolet"
	"pgregory.net/rapid"
)

func TestEncodeKey(t *testing.T) {
	for _, c := range []struct {
		modes string
		key   uv.KeyPressEvent
		want  string
	}{
		{"", uv.KeyPressEvent{Code: 'a', Text: "a"}, "a"},
		{"", uv.KeyPressEvent{Code: 'a', Text: "A", Mod: uv.ModShift}, "A"},
		{"", uv.KeyPressEvent{Code: 'a', Mod: uv.ModShift}, "A"},
		{"", uv.KeyPressEvent{Code: 'é', Text: "é"}, "é"},
		{"", uv.KeyPressEvent{Code: uv.KeyExtended, Text: "👍🏽"}, "👍🏽"},
		{"", uv.KeyPressEvent{Code: 'a', Mod: uv.ModAlt}, "\x1ba"},
		{"", uv.KeyPressEvent{Code: 'c', Mod: uv.ModCtrl}, "\x03"},
		{"", uv.KeyPressEvent{Code: 'c', Mod: uv.ModCtrl | uv.ModAlt}, "\x1b\x03"},
		{"", uv.KeyPressEvent{Code: uv.KeySpace, Text: " "}, " "},
		{"", uv.KeyPressEvent{Code: uv.KeySpace, Mod: uv.ModCtrl}, "\x00"},
		{"", uv.KeyPressEvent{Code: ']', Mod: uv.ModCtrl}, "\x1d"},
		{"", uv.KeyPressEvent{Code: '/', Mod: uv.ModCtrl}, "\x1f"},
		{"", uv.KeyPressEvent{Code: uv.KeyEnter}, "\r"},
		{"", uv.KeyPressEvent{Code: uv.KeyEnter, Mod: uv.ModAlt}, "\x1b\r"},
		{"", uv.KeyPressEvent{Code: uv.KeyTab}, "\t"},
		{"", uv.KeyPressEvent{Code: uv.KeyTab, Mod: uv.ModShift}, "\x1b[Z"},
		{"", uv.KeyPressEvent{Code: uv.KeyBackspace}, "\x7f"},
		{"", uv.KeyPressEvent{Code: uv.KeyBackspace, Mod: uv.ModAlt}, "\x1b\x7f"},
		{"", uv.KeyPressEvent{Code: uv.KeyEscape}, "\x1b"},
		{"", uv.KeyPressEvent{Code: uv.KeyUp}, "\x1b[A"},
		{"\x1b[?1h", uv.KeyPressEvent{Code: uv.KeyUp}, "\x1bOA"},
		{"\x1b[?1h", uv.KeyPressEvent{Code: uv.KeyUp, Mod: uv.ModCtrl}, "\x1b[1;5A"},
		{"", uv.KeyPressEvent{Code: uv.KeyHome}, "\x1b[H"},
		{"", uv.KeyPressEvent{Code: uv.KeyEnd, Mod: uv.ModShift | uv.ModAlt}, "\x1b[1;4F"},
		{"", uv.KeyPressEvent{Code: uv.KeyPgUp}, "\x1b[5~"},
		{"", uv.KeyPressEvent{Code: uv.KeyDelete, Mod: uv.ModCtrl}, "\x1b[3;5~"},
		{"", uv.KeyPressEvent{Code: uv.KeyF1}, "\x1bOP"},
		{"", uv.KeyPressEvent{Code: uv.KeyF1, Mod: uv.ModShift}, "\x1b[1;2P"},
		{"", uv.KeyPressEvent{Code: uv.KeyF5}, "\x1b[15~"},
		{"", uv.KeyPressEvent{Code: uv.KeyF12, Mod: uv.ModCtrl | uv.ModShift}, "\x1b[24;6~"},
		{"", uv.KeyPressEvent{Code: uv.KeyKp5, Text: "5"}, "5"},
		{"\x1b=", uv.KeyPressEvent{Code: uv.KeyKp5, Text: "5"}, "\x1bOu"},
		{"\x1b=", uv.KeyPressEvent{Code: uv.KeyKpEnter}, "\x1bOM"},
		{"", uv.KeyPressEvent{Code: uv.KeyKpEnter}, "\r"},
		{"", uv.KeyPressEvent{Code: uv.KeyKpUp}, "\x1b[A"},
		{"\x1b[20h", uv.KeyPressEvent{Code: uv.KeyEnter}, "\r\n"},
		// kitty's protocol: what can't be told apart otherwise, and nothing else.
		{"\x1b[>1u", uv.KeyPressEvent{Code: 'a', Text: "a"}, "a"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: 'a', Text: "A", Mod: uv.ModShift}, "A"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: 'a', Text: "A", Mod: uv.ModCapsLock}, "A"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyEnter}, "\r"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyEnter, Mod: uv.ModShift}, "\x1b[13;2u"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyEnter, Mod: uv.ModShift | uv.ModNumLock}, "\x1b[13;130u"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyEnter, Mod: uv.ModAlt}, "\x1b[13;3u"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyTab}, "\t"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyTab, Mod: uv.ModShift}, "\x1b[9;2u"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyBackspace}, "\x7f"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyBackspace, Mod: uv.ModCtrl}, "\x1b[127;5u"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyEscape}, "\x1b[27u"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: 'c', Mod: uv.ModCtrl}, "\x1b[99;5u"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: 'a', Mod: uv.ModAlt | uv.ModShift, ShiftedCode: 'A'}, "\x1b[97;4u"},
		{"\x1b[>5u", uv.KeyPressEvent{Code: 'a', Mod: uv.ModAlt | uv.ModShift, ShiftedCode: 'A'}, "\x1b[97:65;4u"},
		{"\x1b[>5u", uv.KeyPressEvent{Code: 'с', Mod: uv.ModCtrl, BaseCode: 'c'}, "\x1b[1089::99;5u"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: 's', Mod: uv.ModSuper}, "\x1b[115;9u"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeySpace, Text: " "}, " "},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeySpace, Mod: uv.ModCtrl}, "\x1b[32;5u"},
		{"\x1b[?1h\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyUp}, "\x1b[A"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyUp, Mod: uv.ModCtrl}, "\x1b[1;5A"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyF1}, "\x1b[P"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyF3}, "\x1b[13~"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyF5, Mod: uv.ModShift}, "\x1b[15;2~"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyF13}, "\x1b[57376u"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyDelete}, "\x1b[3~"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyKpEnter}, "\x1b[57414u"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyKp5, Text: "5"}, "5"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyKpLeft}, "\x1b[57417u"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyMediaPlay}, "\x1b[57428u"},
		{"\x1b[>1u", uv.KeyPressEvent{Code: uv.KeyExtended, Text: "👍🏽"}, "👍🏽"},
		{"\x1b[>8u", uv.KeyPressEvent{Code: 'a', Text: "a"}, "\x1b[97u"},
		{"\x1b[>8u", uv.KeyPressEvent{Code: uv.KeyEnter}, "\x1b[13u"},
		{"\x1b[>24u", uv.KeyPressEvent{Code: 'a', Text: "a"}, "\x1b[97;;97u"},
		{"\x1b[>24u", uv.KeyPressEvent{Code: 'a', Text: "A", Mod: uv.ModShift}, "\x1b[97;2;65u"},
		{"\x1b[>24u", uv.KeyPressEvent{Code: uv.KeyExtended, Text: "né"}, "\x1b[0;;110:233u"},
		{"\x1b[>8u", uv.KeyPressEvent{Code: uv.KeyExtended, Text: "né"}, "né"},
		{"\x1b[>4u", uv.KeyPressEvent{Code: 'c', Mod: uv.ModCtrl}, "\x03"},
		{"\x1b[>1u\x1b[<u", uv.KeyPressEvent{Code: uv.KeyEnter, Mod: uv.ModShift}, "\r"},
		{"\x1b[>1u\x1b[?1049h", uv.KeyPressEvent{Code: uv.KeyEnter, Mod: uv.ModShift}, "\r"},
		{"\x1b[>1u\x1b[?1049h\x1b[?1049l", uv.KeyPressEvent{Code: uv.KeyEnter, Mod: uv.ModShift}, "\x1b[13;2u"},
		// xterm's way.
		{"\x1b[>4;1m", uv.KeyPressEvent{Code: uv.KeyEnter, Mod: uv.ModShift}, "\x1b[27;2;13~"},
		{"\x1b[>4;1m", uv.KeyPressEvent{Code: 'c', Mod: uv.ModCtrl}, "\x03"},
		{"\x1b[>4;1m", uv.KeyPressEvent{Code: 'a', Mod: uv.ModAlt}, "\x1ba"},
		{"\x1b[>4;1m", uv.KeyPressEvent{Code: ';', Mod: uv.ModCtrl}, "\x1b[27;5;59~"},
		{"\x1b[>4;1m", uv.KeyPressEvent{Code: 'c', Mod: uv.ModCtrl | uv.ModShift}, "\x1b[27;6;67~"},
		{"\x1b[>4;2m", uv.KeyPressEvent{Code: 'c', Mod: uv.ModCtrl}, "\x1b[27;5;99~"},
		{"\x1b[>4;2m", uv.KeyPressEvent{Code: 'a', Mod: uv.ModAlt}, "\x1b[27;3;97~"},
		{"\x1b[>4;2m", uv.KeyPressEvent{Code: 'a', Text: "A", Mod: uv.ModShift}, "A"},
		{"\x1b[>4;2m", uv.KeyPressEvent{Code: uv.KeyEnter}, "\r"},
		{"\x1b[>4;2m", uv.KeyPressEvent{Code: uv.KeyTab, Mod: uv.ModShift}, "\x1b[Z"},
		{"\x1b[>4;2m", uv.KeyPressEvent{Code: uv.KeyUp, Mod: uv.ModShift}, "\x1b[1;2A"},
		{"\x1b[>4;2m\x1b[>4m", uv.KeyPressEvent{Code: 'c', Mod: uv.ModCtrl}, "\x03"},
		{"\x1b[>4;2m\x1b[>4n", uv.KeyPressEvent{Code: 'c', Mod: uv.ModCtrl}, "\x03"},
		{"\x1b[>4;2m\x1b[>1u", uv.KeyPressEvent{Code: 'c', Mod: uv.ModCtrl}, "\x1b[99;5u"},
		{"", uv.KeyPressEvent{Code: uv.KeyLeftShift}, ""},
		{"", uv.KeyPressEvent{Code: uv.KeyCapsLock}, ""},
	} {
		s := New(10, 5)
		s.Write([]byte(c.modes))
		if got := string(s.EncodeKey(c.key)); got != c.want {
			t.Errorf("%q %+v: %q, want %q", c.modes, c.key, got, c.want)
		}
	}
}

func TestEncodeMouse(t *testing.T) {
	left := uv.Mouse{Button: uv.MouseLeft}
	none := uv.Mouse{}
	for _, c := range []struct {
		modes string
		ev    uv.MouseEvent
		x, y  int
		want  string
	}{
		{"", uv.MouseClickEvent(left), 1, 1, ""},
		{"\x1b[?9h", uv.MouseClickEvent(left), 1, 2, "\x1b[M \"#"},
		{"\x1b[?9h", uv.MouseReleaseEvent(left), 1, 2, ""},
		{"\x1b[?9h", uv.MouseWheelEvent{Button: uv.MouseWheelUp}, 1, 2, ""},
		{"\x1b[?1000h", uv.MouseClickEvent(left), 1, 2, "\x1b[M \"#"},
		{"\x1b[?1000h", uv.MouseReleaseEvent(left), 1, 2, "\x1b[M#\"#"},
		{"\x1b[?1000h", uv.MouseMotionEvent(left), 1, 2, ""},
		{"\x1b[?1000;1006h", uv.MouseClickEvent(left), 1, 2, "\x1b[<0;2;3M"},
		{"\x1b[?1000;1006h", uv.MouseReleaseEvent(left), 1, 2, "\x1b[<0;2;3m"},
		{"\x1b[?1000;1006h", uv.MouseWheelEvent{Button: uv.MouseWheelDown, Mod: uv.ModCtrl}, 0, 0, "\x1b[<81;1;1M"},
		{"\x1b[?1002;1006h", uv.MouseMotionEvent(left), 1, 2, "\x1b[<32;2;3M"},
		{"\x1b[?1002;1006h", uv.MouseMotionEvent(none), 1, 2, ""},
		{"\x1b[?1003;1006h", uv.MouseMotionEvent(none), 1, 2, "\x1b[<35;2;3M"},
		{"\x1b[?1000;1006h", uv.MouseClickEvent(left), -1, 2, ""},
		{"\x1b[?1000;1006h", uv.MouseClickEvent(left), 300, 2, ""},
		{"\x1b[?1000;1006h", uv.MouseReleaseEvent(left), 400, -2, "\x1b[<0;300;1m"},
		{"\x1b[?1000h", uv.MouseClickEvent(left), 250, 2, ""},
		{"\x1b[?1003h\x1b[?1003l", uv.MouseClickEvent(left), 1, 2, ""},
	} {
		s := New(300, 5)
		s.Write([]byte(c.modes))
		if got := string(s.EncodeMouse(c.ev, c.x, c.y)); got != c.want {
			t.Errorf("%q %T %+v at %d,%d: %q, want %q", c.modes, c.ev, c.ev, c.x, c.y, got, c.want)
		}
	}
}

// Pasted text can't end the paste, nor press anything but Enter and Tab.
func TestPasteStaysAPaste(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(10, 5)
		s.Write([]byte("\x1b[?2004h"))
		parts := rapid.SliceOf(rapid.OneOf(
			rapid.SampledFrom([]string{"\x1b[201~", "\x1b[20", "1~", "\x1b", "\x9b201~", "\u009b201~", "\r\n", "\n", "\x03", "\x7f", "rm -rf", "é", "\xff"}),
			rapid.String(),
		)).Draw(t, "parts")
		got := string(s.EncodePaste(strings.Join(parts, "")))
		inner, ok := strings.CutPrefix(got, "\x1b[200~")
		inner, ok2 := strings.CutSuffix(inner, "\x1b[201~")
		if !ok || !ok2 {
			t.Fatalf("not bracketed: %q", got)
		}
		for _, r := range inner {
			if unicode.IsControl(r) && r != '\t' && r != '\r' {
				t.Fatalf("%q holds a control", inner)
			}
		}
	})
	s := New(10, 5)
	if got := string(s.EncodePaste("a\nb\x1b[201~;\x03c\t\U0001f44d")); got != "a\rb;c\t\U0001f44d" {
		t.Errorf("plain paste %q", got)
	}
	s.Write([]byte("\x1b[?2004h"))
	if got := string(s.EncodePaste("a\x1b[20\x1b[201~1~rm\n")); got != "\x1b[200~a[201~rm\r\x1b[201~" {
		t.Errorf("bracketed paste %q", got)
	}
}
