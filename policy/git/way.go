package git

import (
	"slices"
	"strings"
	"sync"
)

// way is the way down to the folder that was asked about last, with what is known
// of each folder on it. Asked in the order of a walk, a path costs its own name
// and no look at the folders above, however many they are and however long their
// names. It is safe for concurrent use.
type way struct {
	mu    sync.Mutex
	to    string  // guarded by mu; a path from the root, ending in "/"; "" for the root
	legs  []leg   // guarded by mu; the folders of to
	rules []ruled // guarded by mu; those that hold there, the last first
	asked int     // guarded by mu; names that the rules were asked about

	of func(dir string) []pattern // the rules of a folder, by its path from the root
}

// leg is a folder on the way.
type leg struct {
	end     int  // of its path, with the "/"
	ignored bool // it, or one above
	rules   int  // how many hold above it
}

// ruled are the rules of a folder on the way, or of all.
type ruled struct {
	end   int // as a leg's; 0 for the root's
	rules []pattern
}

// forget goes back to the root, since rules may have come.
func (w *way) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.back(0)
}

// back goes up to the folders that the first n bytes are the path of.
func (w *way) back(n int) {
	left, _ := slices.BinarySearchFunc(w.legs, n+1, func(l leg, n int) int { return l.end - n })
	if left < len(w.legs) {
		w.rules = w.rules[:w.legs[left].rules]
	}
	w.legs = w.legs[:left]
	end := 0
	if left > 0 {
		end = w.legs[left-1].end
	}
	w.to = w.to[:end]
}

// ignored says whether the rules ignore a path from the root.
func (w *way) ignored(full string, folder bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	dir := full[:strings.LastIndexByte(full, '/')+1]
	shared := 0
	for shared < min(len(dir), len(w.to)) && dir[shared] == w.to[shared] {
		shared++
	}
	w.back(shared)
	at := len(w.to)
	w.to = dir
	for at < len(dir) {
		end := at + strings.IndexByte(dir[at:], '/') + 1
		ignored := w.above() || w.excluded(dir[:end-1], true)
		w.legs = append(w.legs, leg{end: end, ignored: ignored, rules: len(w.rules)})
		if !ignored {
			w.enter(end, w.of(dir[:end-1]))
		}
		at = end
	}
	return w.above() || w.excluded(full, folder)
}

// above says whether the last folder of the way is ignored, so that all in it is.
func (w *way) above() bool { return len(w.legs) > 0 && w.legs[len(w.legs)-1].ignored }

// enter adds rules that hold from here on.
func (w *way) enter(end int, rules []pattern) {
	if len(rules) > 0 {
		w.rules = append(w.rules, ruled{end, rules})
	}
}

// excluded asks the rules about one path, the deepest folder's and in it the
// last rule first.
func (w *way) excluded(full string, folder bool) bool {
	w.asked++
	for _, of := range slices.Backward(w.rules) {
		if found, ignored := last(of.rules, full[of.end:], folder); found {
			return ignored
		}
	}
	return false
}

// last finds the last rule that matches.
func last(rules []pattern, name string, folder bool) (found, ignored bool) {
	for _, p := range slices.Backward(rules) {
		if p.matches(name, folder) {
			return true, !p.negated
		}
	}
	return false, false
}
