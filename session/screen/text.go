package screen

import (
	"slices"
	"strings"
)

// Text is the screen's rows as plain text without trailing blanks.
func (s *Screen) Text() []string {
	rows := make([]string, s.rows)
	for y := range rows {
		rows[y] = s.page.grid.lines[y].text()
	}
	return rows
}

func (l *row) text() string {
	var b strings.Builder
	for _, c := range l.cells[:l.used] {
		b.WriteString(c.text)
	}
	return strings.TrimRight(b.String(), " ")
}

// Lines is a screen that is read line by line, as plain text without trailing blanks:
// each line when it leaves the screen, or when it stands there at a rest and is another
// than it was; an empty one once something stands below it. What was wrapped at the
// screen's edge is one line. On the alternate screen, which nothing leaves, lines are told
// apart by the rows behind it, and empty rows are no lines.
type Lines struct {
	*Screen
	line  func(string)
	fresh bool // something was printed since the last rest

	// Rows are numbered from the first that was ever printed.
	next  int            // the first that hadn't left the screen
	part  string         // the line that goes on there, as far as it has left
	begun int            // its first row
	read  map[int]string // lines that were read and haven't left, by their first rows
}

// lineMost bounds a line in bytes, but for a row and a word at its end.
const lineMost = 4096

// NewLines makes a screen as a keyframe has it. Passed on is what it shows, and what
// comes after that.
func NewLines(cols, rows int, keyframe []byte, line func(string)) *Lines {
	l := &Lines{Screen: New(cols, rows), line: func(string) {}, fresh: true, read: make(map[int]string)}
	_, _ = l.Screen.Write(keyframe) // it takes everything
	l.look(false)
	l.line = line
	return l
}

// Write reads what the guest printed, and passes on the lines that left the screen.
func (l *Lines) Write(p []byte) (int, error) {
	for some := range slices.Chunk(p, 1<<10) { // no line leaves the scrollback before it is read
		_, _ = l.Screen.Write(some)
		l.look(false)
	}
	l.fresh = true
	return len(p), nil
}

// Rest passes on the lines on the screen that are others than before.
func (l *Lines) Rest() {
	if l.fresh {
		l.look(true)
	}
	l.fresh = false
}

// look reads the rows that have left the screen, or all.
func (l *Lines) look(all bool) {
	top := l.history.total
	from := max(l.next, top-l.history.len())
	l.next = max(l.next, top) // rows come back when there is more room
	l.pin = l.next
	l.part, l.begun = l.join(l.part, l.begun, from, top)
	if all {
		l.screen(max(from, top))
	}
	for n := range l.read {
		if n < top && (l.part == "" || n < l.begun) {
			delete(l.read, n)
		}
	}
}

// screen reads the rows from one on, up to the last one in use.
func (l *Lines) screen(from int) {
	end := l.history.total + l.rows
	for ; end > from; end-- { // what is empty below is no line yet
		if text, _ := l.row(end - 1); text != "" {
			break
		}
		delete(l.read, end-1)
	}
	if last, begun := l.join(l.part, l.begun, from, end); last != "" {
		l.pass(begun, last)
	}
}

// Resize changes the screen's size. Lines that are wrapped anew are the same lines.
func (l *Lines) Resize(cols, rows int) {
	l.Screen.Resize(cols, rows)
	// What hadn't left the screen is from the same row on, perhaps not at its beginning
	// any more. All other rows have other numbers.
	line, was := l.line, make(map[string]bool)
	for _, text := range l.read {
		was[text] = true
	}
	l.line, l.read = func(string) {}, make(map[int]string)
	first, end := l.history.total-l.history.len(), l.history.total+l.rows
	next := clamp(l.next, first, end)
	begun := next
	for begun > first {
		if _, soft := l.row(begun - 1); !soft {
			break
		}
		begun--
	}
	l.part, l.begun = l.join("", begun, begun, next)
	l.screen(next)
	for n, text := range l.read {
		if !was[text] {
			delete(l.read, n)
		}
	}
	l.line = line
}

// join reads rows as lines, and returns the one that goes on after them.
func (l *Lines) join(text string, begun, from, to int) (string, int) {
	for n := from; n < to; n++ {
		row, soft := l.row(n)
		if text == "" {
			begun = n
		}
		if text += row; len(text) > lineMost && begun < n {
			end := strings.LastIndexByte(text, ' ') + 1
			if end == 0 || end < len(text)-lineMost {
				end = len(text)
			}
			l.pass(begun, text[:end])
			text, begun = text[end:], n
		}
		if !soft {
			l.pass(begun, text)
			text = ""
		}
	}
	return text, begun
}

// pass passes a line on unless that was done.
func (l *Lines) pass(begun int, text string) {
	text = strings.TrimRight(text, " ")
	was, ok := l.read[begun]
	if ok && was == text {
		return
	}
	l.read[begun] = text
	if text != "" || begun < l.next || !ok && !l.AltScreen() { // else it was wiped, or is a gap
		l.line(text)
	}
}

// row is one row, and whether its line goes on in the next: then it is whole.
func (l *Lines) row(n int) (text string, soft bool) {
	kept := &line{}
	if y := n - l.history.total; y >= 0 {
		l.page.grid.save(y, kept)
	} else {
		kept = l.history.line(y + l.history.len())
	}
	return kept.whole(l.cols), kept.soft
}

// whole is the row's text: one that goes on has the blanks at its end, another hasn't.
func (l *line) whole(cols int) string {
	if l.soft {
		return string(l.text) + strings.Repeat(" ", l.lacks(cols))
	}
	return strings.TrimRight(string(l.text), " ")
}
