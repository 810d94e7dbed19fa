package holder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"stepbox/runner/seqpacket"
)

const (
	messageLimit = 64 << 10 // bytes of one message; larger things go through files
	filesLimit   = 8        // with one message
	callsLimit   = 32       // requests that one side carries out at a time
)

// errClosed means that the other side is gone.
var errClosed = errors.New("the connection to the holder is closed")

// message is one request or its answer.
type message struct {
	ID    uint64          `json:"id"`
	Op    string          `json:"op,omitempty"` // of a request
	Body  json.RawMessage `json:"body,omitempty"`
	Error string          `json:"error,omitempty"` // of an answer
}

type answer struct {
	message
	files []*os.File
}

// handler carries a request out. It owns the files, and gives its own away.
type handler func(ctx context.Context, op string, body json.RawMessage, files []*os.File) (any, []*os.File, error)

// peer is one side of the connection between supervisor and holder. Requests
// from the other side are carried out side by side, at most callsLimit of them;
// further ones wait in the socket.
type peer struct {
	conn   *seqpacket.Conn
	handle handler // nil on the side that only asks

	mu      sync.Mutex
	next    uint64                 // guarded by mu
	pending map[uint64]chan answer // guarded by mu; nil once closed; each holds one
}

func newPeer(conn *seqpacket.Conn, handle handler) *peer {
	return &peer{conn: conn, handle: handle, pending: make(map[uint64]chan answer)}
}

// serve reads until the other side is gone, hangs up, waits for what it had
// begun, and says why it stopped; io.EOF is the ordinary way.
func (p *peer) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	defer p.abandon()
	defer p.conn.Close()
	slots := make(chan struct{}, callsLimit)
	buffer := make([]byte, messageLimit)
	for {
		n, files, err := p.conn.Receive(buffer, filesLimit)
		if err != nil {
			if errors.Is(err, os.ErrClosed) {
				err = io.EOF
			}
			return err
		}
		var m message
		if err := json.Unmarshal(buffer[:n], &m); err != nil {
			closeAll(files)
			return fmt.Errorf("cannot read a message: %w", err)
		}
		if m.Op == "" {
			p.deliver(answer{m, files})
			continue
		}
		if p.handle == nil {
			closeAll(files)
			return fmt.Errorf("cannot carry %q out: this side takes no requests", m.Op)
		}
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			p.carryOut(ctx, m, files)
		})
	}
}

func (p *peer) carryOut(ctx context.Context, m message, files []*os.File) {
	reply := message{ID: m.ID}
	result, out, err := p.handle(ctx, m.Op, m.Body, files)
	if err == nil {
		reply.Body, err = json.Marshal(result)
	}
	if err != nil {
		reply.Error = err.Error()
	}
	encoded, err := json.Marshal(reply)
	if err == nil && len(encoded) > messageLimit {
		encoded, err = json.Marshal(message{ID: m.ID, Error: "the answer is too large"})
	}
	if err == nil {
		_ = p.conn.Send(encoded, out...) // a peer that is gone needs no answer
	}
	closeAll(out)
}

func (p *peer) deliver(a answer) {
	p.mu.Lock()
	wanted := p.pending[a.ID]
	delete(p.pending, a.ID)
	p.mu.Unlock()
	if wanted == nil {
		closeAll(a.files) // its caller gave up
		return
	}
	wanted <- a
}

// abandon fails every call that still waits.
func (p *peer) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, wanted := range p.pending {
		close(wanted)
	}
	p.pending = nil
}

// call sends a request and waits for its answer, which is decoded into result
// unless that is nil. The files that came with it are the caller's.
func (p *peer) call(ctx context.Context, op string, body, result any, files ...*os.File) ([]*os.File, error) {
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	wanted := make(chan answer, 1)
	p.mu.Lock()
	if p.pending == nil {
		p.mu.Unlock()
		return nil, errClosed
	}
	p.next++
	id := p.next
	p.pending[id] = wanted
	p.mu.Unlock()
	encoded, err = json.Marshal(message{ID: id, Op: op, Body: encoded})
	if err == nil && len(encoded) > messageLimit {
		err = seqpacket.ErrTooLarge
	}
	if err == nil {
		err = p.conn.Send(encoded, files...)
	}
	if err != nil {
		p.forget(id, wanted)
		return nil, err
	}
	select {
	case a, ok := <-wanted:
		if !ok {
			return nil, errClosed
		}
		if a.Error != "" {
			closeAll(a.files)
			return nil, errors.New(a.Error)
		}
		if result != nil {
			if err := json.Unmarshal(a.Body, result); err != nil {
				closeAll(a.files)
				return nil, fmt.Errorf("cannot read an answer: %w", err)
			}
		}
		return a.files, nil
	case <-ctx.Done():
		p.forget(id, wanted)
		return nil, ctx.Err()
	}
}

// forget takes a call back; an answer that came meanwhile loses its files.
func (p *peer) forget(id uint64, wanted chan answer) {
	p.mu.Lock()
	_, waiting := p.pending[id]
	delete(p.pending, id)
	p.mu.Unlock()
	if !waiting {
		select {
		case a := <-wanted:
			closeAll(a.files)
		default:
		}
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
