package screen

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// EncodeMouse gives the bytes that a mouse event at a cell of the screen sends
// to the guest, by the modes it set; nil if it doesn't want the event, or the
// cell lies outside (but for what a button pressed inside began: that is told at
// the nearest cell). x and y count from 0 at the screen's top left.
func (s *Screen) EncodeMouse(ev uv.MouseEvent, x, y int) []byte {
	m := ev.Mouse()
	_, release := ev.(uv.MouseReleaseEvent)
	_, motion := ev.(uv.MouseMotionEvent)
	outside := x < 0 || y < 0 || x >= s.cols || y >= s.rows
	if outside && !release && !(motion && m.Button != uv.MouseNone) {
		return nil
	}
	x, y = clamp(x, 0, s.cols-1), clamp(y, 0, s.rows-1)
	mod := m.Mod
	switch s.modes.mouse {
	case uv.MouseModePress:
		if release || motion || m.Button < uv.MouseLeft || m.Button > uv.MouseRight {
			return nil
		}
		mod = 0
	case uv.MouseModeClick:
		if motion {
			return nil
		}
	case uv.MouseModeDrag:
		if motion && m.Button == uv.MouseNone {
			return nil
		}
	case uv.MouseModeMotion:
	default:
		return nil
	}
	b := ansi.EncodeMouseButton(m.Button, motion,
		mod.Contains(uv.ModShift), mod.Contains(uv.ModAlt), mod.Contains(uv.ModCtrl))
	if b == 0xff {
		return nil
	}
	if s.modes.sgrMouse {
		final := 'M'
		if release {
			final = 'm'
		}
		return fmt.Appendf(nil, "\x1b[<%d;%d;%d%c", b, x+1, y+1, final)
	}
	if release {
		b |= 3 // which button isn't told
	}
	if x > 222 || y > 222 || b > 222 {
		return nil // beyond what a byte holds
	}
	return []byte{0x1b, '[', 'M', b + 32, byte(x + 33), byte(y + 33)}
}

// EncodePaste gives the bytes of pasted text. Line ends become Enter. Controls
// other than tab are taken out, with them every way to end a bracketed paste
// from within it and have the rest taken for keys.
func (s *Screen) EncodePaste(text string) []byte {
	text = strings.NewReplacer("\x1b[200~", "", "\x1b[201~", "", "\r\n", "\r", "\n", "\r").Replace(text)
	b := make([]byte, 0, len(text)+12)
	if s.modes.paste {
		b = append(b, "\x1b[200~"...)
	}
	for i, r := range text {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(text[i:]); n == 1 {
				continue // a stray byte: some read it as an 8-bit control
			}
		}
		if unicode.IsControl(r) && r != '\t' && r != '\r' {
			continue
		}
		b = utf8.AppendRune(b, r)
	}
	if s.modes.paste {
		b = append(b, "\x1b[201~"...)
	}
	return b
}
