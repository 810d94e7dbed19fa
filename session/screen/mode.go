package screen

import uv "github.com/charmbracelet/ultraviolet"

// modes are the switches that the guest can set.
type modes struct {
	insert, newline    bool // 4, 20
	cursorKeys, keypad bool // ?1, ?66 and ESC = >
	reverse            bool // ?5: the whole screen
	origin, autowrap   bool // ?6, ?7
	blink, hidden      bool // ?12, ?25 (inverted)
	shape              uint8
	margins            bool // ?69: left and right margins may be set
	mouse              uv.MouseMode
	sgrMouse           bool  // ?1006
	focus, altScroll   bool  // ?1004, ?1007
	paste              bool  // ?2004
	sync               bool  // ?2026
	otherKeys          uint8 // xterm's modifyOtherKeys, 0 to 2
}

func defaultModes() modes { return modes{autowrap: true, blink: true, altScroll: true} }

// softReset is DECSTR's part.
func (m *modes) softReset() {
	m.insert, m.origin, m.cursorKeys, m.keypad, m.hidden = false, false, false, false, false
	m.autowrap, m.margins = true, false
}

func (m *modes) setANSI(n int, on bool) {
	switch n {
	case 4:
		m.insert = on
	case 20:
		m.newline = on
	}
}

// flag is the switch behind a private mode that has no other effect.
func (m *modes) flag(n int) *bool {
	switch n {
	case 1:
		return &m.cursorKeys
	case 5:
		return &m.reverse
	case 7:
		return &m.autowrap
	case 12:
		return &m.blink
	case 66:
		return &m.keypad
	case 1004:
		return &m.focus
	case 1006:
		return &m.sgrMouse
	case 1007:
		return &m.altScroll
	case 2004:
		return &m.paste
	}
	return nil
}

// mouseModes are the private modes of mouse tracking, of which one is in force.
var mouseModes = map[int]uv.MouseMode{
	9: uv.MouseModePress, 1000: uv.MouseModeClick, 1002: uv.MouseModeDrag, 1003: uv.MouseModeMotion,
}

// setMode is DECSET and DECRST.
func (s *Screen) setMode(n int, on bool) {
	m := &s.modes
	if f := m.flag(n); f != nil {
		*f = on
		return
	}
	if mouse, ok := mouseModes[n]; ok {
		if on {
			m.mouse = mouse
		} else {
			m.mouse = uv.MouseModeNone
		}
		return
	}
	switch n {
	case 6:
		m.origin = on
		s.moveTo(0, 0)
	case 25:
		m.hidden = !on
	case 69:
		m.margins = on
		if !on {
			s.margins.left, s.margins.right = 0, s.cols
		}
	case 47, 1047:
		s.showAlt(on)
	case 1048:
		if on {
			s.saveCursor()
		} else {
			s.restoreCursor()
		}
	case 1049:
		if on && s.page == s.main {
			s.saveCursor()
		}
		s.showAlt(on)
		if !on {
			s.restoreCursor() // also when the main screen was shown already
		}
	case 2026:
		s.synchronize(on)
	}
}

// showAlt switches pages. The alternate one is empty whenever it appears.
func (s *Screen) showAlt(on bool) {
	if on == (s.page != s.main) {
		return
	}
	if !on {
		s.page = s.main
		return
	}
	if s.alt == nil {
		s.alt = &page{grid: newGrid(s.cols, s.rows, &s.work)}
	}
	s.alt.grid.clear()
	s.alt.saved, s.alt.keys = saved{}, keys{}
	s.page = s.alt
}

func settingOf(on bool) int {
	if on {
		return 1
	}
	return 2
}

// modeSetting is what DECRQM answers about a private mode: 0 unknown, 1 set,
// 2 reset, 3 always set.
func (s *Screen) modeSetting(n int) int {
	m := &s.modes
	if f := m.flag(n); f != nil {
		return settingOf(*f)
	}
	if mouse, ok := mouseModes[n]; ok {
		return settingOf(m.mouse == mouse)
	}
	switch n {
	case 6:
		return settingOf(m.origin)
	case 25:
		return settingOf(!m.hidden)
	case 69:
		return settingOf(m.margins)
	case 47, 1047, 1049:
		return settingOf(s.page != s.main)
	case 2026:
		return settingOf(m.sync)
	case 2027:
		return 3 // characters are always grapheme clusters here
	}
	return 0
}
