// Package terminal is the pane that shows the agent's own screen. Cells come
// from an emulator that has already borne whatever the agent wrote; they are
// checked once more here before they reach the person's terminal.
package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"stepbox/themes"
	"stepbox/ui/link"
	"stepbox/ui/paint"
)

// Pane draws a Screen that others feed.
type Pane struct {
	Screen   *link.Screen
	Waiting  string // what is said while there is no screen yet
	ReadOnly bool   // the session is over; the cursor isn't shown

	Copy *Copy // what is read instead of what goes on; nil: nothing

	inner uv.Rectangle
	first int // row of the agent's screen that was the first in view
	title string
}

// Inner is where the agent's screen was drawn last.
func (p *Pane) Inner() uv.Rectangle { return p.inner }

// scrollback is how many lines can be scrolled back.
func scrollback(e link.Emulator) int {
	if e.AltScreen() {
		return 0
	}
	return e.ScrollbackLen()
}

// Read begins to read an emulator that nobody else has, where the pane is; marks are the rows
// at which actions began.
func (p *Pane) Read(still link.Emulator, marks []link.Mark) {
	p.Copy = newCopy(still, p.inner.Dy(), p.first)
	p.Copy.Marks = marks
}

// Draw draws the border and the screen in it, and returns the agent's cursor
// when the pane has the focus.
func (p *Pane) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	box := paint.Box{Title: "Terminal"}
	if p.title != "" {
		box.Facts = paint.Line{f.Span(f.Shorten(p.title, max(0, area.Dx()-30)), themes.Muted)}
	}
	p.inner = area.Inset(1)
	if p.Copy != nil {
		var cursor *tea.Cursor
		cursor, box.Right = p.drawCopy(f)
		box.Draw(area, f)
		p.marks(f)
		return cmp.Or(p.foot(area, f), cursor)
	}
	var cursor *tea.Cursor
	var cols, rows int
	drawn := p.Screen.Seen(func(e link.Emulator) {
		p.title = strings.TrimSpace(paint.Clean(e.Title()))
		cols, rows = e.Size()
		origin := p.blit(f.Screen, e, cols, rows)
		p.first = origin.Y
		if f.Focused && !p.ReadOnly {
			cursor = place(e.Cursor(), p.inner, origin)
		}
	})
	if drawn && (cols != p.inner.Dx() || rows != p.inner.Dy()) && box.Right == nil {
		box.Right = paint.Line{f.Span(fmt.Sprintf("%d×%d", cols, rows), themes.Muted)}
	}
	box.Draw(area, f)
	if !drawn && p.Waiting != "" {
		x := p.inner.Min.X + max(0, (p.inner.Dx()-f.Width(p.Waiting))/2)
		f.Clip(x, p.inner.Min.Y+p.inner.Dy()/2, p.inner.Max.X, p.Waiting, themes.Muted)
	}
	return cursor
}

// blit draws the emulator's cells and returns which of its cells is at the top
// left: a screen that is larger than the pane is shown where its cursor is.
func (p *Pane) blit(dst uv.Screen, e link.Emulator, cols, rows int) uv.Position {
	var origin uv.Position
	if rows > p.inner.Dy() {
		origin.Y = max(0, min(e.Cursor().Y-p.inner.Dy()+1, rows-p.inner.Dy()))
	}
	at := p.inner.Min.Sub(origin)
	e.Draw(&sieve{Screen: dst, area: p.inner}, uv.Rect(at.X, at.Y, cols, rows), 0)
	return origin
}

// Show draws an emulator's screen into an area, up to its cursor when it is larger.
func Show(dst uv.Screen, area uv.Rectangle, e link.Emulator) {
	cols, rows := e.Size()
	(&Pane{inner: area}).blit(dst, e, cols, rows)
}

// sieve is the pane's part of the screen for an emulator to draw on. It lets
// through what can be sent to the person's terminal.
type sieve struct {
	uv.Screen
	area uv.Rectangle
	cell uv.Cell // reused: what is passed to a Screen is on the heap
}

func (s *sieve) Bounds() uv.Rectangle { return s.area }

func (s *sieve) SetCell(x, y int, c *uv.Cell) {
	if c == nil || c.Width == 0 || !uv.Pos(x, y).In(s.area) {
		return
	}
	s.cell = safe(*c)
	if x+s.cell.Width > s.area.Max.X {
		s.cell = uv.Cell{Content: " ", Width: 1, Style: s.cell.Style}
	}
	s.Screen.SetCell(x, y, &s.cell)
}

// safe returns a cell that can be sent to the person's terminal: one character, printable
// and of the width that the emulator gave it, with no link but an ordinary address. However
// wide the terminal would draw it, the display keeps it in its columns.
func safe(c uv.Cell) uv.Cell {
	if !webLink(c.Link) {
		c.Link = uv.Link{}
	}
	if len(c.Content) == 1 && c.Content[0] >= 0x20 && c.Content[0] < 0x7f && c.Width == 1 {
		return c
	}
	c.Width = max(1, min(c.Width, maxWidth))
	if printable(c.Content) {
		return c
	}
	if r, n := utf8.DecodeRuneInString(c.Content); n > 0 && printable(string(r)) {
		c.Content = string(r) // it stands for what isn't one character
		return c
	}
	c.Content, c.Width = " ", 1
	return c
}

// Bounds of a character: no script needs more columns, nor bytes.
const (
	maxWidth = 16
	maxBytes = 64
)

func printable(s string) bool {
	if s == "" || len(s) > maxBytes {
		return false
	}
	for _, r := range s {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xfffd && len(s) == 1 || r == placeholder || bidi(r) {
			return false
		}
	}
	cluster, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	return len(cluster) == len(s)
}

// placeholder stands for a part of an image in kitty's way, for terminals that have the image.
const placeholder = 0x10eeee

// bidi says whether a rune changes the direction in which what follows is read.
func bidi(r rune) bool {
	return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0x061c
}

func webLink(l uv.Link) bool {
	if l.URL == "" || len(l.URL) > 2048 || len(l.Params) > 256 {
		return false
	}
	scheme, _, _ := strings.Cut(l.URL, ":")
	if !slices.Contains([]string{"https", "http", "mailto"}, strings.ToLower(scheme)) {
		return false // others name files or start programs on the person's machine
	}
	for _, s := range []string{l.URL, l.Params} {
		for i := 0; i < len(s); i++ {
			if s[i] <= 0x20 || s[i] >= 0x7f || s[i] == ';' {
				return false
			}
		}
	}
	return true
}

func place(c uv.Cursor, inner uv.Rectangle, origin uv.Position) *tea.Cursor {
	at := uv.Pos(inner.Min.X+c.X-origin.X, inner.Min.Y+c.Y-origin.Y)
	if c.Hidden || !at.In(inner) {
		return nil
	}
	t := tea.NewCursor(at.X, at.Y)
	t.Shape, t.Blink = tea.CursorShape(c.Shape), c.Blink
	return t
}
