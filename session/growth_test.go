package session_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
)

// heap is what is in use now.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What a supervisor keeps of an action that is over is a line of a list.
func TestMemoryIsBoundedByWhatLives(t *testing.T) { // alone: it measures the whole process
	if testing.Short() {
		t.Skip("short runs are those with the race detector, which keeps things of its own")
	}
	const each, most = 150, 2 << 10 // actions; bytes kept of one
	w := start(t, api.ModeWatch, fmt.Sprintf("export LONG=%s; round() { for ((i = 0; i < %d; i++)); do /bin/true; done; echo done; read x; }; round; round; round",
		strings.Repeat("x", 4096), each))
	at := func(n int) int64 {
		w.happened(fmt.Sprintf("the end of action %d", n), func(e api.Event) bool {
			return e.Kind == "action.ended" && e.Action.N == n
		})
		return heap()
	}
	warm := at(each)
	w.enter()
	at(2 * each)
	w.enter()
	kept := (at(3*each) - warm) / (2 * each)
	for range 100 { // what was under way when the last action ended comes to its end
		if kept <= most {
			return
		}
		time.Sleep(100 * time.Millisecond)
		kept = (heap() - warm) / (2 * each)
	}
	t.Errorf("%d bytes are kept of each action that is over, want at most %d", kept, most)
}
