package link

import (
	"context"
	"errors"
	"io"
	"time"

	"stepbox/session/api"
)

// watch joins the terminal, again and again while the session lives.
func (l *Link) watch() {
	defer l.wg.Done()
	wait := firstWait
	for l.ctx.Err() == nil {
		started := time.Now()
		err := l.view()
		if l.ctx.Err() != nil || l.left(err) || l.ctx.Err() != nil {
			return
		}
		l.again(&wait, time.Since(started) > lastWait, Lost{Link: l, Terminal: true, Err: err})
	}
}

// left says whether there will be no terminal again: it closed, or was refused,
// and the session isn't live, or isn't there.
func (l *Link) left(err error) bool {
	if code := api.CodeOf(err); code != api.CodeNotFound && code != api.CodeNotLive && !errors.Is(err, io.EOF) {
		return false
	}
	s, err := l.client.Session(l.ctx, l.ID)
	if err == nil {
		return !s.Live()
	}
	return api.CodeOf(err) == api.CodeNotFound
}

// view follows one terminal connection to its end.
func (l *Link) view() error {
	conn, err := l.client.Terminal(l.ctx, l.ID)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(l.ctx, func() { conn.Close() })
	defer func() {
		l.input.detach(conn)
		stop()
		conn.Close()
	}()
	first := true
	for {
		f, err := conn.Read()
		if err != nil {
			return err
		}
		if f.Kind == api.FrameKeyframe && f.Cols > 0 && f.Rows > 0 {
			l.Screen.put(l.Screen.listen(l.newEmu(f.Cols, f.Rows)))
		}
		l.Screen.feed(f, func() bool {
			l.dirty()
			return l.ctx.Err() == nil
		})
		l.dirty()
		if first {
			first = false
			l.input.attach(conn)
			if !l.send(Lost{Link: l, Terminal: true}) {
				return nil
			}
		}
	}
}

// dirty tells that the screen moved on, unless that is known.
func (l *Link) dirty() {
	if l.Screen.news() {
		l.send(Drawn{Link: l})
	}
}
