package screen

import (
	"image/color"
	"slices"
	"strconv"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// Bounds of what a guest can have passed on.
const (
	maxURL    = 1 << 10
	maxLinkID = 64
	maxTitle  = 256 // characters
)

// OnReply sets who gets the bytes that answer the guest's questions, in order,
// at most 4 KiB at once. The slice is valid during the call only. A Screen
// without it answers nothing: a viewer's copy must not.
func (s *Screen) OnReply(f func([]byte)) { s.answer = f }

// str runs a control string. bell says that BEL ended it.
func (s *Screen) str(kind byte, data []byte, bell bool) {
	if kind == '_' {
		if state, ok := strings.CutPrefix(string(data), privateState); ok {
			s.restore(state)
			return
		}
	}
	s.repeat = ""
	switch kind {
	case ']':
		cmd, rest, _ := strings.Cut(string(data), ";")
		s.osc(cmd, rest, bell)
	case 'P':
		if what, ok := strings.CutPrefix(string(data), "$q"); ok {
			s.requestStatus(what)
		} else if strings.HasPrefix(string(data), "+q") {
			s.reply("\x1bP0+r\x1b\\") // XTGETTCAP: ask terminfo
		} else {
			s.sixels(data)
		}
	case '_':
		if control, ok := strings.CutPrefix(string(data), "G"); ok {
			s.kitty(control)
		}
	}
}

// osc carries an operating system command out. What would act on the person's
// own terminal, as notifications and the clipboard do, is told: see OnSignal.
func (s *Screen) osc(cmd, rest string, bell bool) {
	switch cmd {
	case "0", "2":
		s.title.now = sanitize(rest)
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
		if !progress(rest) {
			s.notify("", rest)
		}
	case "777":
		if args, ok := strings.CutPrefix(rest, "notify;"); ok {
			title, text, _ := strings.Cut(args, ";")
			s.notify(title, text)
		}
	case "52":
		s.clipboard(rest)
	case "1337":
		s.inline(rest)
	case "10", "11", "12":
		i := int(cmd[1] - '0')
		if rest == "?" {
			s.replyColor(cmd, s.defaultColor(i), bell)
		} else if c := ansi.XParseColor(rest[:min(len(rest), 256)]); c != nil {
			s.colors[i] = simple(c)
		}
	case "110", "111", "112":
		s.colors[cmd[2]-'0'] = nil
	}
}

// defaultColor is the foreground, background or cursor colour in force.
func (s *Screen) defaultColor(i int) color.Color {
	if c := s.colors[i]; c != nil {
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
	scheme, _, ok := strings.Cut(url, ":")
	return ok && len(url) <= maxURL && printable(url) && slices.Contains([]string{"http", "https", "mailto"}, strings.ToLower(scheme))
}

// printable says that v is ASCII without blanks and controls: safe within a
// sequence that is written to the person's terminal.
func printable(v string) bool {
	return !strings.ContainsFunc(v, func(r rune) bool { return r <= 0x20 || r >= 0x7f })
}
