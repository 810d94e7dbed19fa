package terminal

import (
	"context"
	"slices"

	"stepbox/session/api"
)

// View is one viewer's place at a terminal. One goroutine may call Next while
// others call the rest.
type View struct {
	t      *Terminal
	reader interface {
		next(stop <-chan struct{}) ([]api.Frame, error)
		leave()
	}
	piped *literal // what a follower's input is made into; nil: it is typed as it is
}

// Join watches the terminal; the first frame is a keyframe.
func (t *Terminal) Join() *View { return &View{t: t, reader: t.join()} }

// Follow reads the output from its first byte on; there are no keyframes. A
// follower that doesn't read slows the agent. It gets all of it also when it
// comes after the end.
func (t *Terminal) Follow() *View { return &View{t: t, reader: t.follow(), piped: new(literal)} }

// Next waits for frames. io.EOF says that the terminal closed or ctx is done;
// any other error that what was printed can't be read.
func (v *View) Next(ctx context.Context) ([]api.Frame, error) { return v.reader.next(ctx.Done()) }

// Input queues bytes for the agent, in the order of the calls; it blocks while
// the agent doesn't read them. A viewer's are typed at the agent's terminal. A
// follower's are data, as from a pipe, and none are the end of it.
func (v *View) Input(p []byte) {
	switch {
	case v.piped == nil:
	case len(p) == 0:
		p = v.piped.end()
	case byLines(v.t.PTY):
		p = v.piped.typed(p)
	}
	if v.piped == nil && v.t.active.Load() != v {
		v.t.do(v.acts)
	}
	v.t.send(p)
}

// Resize asks for a size of the agent's terminal. The size is that of the viewer who
// was active last, of those who are there: by typing, by joining, or by asking again for
// the size that it asked for. One that is only left open somewhere, or whose connection
// hangs, holds up nobody; what it asks for as its panes move is for later.
func (v *View) Resize(cols, rows int) {
	v.t.do(func() {
		is := asked{v, cols, rows}
		switch i := v.asked(); {
		case i < 0:
			v.t.sizes = append(v.t.sizes, is)
		case v.t.sizes[i] == is:
			v.acts()
		default:
			v.t.sizes[i] = is
		}
		v.t.fit()
	})
}

// asked is where in sizes the viewer's is; -1 when it never asked. In the owner.
func (v *View) asked() int {
	return slices.IndexFunc(v.t.sizes, func(a asked) bool { return a.by == v })
}

// acts notes that the viewer is the active one; in the owner.
func (v *View) acts() {
	v.t.active.Store(v)
	i := v.asked()
	if i < 0 {
		return // it types, and sees what there is
	}
	mine := v.t.sizes[i]
	v.t.sizes = append(slices.Delete(v.t.sizes, i, i+1), mine)
	v.t.fit()
}

// fit gives the terminal the size that the newest in sizes asked for; in the owner.
func (t *Terminal) fit() {
	if n := len(t.sizes); n > 0 {
		t.active.Store(t.sizes[n-1].by)
		t.setSize(t.sizes[n-1].cols, t.sizes[n-1].rows)
	}
}

// asked is the size that a viewer asked for.
type asked struct {
	by         *View
	cols, rows int
}

// forget forgets what the viewer asked for; in the owner.
func (v *View) forget() {
	v.t.sizes = slices.DeleteFunc(v.t.sizes, func(a asked) bool { return a.by == v })
}

// Close leaves the terminal, whose size is then that of who was active last of those who
// are left. Next must not be running, nor be called again.
func (v *View) Close() {
	v.reader.leave()
	v.t.do(func() {
		v.forget()
		v.t.fit()
	})
}
