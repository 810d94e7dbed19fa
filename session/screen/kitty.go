package screen

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// keys is what the guest asked for of kitty's keyboard protocol
// (https://sw.kovidgoyal.net/kitty/keyboard-protocol/), and what held before.
type keys struct {
	flags  int
	pushed []int
}

// keyFlags are those that can be kept: nobody tells here when a key is released.
const keyFlags = ansi.KittyDisambiguateEscapeCodes | ansi.KittyReportAlternateKeys |
	ansi.KittyReportAllKeysAsEscapeCodes | ansi.KittyReportAssociatedKeys

const maxKeys = 16 // pushed; the oldest go

func (k *keys) push(flags int) {
	if len(k.pushed) == maxKeys {
		k.pushed = k.pushed[1:]
	}
	k.pushed = append(k.pushed, k.flags)
	k.flags = flags & keyFlags
}

func (k *keys) pop(n int) {
	for range min(n, maxKeys+1) {
		last := len(k.pushed) - 1
		if last < 0 {
			k.flags = 0
			return
		}
		k.flags, k.pushed = k.pushed[last], k.pushed[:last]
	}
}

// set sets the flags, adds some or takes them away.
func (k *keys) set(flags, how int) {
	switch flags &= keyFlags; how {
	case 1:
		k.flags = flags
	case 2:
		k.flags |= flags
	case 3:
		k.flags &^= flags
	}
}

// kittyRanges are keys that follow each other there as here, kittyKeys others.
var kittyRanges = []struct {
	first, last rune
	code        int
}{
	{uv.KeyCapsLock, uv.KeyMenu, 57358}, {uv.KeyF13, uv.KeyF35, 57376}, {uv.KeyKp0, uv.KeyKp9, 57399},
	{uv.KeyKpPgUp, uv.KeyKpBegin, 57421}, {uv.KeyMediaPlay, uv.KeyMute, 57428},
}

var kittyKeys = map[rune]int{
	uv.KeyKpDecimal: 57409, uv.KeyKpDivide: 57410, uv.KeyKpMultiply: 57411, uv.KeyKpMinus: 57412, uv.KeyKpPlus: 57413,
	uv.KeyKpEnter: 57414, uv.KeyKpEqual: 57415, uv.KeyKpSep: 57416, uv.KeyKpComma: 57416,
	uv.KeyKpLeft: 57417, uv.KeyKpRight: 57418, uv.KeyKpUp: 57419, uv.KeyKpDown: 57420,
}

// kittyCode is a key's number; 0: it has none.
func kittyCode(code rune) int {
	for _, r := range kittyRanges {
		if code >= r.first && code <= r.last {
			return r.code + int(code-r.first)
		}
	}
	if n, ok := kittyKeys[code]; ok {
		return n
	}
	if code >= uv.KeyExtended {
		return 0
	}
	return int(code)
}

// kittyMods is what is held with a key, without locks where it is for its text.
func kittyMods(m uv.KeyMod, locks bool) int {
	v := 0
	for i, mod := range []uv.KeyMod{uv.ModShift, uv.ModAlt, uv.ModCtrl, uv.ModSuper, uv.ModHyper, uv.ModMeta, uv.ModCapsLock, uv.ModNumLock} {
		if m.Contains(mod) && (i < 6 || locks) {
			v |= 1 << i
		}
	}
	return v
}

// kittyKey encodes a key by the flags in force. nil: as always.
func (s *Screen) kittyKey(k uv.KeyPressEvent) []byte {
	flags := s.page.keys.flags
	all := flags&ansi.KittyReportAllKeysAsEscapeCodes != 0
	if !all && flags&ansi.KittyDisambiguateEscapeCodes == 0 {
		return nil
	}
	held := kittyMods(k.Mod, false)
	if !all && (k.Text != "" && held&^1 == 0 || held == 0 && (k.Code == uv.KeyEnter || k.Code == uv.KeyTab || k.Code == uv.KeyBackspace)) {
		return nil
	}
	mods := ""
	if m := kittyMods(k.Mod, k.Text == "" || all); m > 0 {
		mods = ";" + strconv.Itoa(m+1)
	}
	if final, ok := letterKeys[k.Code]; ok && k.Code != uv.KeyF3 { // which would look like a report
		if mods != "" {
			mods = "1" + mods
		}
		return fmt.Appendf(nil, "\x1b[%s%c", mods, final)
	}
	if n, ok := numberKeys[k.Code]; ok && n < 25 {
		return fmt.Appendf(nil, "\x1b[%d%s~", n, mods)
	}
	if k.Code == uv.KeyF3 {
		return fmt.Appendf(nil, "\x1b[13%s~", mods)
	}
	code := kittyCode(k.Code)
	text := kittyText(k, flags)
	if code == 0 && text == "" {
		return nil
	}
	if text != "" && mods == "" {
		mods = ";"
	}
	return fmt.Appendf(nil, "\x1b[%d%s%s%su", code, alternates(k, flags), mods, text)
}

// alternates are the key's other characters, if they are asked for and known.
func alternates(k uv.KeyPressEvent, flags int) string {
	if flags&ansi.KittyReportAlternateKeys == 0 {
		return ""
	}
	v := ""
	if k.Mod.Contains(uv.ModShift) && k.ShiftedCode != 0 && k.ShiftedCode != k.Code {
		v = ":" + strconv.Itoa(int(k.ShiftedCode))
	}
	if k.BaseCode != 0 && k.BaseCode != k.Code {
		if v == "" {
			v = ":"
		}
		v += ":" + strconv.Itoa(int(k.BaseCode))
	}
	return v
}

// kittyText is the text that a key makes, if it is asked for.
func kittyText(k uv.KeyPressEvent, flags int) string {
	const both = ansi.KittyReportAllKeysAsEscapeCodes | ansi.KittyReportAssociatedKeys
	if flags&both != both {
		return ""
	}
	var v []string
	for _, r := range k.Text {
		if !unicode.IsControl(r) {
			v = append(v, strconv.Itoa(int(r)))
		}
	}
	if len(v) == 0 {
		return ""
	}
	return ";" + strings.Join(v, ":")
}

// otherKey encodes what xterm's modifyOtherKeys does: keys with modifiers for which
// there are no bytes of old, or that have some for another key, and at level 2 all.
func (s *Screen) otherKey(k uv.KeyPressEvent) []byte {
	level := s.modes.otherKeys
	shift, ctrl := k.Mod.Contains(uv.ModShift), k.Mod.Contains(uv.ModCtrl)
	alt := k.Mod&(uv.ModAlt|uv.ModMeta) != 0
	if level == 0 || k.Code >= uv.KeyExtended || k.Text != "" || k.Code == uv.KeyTab && !ctrl {
		return nil
	}
	code := k.Code
	switch code {
	case uv.KeyEnter, uv.KeyEscape, uv.KeyTab, uv.KeyBackspace:
		if !shift && !ctrl && (!alt || level == 1) {
			return nil
		}
	default:
		_, old := controlByte(code)
		if !ctrl && !alt || level == 1 && (!ctrl || old && !shift) {
			return nil
		}
		if shift {
			code = cmp.Or(k.ShiftedCode, unicode.ToUpper(code))
		}
	}
	m := 1
	for bit, on := range []bool{shift, alt, ctrl} {
		if on {
			m += 1 << bit
		}
	}
	return fmt.Appendf(nil, "\x1b[27;%d;%d~", m, code)
}
