package fake

import (
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/ui/link"
)

// Emulator is a terminal that knows lines and colours, and nothing that moves
// the cursor.
type Emulator struct {
	cols, rows int
	text       string
	Mouse      uv.MouseMode
	Alt        bool
}

// NewEmulator makes one.
func NewEmulator(cols, rows int) link.Emulator { return &Emulator{cols: cols, rows: rows} }

func (e *Emulator) Write(p []byte) (int, error) {
	e.text += strings.ReplaceAll(string(p), "\r\n", "\n")
	if len(e.text) > 1<<20 {
		e.text = e.text[len(e.text)-1<<19:]
	}
	return len(p), nil
}

func (e *Emulator) Resize(cols, rows int)       { e.cols, e.rows = cols, rows }
func (e *Emulator) Size() (cols, rows int)      { return e.cols, e.rows }
func (e *Emulator) Title() string               { return "" }
func (e *Emulator) ScrollbackLen() int          { return max(0, len(e.Text())-e.rows) }
func (e *Emulator) AltScreen() bool             { return e.Alt }
func (e *Emulator) AlternateScroll() bool       { return e.Alt }
func (e *Emulator) EncodePaste(s string) []byte { return []byte(s) }
func (e *Emulator) Text() []string              { return strings.Split(e.text, "\n") }
func (e *Emulator) Close()                      {}

func (e *Emulator) EncodeKey(k uv.KeyPressEvent) []byte {
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

func (e *Emulator) EncodeMouse(m uv.MouseEvent, _, _ int) []byte {
	if e.Mouse == uv.MouseModeNone {
		return nil
	}
	return []byte("<" + m.String() + ">")
}

func (e *Emulator) view(back int) []string {
	l := e.Text()
	end := max(0, len(l)-back)
	return l[max(0, end-e.rows):end]
}

func (e *Emulator) Draw(dst uv.Screen, area uv.Rectangle, back int) {
	uv.NewStyledString(strings.Join(e.view(back), "\n")).Draw(dst, area)
}

func (e *Emulator) Cursor() uv.Cursor {
	v := e.view(0)
	s := uv.NewStyledString(v[len(v)-1])
	return uv.Cursor{Position: uv.Pos(min(s.UnicodeWidth(), e.cols-1), len(v)-1), Blink: true}
}
