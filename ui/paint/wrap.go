package paint

import (
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
)

// Shorten cuts clean text to width columns, with an ellipsis where it was cut.
func Shorten(dst uv.Screen, s string, width int) string {
	if width <= 0 {
		return ""
	}
	// Each character takes a column at least, once it is clean: what is far
	// beyond the end need not be looked at.
	near := api.Trim(s, 8*width+64)
	clean := shown(dst, Clean(near))
	if len(near) == len(s) && widthOf(method(dst), clean) <= width {
		return clean
	}
	// What the terminal doesn't join, the library joins, and takes it to fit, but for the blanks.
	return method(dst).Truncate(clean+strings.Repeat(" ", width+1), width, ellipsis(dst))
}

// ShortenLeft cuts clean text at its start: for paths, whose end tells more.
func ShortenLeft(dst uv.Screen, s string, width int) string {
	s = shown(dst, Clean(s))
	w := widthOf(dst.WidthMethod(), s)
	if width <= 0 {
		return ""
	}
	switch {
	case w <= width:
		return s
	case width == 1:
		return ellipsis(dst)
	}
	return method(dst).TruncateLeft(s, w-width+1, ellipsis(dst))
}

// ellipsis is in one column.
func ellipsis(dst uv.Screen) string {
	if SignsOf(dst) == Unicode {
		return "…"
	}
	return "~"
}

// Wrap breaks clean text into rows of at most width columns. It breaks at
// blanks where it can, never drops a character, and starts a new row after a
// visible \n, so that a script reads as one.
func Wrap(dst uv.Screen, s string, width int) []string { return wrap(dst, s, width, `\n`) }

// Script is Wrap for a command: its line breaks are marked otherwise.
func Script(dst uv.Screen, s string, width int) []string { return wrap(dst, s, width, api.Break) }

func wrap(dst uv.Screen, s string, width int, after string) []string {
	s, after = shown(dst, Clean(s)), shown(dst, after)
	if width < 1 {
		width = 1
	}
	var rows []string
	for {
		i := strings.Index(s, after)
		if i < 0 {
			break
		}
		rows = append(rows, wrapRow(dst, s[:i+len(after)], width)...)
		s = s[i+len(after):]
	}
	if s != "" || len(rows) == 0 {
		rows = append(rows, wrapRow(dst, s, width)...)
	}
	return rows
}

// Paragraph draws text from the top of an area on, as many rows as it has.
func Paragraph(dst uv.Screen, area uv.Rectangle, s string, st uv.Style) {
	for i, row := range Wrap(dst, s, area.Dx()-2) {
		if i < area.Dy() {
			Text(dst, area.Min.X+1, area.Min.Y+i, area.Max.X, row, st)
		}
	}
}

func wrapRow(dst uv.Screen, s string, width int) []string {
	m := method(dst)
	var rows []string
	for {
		col, at, cut := 0, 0, -1 // cut: after the last blank in this row
		for at < len(s) {
			n, w := 1, 1
			if asciiRun(s[at:]) == 0 {
				var c string
				c, w = firstOf(s[at:], m)
				n = max(len(c), 1)
			}
			if col+w > width && at > 0 {
				break
			}
			col += w
			at += n
			if s[at-1] == ' ' {
				cut = at
			}
		}
		if at >= len(s) {
			return append(rows, s)
		}
		// A blank far to the left would leave a ragged hole; then break hard.
		if cut > 0 && widthOf(m, s[:cut]) >= width/2 {
			at = cut
		}
		rows = append(rows, s[:at])
		s = s[at:]
	}
}

// From is clean text without its first columns. A character that the cut goes
// through is left out whole.
func From(dst uv.Screen, s string, columns int) string {
	s = shown(dst, Clean(s))
	m := method(dst)
	for columns > 0 && len(s) > 0 {
		cluster, w := firstOf(s, m)
		if len(cluster) == 0 {
			break
		}
		s = s[len(cluster):]
		columns -= w
	}
	return s
}
