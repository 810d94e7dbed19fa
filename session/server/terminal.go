package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"stepbox/session/api"
)

// terminal joins a viewer to a session's terminal, or shows the last screen of
// one that is over.
func (s *server) terminal(w http.ResponseWriter, q *http.Request) {
	id := q.PathValue("id")
	c := s.control(id)
	all := q.URL.Query().Get("from") == "start"
	if c == nil && all {
		s.printed(w, q)
		return
	}
	if c == nil {
		f, err := s.r.Screen(q.Context(), id)
		if err != nil {
			fail(w, err)
			return
		}
		if conn, _ := hijack(w, q); conn != nil {
			_ = api.WriteFrame(conn, f)
			conn.Close()
		}
		return
	}
	join := c.Terminal().Join
	if all {
		join = c.Terminal().Follow
	}
	t := join()
	defer t.Close()
	conn, in := hijack(w, q)
	if conn == nil {
		return
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	watching := q.URL.Query().Get("watching") == "true" // what it sends counts for nothing
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer cancel()
		for {
			f, err := api.ReadFrame(in)
			if err != nil {
				return
			}
			switch {
			case watching:
			case f.Kind == api.FrameInput:
				t.Input(f.Data)
			case f.Kind == api.FrameResize:
				t.Resize(f.Cols, f.Rows)
			}
		}
	}()
	for {
		frames, err := t.Next(ctx)
		if err != nil {
			if all && errors.Is(err, io.EOF) && ctx.Err() == nil {
				_ = api.WriteFrame(conn, api.Frame{Kind: api.FrameEnd}) // the viewer is gone: nobody to tell
			}
			break
		}
		if write(conn, frames) != nil {
			break
		}
	}
	conn.Close() // ends the reader
	<-read
}

// printed sends all that the agent of a session that is over has printed.
func (s *server) printed(w http.ResponseWriter, q *http.Request) {
	id := q.PathValue("id")
	if _, err := s.r.Session(q.Context(), id); err != nil {
		fail(w, err)
		return
	}
	conn, _ := hijack(w, q)
	if conn == nil {
		return
	}
	defer conn.Close()
	out := bufio.NewWriterSize(conn, 64<<10)
	for f, err := range s.r.Output(q.Context(), id) {
		if err != nil || api.WriteFrame(out, f) != nil {
			_ = out.Flush() // what there is, without an end
			return
		}
	}
	if api.WriteFrame(out, api.Frame{Kind: api.FrameEnd}) == nil {
		_ = out.Flush() // the viewer is gone: nobody to tell
	}
}

func write(conn net.Conn, frames []api.Frame) error {
	w := bufio.NewWriterSize(conn, 64<<10)
	for _, f := range frames {
		if err := api.WriteFrame(w, f); err != nil {
			return err
		}
	}
	return w.Flush()
}

// hijack switches protocols; nil when the request isn't one for that.
func hijack(w http.ResponseWriter, q *http.Request) (net.Conn, *bufio.Reader) {
	if q.Header.Get("Upgrade") != api.Upgrade {
		w.Header().Set("Upgrade", api.Upgrade)
		fail(w, &api.Problem{Code: api.CodeInvalid, Message: "ask for this with Upgrade: " + api.Upgrade})
		return nil, nil
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		fail(w, err)
		return nil, nil
	}
	if u, ok := conn.(*net.UnixConn); ok {
		// What is on its way is in front of what the agent answers to a key.
		_ = u.SetWriteBuffer(32 << 10) // else it is only slower
	}
	conn = take(q.Context(), conn)
	if _, err := conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + api.Upgrade + "\r\n\r\n")); err != nil {
		conn.Close()
		return nil, nil
	}
	return conn, rw.Reader
}
