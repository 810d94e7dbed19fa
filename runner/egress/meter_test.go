package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

// purse is a meter with so much in it. What is more waits for somebody to put more in,
// or ends.
type purse struct {
	mu             sync.Mutex
	sent, received int
	empty          chan struct{} // gets a token when something has to wait
	more           chan int
}

func newPurse(sent, received int) *purse {
	return &purse{sent: sent, received: received, empty: make(chan struct{}, 100), more: make(chan int)}
}

var errSpent = errors.New("its purse is empty")

func (p *purse) take(ctx context.Context, of *int, n int, whole bool) (int, error) {
	for {
		p.mu.Lock()
		got := min(n, *of)
		if whole && got < n {
			got = 0
		}
		*of -= got
		p.mu.Unlock()
		if got > 0 {
			return got, nil
		}
		p.empty <- struct{}{}
		select {
		case more := <-p.more:
			if more == 0 {
				return 0, errSpent
			}
			p.mu.Lock()
			*of += more
			p.mu.Unlock()
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (p *purse) Sent(ctx context.Context, n int, whole bool) (int, error) {
	return p.take(ctx, &p.sent, n, whole)
}

func (p *purse) Received(ctx context.Context, n int, whole bool) (int, error) {
	return p.take(ctx, &p.received, n, whole)
}

func (p *purse) Model(context.Context) error { return nil }

// put waits until something waits, and puts more in; 0 ends it.
func (p *purse) put(t *testing.T, more int) {
	t.Helper()
	for _, step := range []func() bool{
		func() bool {
			select {
			case <-p.empty:
				return true
			case <-time.After(patience):
				return false
			}
		},
		func() bool {
			select {
			case p.more <- more:
				return true
			case <-time.After(patience):
				return false
			}
		},
	} {
		if !step() {
			t.Fatal("nothing waits for the meter")
		}
	}
}

func (p *purse) allow(context.Context, Attempt) Verdict { return Verdict{Allow: true, Meter: p} }

const plenty = 1 << 30

func TestNoMoreIsSentThanMay(t *testing.T) {
	got := make(chan int64, 1)
	at := serve(t, internet, publicAddr+":0", func(c net.Conn) {
		n, _ := io.Copy(io.Discard, c)
		got <- n
	})
	p := newPurse(100_000, plenty)
	s := newSandbox(t, Options{Judge: p.allow})
	c, err := s.dial("tcp", at.String(), patience)
	must.OK(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	go c.Write(make([]byte, 1<<20))
	p.put(t, 50_000)
	p.put(t, 0)
	a := s.waitClosed(publicAddr)
	if a.Failure != errSpent.Error() || a.Sent != 150_000 {
		t.Errorf("logged %+v", a)
	}
	if n := <-got; n > 150_000 { // a reset may take what was on the way
		t.Errorf("%d bytes arrived", n)
	}
}

func TestNoMoreIsReceivedThanMay(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", func(c net.Conn) { c.Write(make([]byte, 1<<20)) })
	p := newPurse(plenty, 1000)
	s := newSandbox(t, Options{Judge: p.allow})
	c, err := s.dial("tcp", at.String(), patience)
	must.OK(t, err)
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	p.put(t, 1<<20)
	if n, err := io.Copy(io.Discard, c); n != 1<<20 || err != nil {
		t.Errorf("%d bytes came: %v", n, err)
	}
}

func TestDatagramsWaitWhole(t *testing.T) {
	from := echoUDP(t, internet, publicAddr+":0")
	p := newPurse(2500, plenty)
	s := newSandbox(t, Options{Judge: p.allow})
	c, err := s.dial("udp", from.String(), patience)
	must.OK(t, err)
	defer c.Close()
	for end := time.Now().Add(patience); len(p.empty) == 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		c.Write(make([]byte, 1000)) // of datagrams some may be lost
	}
	p.put(t, 0)
	if a := s.waitClosed(publicAddr); a.Failure != errSpent.Error() || a.Sent != 2000 {
		t.Errorf("logged %+v", a)
	}
}

// A program that is killed while what it would get waits takes the question with it.
func TestAbandonedAtTheMeter(t *testing.T) {
	at := serve(t, internet, publicAddr+":0", func(c net.Conn) {
		io.WriteString(c, "x")
		io.Copy(io.Discard, c)
	})
	p := newPurse(plenty, 0)
	s := newSandbox(t, Options{Judge: p.allow})
	cmd := s.program("tcp " + at.String())
	select {
	case <-p.empty:
	case <-time.After(patience):
		t.Fatal("it never waited")
	}
	cmd.Process.Kill()
	cmd.Wait()
	if a := s.waitClosed(publicAddr); !strings.Contains(a.Failure, "gave up") || a.Received != 0 {
		t.Errorf("logged %+v", a)
	}
}

// What a program sent before it ended still leaves once it may.
func TestSentAndGone(t *testing.T) {
	got := make(chan int64, 1)
	at := serve(t, internet, publicAddr+":0", func(c net.Conn) {
		n, _ := io.Copy(io.Discard, c)
		got <- n
	})
	p := newPurse(1, plenty)
	s := newSandbox(t, Options{Judge: p.allow})
	c, err := s.dial("tcp", at.String(), patience)
	must.OK(t, err)
	c.Write(make([]byte, 1000))
	c.Close()
	select {
	case <-p.empty:
	case <-time.After(patience):
		t.Fatal("it never waited")
	}
	for range 3 { // the gateway looks after what gave up
		<-time.After(watchEvery)
	}
	p.more <- plenty
	if n := <-got; n != 1000 {
		t.Errorf("%d bytes arrived", n)
	}
}
