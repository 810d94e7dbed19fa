package paint

import (
	"strconv"
	"time"
)

// Frame is what a pane needs to know besides its own data to draw itself.
type Frame struct {
	P       *Palette
	Now     time.Time
	Focused bool
	Zoomed  bool          // the pane is shown alone
	Number  string        // the key that focuses the pane
	Spin    string        // the mark beside what takes long, or ""
	Wait    time.Duration // until keys may answer the question that is shown
}

// Since is for how long something has been, after a blank: as a clock or, where nothing
// moves by itself, in whole minutes; nothing is said of the first.
func (f Frame) Since(t time.Time) string {
	d := f.Now.Sub(t)
	switch {
	case !f.P.Still:
		return " " + Clock(d)
	case d < time.Minute:
		return ""
	case d < time.Hour:
		return " " + strconv.Itoa(int(d/time.Minute)) + " min"
	}
	return " " + strconv.Itoa(int(d/time.Hour)) + " h"
}
