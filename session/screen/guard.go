package screen

import (
	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"
)

// faultMark is what a person sees after a fault.
const faultMark = "[stepbox: the terminal emulator failed on what the program printed and starts empty]"

// guarded reads from p until it is used up or the emulator fails, and returns
// the rest. A fault is the last resort: every bound above it should hold. The
// instruction that failed is dropped, pages are made anew (what they held may be
// inconsistent), and a mark says so.
func (s *Screen) guarded(p []byte) (rest []byte) {
	defer func() {
		if v := recover(); v != nil {
			s.faults++
			s.renew()
			// At least one byte goes, or the same fault would come forever.
			rest = p[clamp(len(p)-s.scan.left, 1, len(p)):]
		}
	}()
	s.scan.left = len(p)
	s.read(p)
	return nil
}

// renew replaces everything that a fault can have left half changed.
func (s *Screen) renew() {
	s.main, s.alt = &page{grid: newGrid(s.cols, s.rows, &s.work)}, nil
	left := s.scan.left
	s.scan = scanner{left: left}
	s.reset()
	mark := &pen{style: uv.Style{Fg: ansi.BrightWhite, Bg: ansi.Red, Attrs: uv.AttrBold}}
	s.main.grid.ascii(0, 0, []byte(faultMark)[:min(len(faultMark), s.cols)], mark)
	s.cursor.y = min(1, s.rows-1)
}
