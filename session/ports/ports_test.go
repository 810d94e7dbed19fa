package ports

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"stepbox/session/e2e/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inside is a server that answers a line with the port that it was dialled at, after an
// end has come, and then ends itself.
func inside(_ context.Context, port int) (net.Conn, error) {
	if port == 1 {
		return nil, errors.New("nobody listens")
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	conn, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		return nil, err
	}
	theirs, err := l.Accept()
	if err != nil {
		return nil, err
	}
	go func() {
		defer theirs.Close()
		if port == 2 { // it never answers
			_, _ = io.Copy(io.Discard, theirs)
			return
		}
		all, _ := io.ReadAll(theirs)
		fmt.Fprintf(theirs, "%s at %d", all, port)
	}()
	return conn, nil
}

func ask(t *testing.T, at int, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", at))
	if err != nil {
		return "refused"
	}
	defer conn.Close()
	fmt.Fprint(conn, text)
	_ = conn.(*net.TCPConn).CloseWrite()
	all, _ := io.ReadAll(conn)
	return string(all)
}

// What comes to a published port goes to the sandbox's, both ways to the end; an end of
// publishing ends what is open.
func TestPublish(t *testing.T) {
	p := New(inside)
	defer p.Close()
	at, err := p.Publish(3000, 0, false)
	must.OK(t, err)
	for range 2 {
		if got := ask(t, at, "hello"); got != "hello at 3000" {
			t.Errorf("it answers %q", got)
		}
	}
	if n := p.Served(3000); n != 2 {
		t.Errorf("%d connections", n)
	}
	if again, err := p.Publish(3000, 0, false); err == nil || again != at {
		t.Errorf("it is published again, at %d", again)
	}
	silent, err := p.Publish(2, 0, false)
	must.OK(t, err)
	conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", silent))
	must.OK(t, err)
	defer conn.Close()
	if !p.Unpublish(2) || p.Unpublish(2) {
		t.Error("it isn't unpublished once")
	}
	if _, err := bufio.NewReader(conn).ReadByte(); err == nil {
		t.Error("what is open goes on")
	}
	nobody, err := p.Publish(1, 0, false)
	must.OK(t, err)
	if got := ask(t, nobody, "x"); got != "" {
		t.Errorf("nobody answers %q", got)
	}
}

// A port that is taken gives way to the next free one, unless it has to be that one; other
// addresses aren't listened at.
func TestTaken(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must.OK(t, err)
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	p := New(inside)
	defer p.Close()
	if _, err := p.Publish(3000, taken, true); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("it isn't taken: %v", err)
	}
	at, err := p.Publish(3000, taken, false)
	if err != nil || at == taken {
		t.Fatalf("published at %d, %v", at, err)
	}
	if conn, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.2:%d", at)); err == nil {
		conn.Close()
		t.Error("another address answers")
	}
	for n := range Most {
		if _, err = p.Publish(4000+n, 0, false); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("any number can be published")
	}
	p.Close()
	if _, err := p.Publish(5000, 0, false); err == nil {
		t.Error("it is closed")
	}
	if got := ask(t, at, "x"); got != "refused" {
		t.Errorf("it still answers %q", got)
	}
}
