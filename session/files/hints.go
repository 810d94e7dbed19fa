package files

import "time"

// How long hints are relied on. Tests have less.
var (
	hintedFrom = 2000            // entries in the upper; fewer are looked at one by one as fast
	fullLook   = 2 * time.Second // between two looks at everything, or longer where those take long
)

// hints say where files moved since a scan looked, so that a look for a viewer
// needn't take in all of them. Whatever is in doubt has everything looked at, and
// so it is at intervals: an agent can write where no hint leads. That is why no
// checkpoint relies on them.
type hints struct {
	dirty func() (dirs []string, sure bool)
	sure  bool          // a full look was taken since there was a doubt
	full  time.Time     // when the last full look began
	took  time.Duration // how long it was
}

// Hint makes looks for viewers from now on go only where something moved, as
// watch.Watcher's Dirty tells it.
func (f *Files) Hint(dirty func() (dirs []string, sure bool)) {
	f.scanning.Lock()
	defer f.scanning.Unlock()
	f.hints = hints{dirty: dirty}
}

// where says where a look for a viewer has to go: nil for everywhere. The look is
// taken at once, and scanned is told of it.
func (h *hints) where(entries int) []string {
	if h.dirty == nil {
		return nil
	}
	dirs, sure := h.dirty()
	switch {
	case !sure || !h.sure || entries < hintedFrom || time.Since(h.full) > max(fullLook, 20*h.took):
		h.sure = false // until that look was taken
		return nil
	case dirs == nil:
		return []string{}
	}
	return dirs
}

// scanned is told of every look: whether it was one at everything, when it began
// and how it went. After one that failed nothing is sure.
func (h *hints) scanned(full bool, begun time.Time, err error) {
	switch {
	case err != nil:
		h.sure = false
	case full:
		h.sure, h.full, h.took = true, begun, time.Since(begun)
	}
}
