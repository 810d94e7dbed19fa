package gate

import "sync/atomic"

// maxAncestors bounds the chain of parents that is followed.
const maxAncestors = 512

// ancestors follows the chain of parents up to the sandbox's first process,
// which isn't among them.
func (g *Gate) ancestors(child procDir, s state) []Process {
	var l []Process
	var opened []procDir
	defer func() {
		for _, d := range opened {
			d.close()
		}
	}()
	for tries := 0; tries < 2*maxAncestors && len(l) < maxAncestors && s.parent != 0; tries++ {
		parent, err := openProc(s.parent)
		var ps state
		if err == nil {
			opened = append(opened, parent)
			ps, err = parent.state()
		}
		// The parent was looked up by its number, which may have been given
		// to another process meanwhile. That can't be older than the child.
		if err != nil || ps.start >= s.start {
			again, gone := child.state()
			if gone != nil {
				break
			}
			if err != nil || again.parent != s.parent {
				s = again // it was handed to another parent
				continue
			}
		}
		p := Process{PID: s.parent, Start: ps.start, Name: ps.name}
		if g.first.is(parent, p) {
			break
		}
		l = append(l, p)
		child, s = parent, ps
	}
	return l
}

// first remembers the sandbox's first process once it was seen. It lives as
// long as the sandbox.
type first struct{ p atomic.Pointer[Process] }

func (f *first) is(d procDir, p Process) bool {
	if known := f.p.Load(); known != nil {
		return known.PID == p.PID && known.Start == p.Start
	}
	st, err := d.status()
	if err != nil || st.group != 1 {
		return false
	}
	f.p.Store(&p)
	return true
}
