package screen

import (
	"fmt"
	"unicode"

	uv "github.com/charmbracelet/ultraviolet"
)

// EncodeKey gives the bytes that a key sends to the guest, as xterm has it
// (https://invisible-island.net/xterm/ctlseqs/ctlseqs.html), or nil for keys
// that send none. It honours application cursor keys and keypad, kitty's keyboard
// protocol and modifyOtherKeys.
func (s *Screen) EncodeKey(k uv.KeyPressEvent) []byte {
	for _, encode := range []func(uv.KeyPressEvent) []byte{s.kittyKey, s.functionKey, s.otherKey} {
		if b := encode(k); b != nil {
			return b
		}
	}
	mod := k.Mod
	var b []byte
	switch k.Code {
	case uv.KeyEnter, uv.KeyKpEnter:
		b = []byte{'\r'}
		if s.modes.newline {
			b = []byte{'\r', '\n'}
		}
	case uv.KeyTab:
		b = []byte{'\t'}
		if mod.Contains(uv.ModShift) {
			b = []byte("\x1b[Z")
		}
	case uv.KeyBackspace:
		b = []byte{0x7f}
		if mod.Contains(uv.ModCtrl) {
			b = []byte{'\b'}
		}
	case uv.KeyEscape:
		b = []byte{0x1b}
	default:
		if mod.Contains(uv.ModCtrl) {
			if c, ok := controlByte(k.Code); ok {
				b = []byte{c}
				break
			}
		}
		switch {
		case k.Text != "":
			b = []byte(k.Text)
		case k.Code >= uv.KeyExtended || k.Code < 0x20:
			return nil
		case mod.Contains(uv.ModShift) && k.ShiftedCode != 0:
			b = []byte(string(k.ShiftedCode))
		case mod.Contains(uv.ModShift):
			b = []byte(string(unicode.ToUpper(k.Code)))
		default:
			b = []byte(string(k.Code))
		}
	}
	if mod&(uv.ModAlt|uv.ModMeta) != 0 {
		b = append([]byte{0x1b}, b...)
	}
	return b
}

// controlByte is what Ctrl makes of a character.
func controlByte(r rune) (byte, bool) {
	switch {
	case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '[' && r <= '_' || r == '@':
		return byte(r) & 0x1f, true
	}
	switch r {
	case ' ', '2', '`':
		return 0, true
	case '3', '4', '5', '6', '7':
		return byte(r-'3') + 0x1b, true
	case '/', '-':
		return 0x1f, true
	case '8', '?':
		return 0x7f, true
	}
	return 0, false
}

// letterKeys end in a letter: CSI A, SS3 A in application mode, CSI 1;2A with Shift.
var letterKeys = map[rune]byte{
	uv.KeyUp: 'A', uv.KeyDown: 'B', uv.KeyRight: 'C', uv.KeyLeft: 'D', uv.KeyBegin: 'E',
	uv.KeyEnd: 'F', uv.KeyHome: 'H',
	uv.KeyF1: 'P', uv.KeyF2: 'Q', uv.KeyF3: 'R', uv.KeyF4: 'S',
}

// numberKeys are CSI n ~.
var numberKeys = map[rune]int{
	uv.KeyFind: 1, uv.KeyInsert: 2, uv.KeyDelete: 3, uv.KeySelect: 4, uv.KeyPgUp: 5, uv.KeyPgDown: 6,
	uv.KeyF5: 15, uv.KeyF6: 17, uv.KeyF7: 18, uv.KeyF8: 19, uv.KeyF9: 20, uv.KeyF10: 21,
	uv.KeyF11: 23, uv.KeyF12: 24, uv.KeyF13: 25, uv.KeyF14: 26, uv.KeyF15: 28, uv.KeyF16: 29,
	uv.KeyF17: 31, uv.KeyF18: 32, uv.KeyF19: 33, uv.KeyF20: 34,
}

// keypad holds a keypad key's plain character and its final byte in application mode.
var keypad = map[rune]struct{ plain, app byte }{
	uv.KeyKp0: {'0', 'p'}, uv.KeyKp1: {'1', 'q'}, uv.KeyKp2: {'2', 'r'}, uv.KeyKp3: {'3', 's'},
	uv.KeyKp4: {'4', 't'}, uv.KeyKp5: {'5', 'u'}, uv.KeyKp6: {'6', 'v'}, uv.KeyKp7: {'7', 'w'},
	uv.KeyKp8: {'8', 'x'}, uv.KeyKp9: {'9', 'y'}, uv.KeyKpEqual: {'=', 'X'},
	uv.KeyKpMultiply: {'*', 'j'}, uv.KeyKpPlus: {'+', 'k'}, uv.KeyKpComma: {',', 'l'},
	uv.KeyKpMinus: {'-', 'm'}, uv.KeyKpDecimal: {'.', 'n'}, uv.KeyKpDivide: {'/', 'o'},
	uv.KeyKpEnter: {'\r', 'M'}, uv.KeyKpSep: {',', 'l'},
}

// keypadMoves are keypad keys that stand for others.
var keypadMoves = map[rune]rune{
	uv.KeyKpUp: uv.KeyUp, uv.KeyKpDown: uv.KeyDown, uv.KeyKpLeft: uv.KeyLeft, uv.KeyKpRight: uv.KeyRight,
	uv.KeyKpPgUp: uv.KeyPgUp, uv.KeyKpPgDown: uv.KeyPgDown, uv.KeyKpHome: uv.KeyHome, uv.KeyKpEnd: uv.KeyEnd,
	uv.KeyKpInsert: uv.KeyInsert, uv.KeyKpDelete: uv.KeyDelete, uv.KeyKpBegin: uv.KeyBegin,
}

// functionKey encodes cursor, editing, function and keypad keys.
func (s *Screen) functionKey(k uv.KeyPressEvent) []byte {
	code := k.Code
	if c, ok := keypadMoves[code]; ok {
		code = c
	}
	m := 1
	for bit, mod := range [...]uv.KeyMod{uv.ModShift, uv.ModAlt, uv.ModCtrl, uv.ModMeta} {
		if k.Mod.Contains(mod) {
			m += 1 << bit
		}
	}
	if final, ok := letterKeys[code]; ok {
		switch {
		case m > 1:
			return fmt.Appendf(nil, "\x1b[1;%d%c", m, final)
		case final >= 'P' || s.modes.cursorKeys:
			return []byte{0x1b, 'O', final}
		}
		return []byte{0x1b, '[', final}
	}
	if n, ok := numberKeys[code]; ok {
		if m > 1 {
			return fmt.Appendf(nil, "\x1b[%d;%d~", n, m)
		}
		return fmt.Appendf(nil, "\x1b[%d~", n)
	}
	if kp, ok := keypad[code]; ok && m == 1 {
		if s.modes.keypad {
			return []byte{0x1b, 'O', kp.app}
		}
		if code != uv.KeyKpEnter {
			return []byte{kp.plain}
		}
	}
	return nil
}
