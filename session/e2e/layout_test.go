package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"stepbox/session/e2e/must"
)

// How the panes were divided is there again when the next terminal looks, and files of
// garbage in its place are as none.
func TestLayoutIsKept(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.do("run", "--name", "kept", "--mode", "watch", "--detach", "--", "bash", "--norc", "--noprofile")
	height := func(tm *terminal) int { return len(tm.box("4 Actions")) }
	look := func() *terminal {
		tm := p.open(120, 35, "attach", "kept")
		tm.shows("4 Actions")
		tm.agentShows("bash-")
		return tm
	}
	tm := look()
	usual := height(tm)
	tm.press(leader + "4" + "(")
	tm.until("Actions is higher", func() bool { return height(tm) >= usual+1 })
	higher := height(tm)
	file := filepath.Join(p.dir, "data", "layout", "wide")
	if !poll(func() bool { text, err := os.ReadFile(file); return err == nil && len(text) > 0 }) {
		t.Fatal("nothing is kept")
	}
	tm.press(leader + "d")
	tm.ended()

	tm = look()
	tm.until("Actions is as high as it was", func() bool { return height(tm) == higher })
	tm.press(leader + "d")
	tm.ended()

	must.OK(t, os.WriteFile(file, []byte("\x00{\"strip\": [[["), 0o600))
	tm = look()
	tm.until("Actions is as high as at first", func() bool { return height(tm) == usual })
	tm.press(leader + "d")
	tm.ended()
}
