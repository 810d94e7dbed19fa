package restore

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stepbox/runner/overlay/scan"
	"stepbox/runner/overlay/watch"
)

// The loop that a session runs: wake, scan. It must end up with what a scan by
// another finds.
func TestWatchAndScan(t *testing.T) {
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, startHelper(t), place, func(lower string) {
				must(t, os.MkdirAll(filepath.Join(lower, "low/deep"), 0o755), os.WriteFile(filepath.Join(lower, "low/deep/f"), []byte("x"), 0o644))
			})
			defer s.close()
			s.scan()
			wakes := watchUpper(t, s.q.Upper)
			steps := [][]mutation{
				{{Op: "write", Path: "a", Data: []byte("1")}},
				{{Op: "mkdir", Path: "d"}, {Op: "mkdir", Path: "d/e"}, {Op: "write", Path: "d/e/f", Data: []byte("1")}},
				{{Op: "append", Path: "d/e/f", Data: []byte("2")}},
				{{Op: "append", Path: "low/deep/f", Data: []byte("copied up")}},
				{{Op: "append", Path: "low/deep/f", Data: []byte("again")}},
				{{Op: "rename", Path: "d", To: "moved"}},
				{{Op: "append", Path: "moved/e/f", Data: []byte("3")}},
				{{Op: "chmod", Path: "moved/e", N: 0o700}},
				{{Op: "removeall", Path: "moved"}, {Op: "mkdir", Path: "moved"}, {Op: "write", Path: "moved/g"}},
				{{Op: "write", Path: "moved/\xff\n", Data: []byte("x")}},
			}
			for _, muts := range steps {
				s.agent(muts...)
				fresh, err := scan.New(s.q.Upper, nil, s.h.open(bg, s.q.Upper))
				must(t, err)
				want, _ := scanWith(t, fresh, scan.Options{})
				must(t, fresh.Close())
				wakes.until(t, fmt.Sprint(muts), func() bool {
					m, _ := scanWith(t, s.scanner, scan.Options{})
					return explainManifests(want, m) == ""
				})
			}
		})
	}
}

// wakes are a watcher's calls.
type wakes chan struct{}

func watchUpper(t *testing.T, upper string) wakes {
	t.Helper()
	x := make(wakes, 1) // one that isn't waited for yet stands for all
	w, err := watch.New(upper, func() {
		select {
		case x <- struct{}{}:
		default:
		}
	})
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	return x
}

// until waits for a call at which f says yes.
func (x wakes) until(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case <-x:
			if f() {
				return
			}
		case <-deadline:
			t.Fatalf("no wake for %s", what)
		}
	}
}
