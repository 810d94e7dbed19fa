package screen

import (
	"encoding/base64"
	"image/color"
	"strconv"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// Bounds of what a guest can have passed on.
const (
	maxURL    = 1 << 10
	maxLinkID = 64
	maxNotice = 256 // characters of a title, a notification's title or its text
	maxNotes  = 4   // notifications per Write; more are dropped
)

// callbacks are the owner's; each may be nil.
type callbacks struct {
	reply     func([]byte)
	clipboard func(selection string, data []byte)
	notify    func(title, text string)

	copied *clip // the last one of the running Write; earlier ones were overwritten anyway
	notes  [][2]string
}

type clip struct {
	selection string
	data      []byte
}

// OnReply sets who gets the bytes that answer the guest's questions, in order,
// at most 4 KiB at once. The slice is valid during the call only. A Screen
// without it answers nothing: a viewer's copy must not.
func (s *Screen) OnReply(f func([]byte)) { s.calls.reply = f }

// OnClipboard sets who hears of the guest's wish to set the clipboard (OSC 52):
// selection as the guest named it (of the letters c, p, q, s and digits), data
// at most 768 KiB and of any content. At most one per Write, the last. Reading
// the clipboard is never answered.
func (s *Screen) OnClipboard(f func(selection string, data []byte)) { s.calls.clipboard = f }

// OnNotify sets who hears of notifications (OSC 9, 777, 99), sanitised to one
// line of at most 256 characters each; at most four per Write.
func (s *Screen) OnNotify(f func(title, text string)) { s.calls.notify = f }

// deliver makes the calls that a Write led to, once it is done.
func (s *Screen) deliver() {
	s.flushReplies()
	if c := s.calls.copied; c != nil {
		s.calls.copied = nil
		s.calls.clipboard(c.selection, c.data)
	}
	for _, n := range s.calls.notes {
		s.calls.notify(n[0], n[1])
	}
	s.calls.notes = s.calls.notes[:0]
}

// str runs a control string. bell says that BEL ended it.
func (s *Screen) str(kind byte, data []byte, bell bool) {
	switch kind {
	case ']':
		cmd, rest, _ := strings.Cut(string(data), ";")
		s.osc(cmd, rest, bell)
	case 'P':
		if what, ok := strings.CutPrefix(string(data), "$q"); ok {
			s.requestStatus(what)
		} else if strings.HasPrefix(string(data), "+q") {
			s.reply("\x1bP0+r\x1b\\") // XTGETTCAP: ask terminfo
		}
	case '_':
		if state, ok := strings.CutPrefix(string(data), privateState); ok {
			s.restore(state)
		}
	}
}

func (s *Screen) osc(cmd, rest string, bell bool) {
	switch cmd {
	case "0", "2":
		s.title.set(sanitize(rest))
	case "4":
		// Colours are the person's theme: what is set is ignored, questions
		// are answered with the usual palette.
		if n, q, ok := strings.Cut(rest, ";"); ok && q == "?" {
			if i, err := strconv.Atoi(n); err == nil && i >= 0 && i < 256 {
				s.replyColor("4;"+strconv.Itoa(i), ansi.IndexedColor(i), bell)
			}
		}
	case "8":
		s.link(rest)
	case "9":
		if !strings.HasPrefix(rest, "4;") { // that is ConEmu's progress bar
			s.note("", rest)
		}
	case "10", "11", "12":
		i := int(cmd[1] - '0')
		if rest == "?" {
			s.replyColor(cmd, s.defaultColor(i), bell)
		} else if c := ansi.XParseColor(clip256(rest)); c != nil {
			s.colors[i] = simple(c)
		}
	case "110", "111", "112":
		s.colors[cmd[2]-'0'] = nil
	case "52":
		s.clipboard(rest)
	case "99":
		if meta, text, ok := strings.Cut(rest, ";"); ok && !strings.Contains(meta, "e=1") {
			s.note("", text)
		}
	case "777":
		if what, text, ok := strings.Cut(rest, ";"); ok && what == "notify" {
			title, text, _ := strings.Cut(text, ";")
			s.note(title, text)
		}
	}
}

func clip256(v string) string { return v[:min(len(v), 256)] }

// defaultColor is the foreground, background or cursor colour in force.
func (s *Screen) defaultColor(i int) color.Color {
	if c := s.colors[i]; c != nil {
		return c
	}
	if c := s.drawn.defaults[i]; c != nil {
		return c
	}
	if i == 1 {
		return color.Black
	}
	return color.White
}

// link sets or ends the pen's hyperlink. Only addresses that a browser or a
// mail program opens are kept: others name files or start programs on the
// person's machine.
func (s *Screen) link(rest string) {
	params, url, ok := strings.Cut(rest, ";")
	if !ok {
		return
	}
	s.cursor.pen.link = uv.Link{}
	s.inks = inks{}
	if !openable(url) {
		return
	}
	id := ""
	for kv := range strings.SplitSeq(params, ":") {
		if v, ok := strings.CutPrefix(kv, "id="); ok && len(v) <= maxLinkID && printable(v) {
			id = "id=" + v
		}
	}
	s.cursor.pen.link = uv.Link{URL: url, Params: id}
}

func openable(url string) bool {
	if len(url) > maxURL || !printable(url) {
		return false
	}
	scheme, _, ok := strings.Cut(url, ":")
	if !ok {
		return false
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "mailto":
		return true
	}
	return false
}

// printable says that v is ASCII without blanks and controls: safe within a
// sequence that is written to the person's terminal.
func printable(v string) bool {
	for i := range len(v) {
		if v[i] <= 0x20 || v[i] >= 0x7f {
			return false
		}
	}
	return true
}

// clipboard is OSC 52: writes are handed on, reads are not answered.
func (s *Screen) clipboard(rest string) {
	selection, data, ok := strings.Cut(rest, ";")
	if !ok || data == "?" || s.calls.clipboard == nil || len(selection) > 16 {
		return
	}
	if strings.Trim(selection, "cpqs01234567") != "" {
		return
	}
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return
	}
	s.calls.copied = &clip{selection, b}
}

func (s *Screen) note(title, text string) {
	if s.calls.notify != nil && len(s.calls.notes) < maxNotes {
		s.calls.notes = append(s.calls.notes, [2]string{sanitize(title), sanitize(text)})
	}
}
