package holder

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"stepbox/runner/seqpacket"
	"stepbox/session/e2e/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peers are two connected sides; both serve until the test ends.
func peers(t *testing.T, a, b handler) (*peer, *peer) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	must.OK(t, err)
	var served sync.WaitGroup
	make := func(fd int, h handler) *peer {
		conn, err := seqpacket.New(fd)
		must.OK(t, err)
		p := newPeer(conn, h)
		served.Go(func() { _ = p.serve(context.Background()) })
		return p
	}
	left, right := make(fds[0], a), make(fds[1], b)
	t.Cleanup(func() {
		left.conn.Close()
		right.conn.Close()
		served.Wait()
	})
	return left, right
}

func TestCallsSideBySide(t *testing.T) {
	release := make(chan struct{})
	left, _ := peers(t, nil, func(ctx context.Context, op string, body json.RawMessage, files []*os.File) (any, []*os.File, error) {
		closeAll(files)
		var n int
		if err := json.Unmarshal(body, &n); err != nil {
			return nil, nil, err
		}
		if n == 0 {
			<-release
		}
		if n == 13 {
			return nil, nil, errors.New("unlucky")
		}
		return n * n, nil, nil
	})
	slow := make(chan error, 1)
	go func() {
		_, err := left.call(context.Background(), "square", 0, nil)
		slow <- err
	}()
	var all sync.WaitGroup
	for n := 1; n <= 50; n++ {
		all.Go(func() {
			var got int
			_, err := left.call(t.Context(), "square", n, &got)
			if n == 13 {
				if err == nil || err.Error() != "unlucky" {
					t.Errorf("the error is %v", err)
				}
			} else if err != nil || got != n*n {
				t.Errorf("%d² is %d, %v", n, got, err)
			}
		})
	}
	all.Wait()
	close(release)
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

func TestCallGivenUp(t *testing.T) {
	release := make(chan struct{})
	left, _ := peers(t, nil, func(context.Context, string, json.RawMessage, []*os.File) (any, []*os.File, error) {
		<-release
		file, err := os.Open("/dev/null")
		return nil, []*os.File{file}, err
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := left.call(ctx, "wait", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	close(release)
	if files, err := left.call(t.Context(), "wait", nil, nil); err != nil || len(files) != 1 {
		t.Errorf("the next call gives %v, %v", files, err)
	} else {
		closeAll(files)
	}
}

func TestCallToNobody(t *testing.T) {
	left, right := peers(t, nil, nil)
	right.conn.Close()
	if _, err := left.call(t.Context(), "x", nil, nil); err == nil {
		t.Error("nobody answered")
	}
	if _, err := left.call(t.Context(), "x", strings.Repeat("x", messageLimit), nil); err == nil {
		t.Error("a message that is too large is sent")
	}
}

// TestNoOrders: a supervisor hangs up on a holder that asks something of it.
func TestNoOrders(t *testing.T) {
	left, right := peers(t, nil, nil)
	if _, err := right.call(t.Context(), opGuard, nil, nil); !errors.Is(err, errClosed) {
		t.Errorf("a supervisor takes orders: %v", err)
	}
	if _, err := left.call(t.Context(), opHello, nil, nil); err == nil {
		t.Error("it asks on")
	}
}

func TestGuardCleans(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	closed := filepath.Join(dir, "work", "work")
	must.OK(t, os.MkdirAll(closed, 0o700))
	must.OK(t, os.WriteFile(filepath.Join(closed, "file"), nil, 0o600))
	must.OK(t, os.Chmod(closed, 0))
	guard := Guard{Dirs: []string{dir}, Cgroups: []string{filepath.Join(dir, "none")}, Thaw: []Write{{filepath.Join(dir, "none"), "x"}}}
	for range 2 { // the second finds nothing
		must.OK(t, guard.Clean(t.Context(), -1))
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("the folder is left")
	}
}
