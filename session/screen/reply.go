package screen

import (
	"fmt"
	"image/color"
)

// maxReply bounds the answers kept before they are handed out.
const maxReply = 4 << 10

// reply queues an answer for the guest.
func (s *Screen) reply(text string) {
	if s.answer == nil {
		return
	}
	if len(s.replyb)+len(text) > maxReply {
		s.flushReplies()
	}
	s.replyb = append(s.replyb, text...)
}

func (s *Screen) flushReplies() {
	if len(s.replyb) == 0 {
		return
	}
	b := s.replyb
	s.replyb = s.replyb[:0]
	s.answer(b)
}

// deviceAttributes is DA1: a VT220 with colours, no more than is true.
func (s *Screen) deviceAttributes(n int) {
	if n == 0 {
		s.reply("\x1b[?62;22c")
	}
}

// csiOther runs sequences that begin with <, = or >.
func (s *Screen) csiOther(p *params, final byte) {
	n := p.get(0, 0)
	switch string([]byte{p.first, final}) {
	case ">c": // DA2
		if n == 0 {
			s.reply("\x1b[>1;10;0c")
		}
	case ">q": // XTVERSION
		if n == 0 {
			s.reply("\x1bP>|stepbox\x1b\\")
		}
	case ">m", ">n": // modifyOtherKeys, and its end
		if p.n == 0 || n == 4 {
			s.modes.otherKeys = 0
			if final == 'm' {
				s.modes.otherKeys = uint8(min(p.get(1, 0), 2))
			}
		}
	case ">u":
		s.page.keys.push(n)
	case "<u":
		s.page.keys.pop(p.count(0, maxParam))
	case "=u":
		s.page.keys.set(n, p.get(1, 1))
	}
}

// statusReport is DSR.
func (s *Screen) statusReport(n int, private bool) {
	switch {
	case n == 5 && !private:
		s.reply("\x1b[0n")
	case n == 6 && private:
		s.reply(fmt.Sprintf("\x1b[?%d;%d;1R", s.relativeY()+1, s.relativeX()+1))
	case n == 6:
		s.reply(fmt.Sprintf("\x1b[%d;%dR", s.relativeY()+1, s.relativeX()+1))
	}
}

// requestMode is DECRQM.
func (s *Screen) requestMode(p *params) {
	n := p.get(0, 0)
	switch p.first {
	case '?':
		s.reply(fmt.Sprintf("\x1b[?%d;%d$y", n, s.modeSetting(n)))
	case 0:
		setting := 0
		switch n {
		case 4:
			setting = settingOf(s.modes.insert)
		case 20:
			setting = settingOf(s.modes.newline)
		}
		s.reply(fmt.Sprintf("\x1b[%d;%d$y", n, setting))
	}
}

// window is XTWINOPS: the size in characters is told, and titles are stacked.
// Nothing moves windows, and the title is never reported: an answer that the
// guest chose would arrive as if it were typed.
func (s *Screen) window(p *params) {
	switch p.get(0, 0) {
	case 18:
		s.reply(fmt.Sprintf("\x1b[8;%d;%dt", s.rows, s.cols))
	case 22:
		s.title.push()
	case 23:
		s.title.pop()
	}
}

// requestStatus is DECRQSS, for the settings that programs do ask for.
func (s *Screen) requestStatus(what string) {
	switch what {
	case "m":
		s.reply("\x1bP1$r" + string(appendSGR(nil, &s.cursor.pen.style)) + "\x1b\\")
	case "r":
		s.reply(fmt.Sprintf("\x1bP1$r%d;%dr\x1b\\", s.margins.top+1, s.margins.bottom))
	case " q":
		s.reply(fmt.Sprintf("\x1bP1$r%d q\x1b\\", s.modes.shape))
	default:
		s.reply("\x1bP0$r\x1b\\")
	}
}

// replyColor answers OSC 10 to 12 and 4 with the terminator that was used to ask.
func (s *Screen) replyColor(prefix string, c color.Color, bell bool) {
	r, g, b, _ := c.RGBA()
	end := "\x1b\\"
	if bell {
		end = "\a"
	}
	s.reply(fmt.Sprintf("\x1b]%s;rgb:%04x/%04x/%04x%s", prefix, r, g, b, end))
}
