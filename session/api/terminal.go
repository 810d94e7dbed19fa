package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Upgrade is the protocol that a terminal connection switches to.
const Upgrade = "stepbox-terminal"

// FrameKind is what a frame of the terminal connection carries.
type FrameKind byte

const (
	FrameKeyframe FrameKind = 'K' // bytes that draw the screen as it is on an empty one of Cols×Rows
	FrameOutput   FrameKind = 'O' // what the agent wrote, in order
	FrameResize   FrameKind = 'R' // the terminal's size from here on
	FrameInput    FrameKind = 'I' // to the agent: typed, but data from who follows the output, and none of it is its end
	FrameMarks    FrameKind = 'M' // where actions began, as of the bytes so far: see Marks
	FrameDamage   FrameKind = 'D' // in a replay: what comes here in the record can't be read, and why, in words; if it goes on, it does with a keyframe
	FrameEnd      FrameKind = 'E' // all output there is was sent; without it a follower's stream was cut off
)

// maxFrame bounds one frame's data. A keyframe with its scrollback is the
// largest; what is longer is a broken or hostile peer.
const maxFrame = 16 << 20

// Frame is one message of the terminal connection. Its form on the wire is the
// kind in one byte, columns and rows in two bytes each, the length of the data
// in four, all big-endian, and the data.
type Frame struct {
	Kind       FrameKind
	Cols, Rows int // of a keyframe or a resize
	Data       []byte
}

// WriteFrame writes one frame with a single Write.
func WriteFrame(w io.Writer, f Frame) error {
	if len(f.Data) > maxFrame {
		return fmt.Errorf("cannot send a terminal frame of %d bytes: at most %d fit", len(f.Data), maxFrame)
	}
	b := make([]byte, 9+len(f.Data))
	b[0] = byte(f.Kind)
	binary.BigEndian.PutUint16(b[1:], uint16(f.Cols))
	binary.BigEndian.PutUint16(b[3:], uint16(f.Rows))
	binary.BigEndian.PutUint32(b[5:], uint32(len(f.Data)))
	copy(b[9:], f.Data)
	_, err := w.Write(b)
	return err
}

// ReadFrame reads one frame. The end of the stream between frames is io.EOF.
func ReadFrame(r io.Reader) (Frame, error) {
	var h [9]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return Frame{}, err
	}
	f := Frame{
		Kind: FrameKind(h[0]),
		Cols: int(binary.BigEndian.Uint16(h[1:])),
		Rows: int(binary.BigEndian.Uint16(h[3:])),
	}
	n := binary.BigEndian.Uint32(h[5:])
	if n > maxFrame {
		return Frame{}, fmt.Errorf("cannot read a terminal frame of %d bytes: at most %d fit", n, maxFrame)
	}
	if n > 0 {
		f.Data = make([]byte, n)
		if _, err := io.ReadFull(r, f.Data); err != nil {
			return Frame{}, errors.Join(io.ErrUnexpectedEOF, err)
		}
	}
	return f, nil
}

// TerminalConn is a viewer's side of a session's terminal. One goroutine may
// read while others send.
type TerminalConn struct {
	conn io.ReadWriteCloser
	r    *bufio.Reader

	mu sync.Mutex // keeps frames whole; held across a write on purpose, since order is the point
}

// Terminal joins a session's terminal: first comes a keyframe, then output and
// resizes in order. For a session that isn't live the last screen is sent, then
// the end. A viewer that reads too slowly gets a keyframe in place of what it
// missed. ctx bounds the joining only.
func (c *Client) Terminal(ctx context.Context, id string) (*TerminalConn, error) {
	return c.terminal(ctx, id, "")
}

// Output joins a session's terminal for its bytes: all output since the agent
// started, without keyframes, and FrameEnd after the last of it. A reader that
// stops slows the agent. Of a session that is over the record is sent.
func (c *Client) Output(ctx context.Context, id string) (*TerminalConn, error) {
	return c.terminal(ctx, id, "?from=start")
}

func (c *Client) terminal(ctx context.Context, id, query string) (*TerminalConn, error) {
	resp, err := c.do(ctx, http.MethodGet, path(id, "terminal")+query, nil, "Connection", "Upgrade", "Upgrade", Upgrade)
	if err != nil {
		return nil, err
	}
	conn, ok := resp.Body.(io.ReadWriteCloser) // with that status it is, and ours alone (net/http, Response.Body)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		resp.Body.Close()
		return nil, &Problem{Code: CodeInternal, Message: "the session's terminal can't be joined: " + resp.Status}
	}
	return &TerminalConn{conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}, nil
}

// Read waits for the next frame; io.EOF says that the session's terminal closed.
func (t *TerminalConn) Read() (Frame, error) { return ReadFrame(t.r) }

// Input sends bytes to the agent, in the order of the calls. It blocks while
// the agent doesn't read.
func (t *TerminalConn) Input(p []byte) error { return t.send(Frame{Kind: FrameInput, Data: p}) }

// Resize asks for another size of the agent's terminal.
func (t *TerminalConn) Resize(cols, rows int) error {
	return t.send(Frame{Kind: FrameResize, Cols: cols, Rows: rows})
}

// Close leaves the terminal; the session goes on.
func (t *TerminalConn) Close() error { return t.conn.Close() }

func (t *TerminalConn) send(f Frame) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return WriteFrame(t.conn, f)
}

// Begun says where on the terminal an action began: so many lines before the one that the
// cursor is on, wrapped ones being one line.
type Begun struct{ Action, Back int }

// MarksFrame tells of marks, besides those that were told.
func MarksFrame(marks []Begun) Frame {
	var b []byte
	for _, m := range marks {
		b = fmt.Appendf(b, "%d %d\n", m.Action, m.Back)
	}
	return Frame{Kind: FrameMarks, Data: b}
}

// Marks reads them; what is none is left out.
func (f Frame) Marks() (out []Begun) {
	for line := range bytes.Lines(f.Data) {
		var m Begun
		if _, err := fmt.Sscanf(string(line), "%d %d", &m.Action, &m.Back); err == nil && m.Action > 0 && m.Back >= 0 {
			out = append(out, m)
		}
	}
	return out
}
