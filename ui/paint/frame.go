package paint

import "time"

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
