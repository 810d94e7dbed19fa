package ui

import (
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/ui/link"
)

// fakeEmulator is a terminal that knows lines and colours, and nothing that moves
// the cursor.
type fakeEmulator struct {
	cols, rows int
	text       string
	Mouse      uv.MouseMode
	Alt        bool
}

// newFakeEmulator makes one.
func newFakeEmulator(cols, rows int) link.Emulator { return &fakeEmulator{cols: cols, rows: rows} }

func (e *fakeEmulator) Write(p []byte) (int, error) {
	e.text += strings.ReplaceAll(string(p), "\r\n", "\n")
	if len(e.text) > 1<<20 {
		e.text = e.text[len(e.text)-1<<19:]
	}
	return len(p), nil
}

func (e *fakeEmulator) FocusEvents() bool                                            { return false }
func (e *fakeEmulator) OnSignal(func(), func(title, text string), func(text string)) {}
func (e *fakeEmulator) Resize(cols, rows int)                                        { e.cols, e.rows = cols, rows }
func (e *fakeEmulator) Size() (cols, rows int)                                       { return e.cols, e.rows }
func (e *fakeEmulator) Title() string                                                { return "" }
func (e *fakeEmulator) ScrollbackLen() int                                           { return max(0, len(e.Text())-e.rows) }
func (e *fakeEmulator) AltScreen() bool                                              { return e.Alt }
func (e *fakeEmulator) AlternateScroll() bool                                        { return e.Alt }
func (e *fakeEmulator) EncodePaste(s string) []byte                                  { return []byte(s) }
func (e *fakeEmulator) Text() []string                                               { return strings.Split(e.text, "\n") }
func (e *fakeEmulator) Keyframe() []byte                                             { return []byte(e.text) }
func (e *fakeEmulator) Wrapped(int) bool                                             { return false }
func (e *fakeEmulator) Line() int                                                    { return len(e.Text()) - 1 }
func (e *fakeEmulator) RowOf(line int) int                                           { return line }
func (e *fakeEmulator) At(time.Duration)                                             {}
func (e *fakeEmulator) Seen() (uint64, bool)                                         { return uint64(len(e.text)), true }

func (e *fakeEmulator) EncodeKey(k uv.KeyPressEvent) []byte {
	switch k.Code {
	case uv.KeyEnter:
		return []byte("\r")
	case uv.KeyEscape:
		return []byte("\x1b")
	}
	if k.Text != "" {
		return []byte(k.Text)
	}
	if k.Mod == uv.ModCtrl && k.Code >= '@' && k.Code <= '~' {
		return []byte{byte(k.Code) & 0x1f}
	}
	return nil
}

func (e *fakeEmulator) EncodeMouse(m uv.MouseEvent, _, _ int) []byte {
	if e.Mouse == uv.MouseModeNone {
		return nil
	}
	return []byte("<" + m.String() + ">")
}

func (e *fakeEmulator) view(back int) []string {
	l := e.Text()
	end := max(0, len(l)-back)
	return l[max(0, end-e.rows):end]
}

func (e *fakeEmulator) Draw(dst uv.Screen, area uv.Rectangle, back int) {
	uv.NewStyledString(strings.Join(e.view(back), "\n")).Draw(dst, area)
}

func (e *fakeEmulator) Cursor() uv.Cursor {
	v := e.view(0)
	s := uv.NewStyledString(v[len(v)-1])
	return uv.Cursor{Position: uv.Pos(min(s.UnicodeWidth(), e.cols-1), len(v)-1), Blink: true}
}
