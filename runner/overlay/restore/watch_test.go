package restore

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/scan"
	"stepbox/runner/overlay/watch"
)

// The loop that a session runs: wake, scan what is dirty. It must end up with
// what a full scan finds.
func TestWatchAndScan(t *testing.T) {
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, startHelper(t), place, func(lower string) {
				must(t, os.MkdirAll(filepath.Join(lower, "low/deep"), 0o755), os.WriteFile(filepath.Join(lower, "low/deep/f"), []byte("x"), 0o644))
			})
			defer s.close()
			s.scan()
			x := watchUpper(t, s.q.Upper)
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
				x.until(fmt.Sprint(muts), func(k watch.Wake) bool {
					o := scan.Options{Dirty: append([]string{}, k.Dirs...)}
					if k.Full {
						if o.Dirty = nil; k.State.Why == "" {
							t.Error("a full wake for little")
						}
					}
					m, _ := scanWith(t, s.scanner, o)
					return explainManifests(want, m) == ""
				})
			}
			if st := x.w.State(); (st.Why == "") != inode.KernelSince(6, 8) || st.Watched != 4 {
				t.Errorf("state %+v", st)
			}
		})
	}
}

// watched is a watcher whose wakes a test waits for.
type watched struct {
	t     *testing.T
	w     *watch.Watcher
	wakes chan watch.Wake
}

func watchUpper(t *testing.T, upper string) *watched {
	t.Helper()
	x := &watched{t: t, wakes: make(chan watch.Wake, 100)} // more than any test causes; further ones are dropped
	w, err := watch.New(upper, func(k watch.Wake) {
		select {
		case x.wakes <- k:
		default:
		}
	})
	must(t, err)
	x.w = w
	t.Cleanup(func() { must(t, w.Close()) })
	x.until("the first wake", func(k watch.Wake) bool { return true })
	return x
}

// until waits for a wake that f says yes to.
func (x *watched) until(what string, f func(watch.Wake) bool) {
	x.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case k := <-x.wakes:
			if f(k) {
				return
			}
		case <-deadline:
			x.t.Fatalf("no wake for %s", what)
		}
	}
}
