package changes

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/ui/intent"
)

// many is what differs in n files, in folders of 50.
func many(n int) api.Changes {
	c := api.Changes{Version: 1, Total: n, Added: 3 * n, Removed: n}
	for i := range n {
		c.Files = append(c.Files, api.Change{
			Path: fmt.Sprintf("module%02d/package%03d/some/file%05d.go", i/5000, i/50, i), Key: fmt.Sprintf("a2V5IG9mIGEgZmlsZSB0aGF0IGhhcyBjaGFuZ2Vk%06d", i),
			Status: "M", Kind: "file", OldSize: 1200, NewSize: 1300, Added: 3, Removed: 1, Counted: true,
		})
	}
	return c
}

const manyFiles = 100_000

// filled is a pane with that many files, drawn once.
func filled(b *testing.B, n int) (*Pane, func()) {
	p := &Pane{}
	p.SetChanges(api.Scope{}, NewTree(many(n)))
	screen := uv.NewScreenBuffer(120, 35)
	f := frame(b, screen)
	draw := func() { p.Draw(screen.Bounds(), f) }
	draw()
	return p, draw
}

// From an answer with the first page of so many changes, as it comes over the
// socket, to the screen; and with all of them.
func BenchmarkAnswerToScreen(b *testing.B) {
	for _, files := range []int{1000, manyFiles} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			answer, err := json.Marshal(many(files))
			must.OK(b, err)
			p, draw := filled(b, files)
			for b.Loop() {
				var c api.Changes
				must.OK(b, json.Unmarshal(answer, &c))
				p.SetChanges(api.Scope{}, NewTree(c))
				draw()
			}
		})
	}
}

// What is done on the goroutine that draws when an answer comes.
func BenchmarkSetChanges(b *testing.B) {
	p, draw := filled(b, manyFiles)
	t := NewTree(many(manyFiles))
	for b.Loop() {
		p.SetChanges(api.Scope{}, t)
		draw()
	}
}

// From a key to the screen.
func BenchmarkKey(b *testing.B) {
	for _, k := range []struct {
		name string
		do   []intent.Intent
	}{
		{"down", []intent.Intent{intent.Move{By: 1}}},
		{"end-and-start", []intent.Intent{intent.Bottom{}, intent.Top{}}},
		{"select-a-file", []intent.Intent{intent.Toggle{}}},
		{"fold", []intent.Intent{intent.Slide{By: -8}, intent.Slide{By: -8}, intent.Slide{By: 8}}},
		{"select-all", []intent.Intent{intent.ToggleAll{}}},
	} {
		b.Run(k.name, func(b *testing.B) {
			p, draw := filled(b, manyFiles)
			for b.Loop() {
				for _, i := range k.do {
					p.Handle(i)
					draw()
				}
			}
		})
	}
	b.Run("select-everything-by-folder", func(b *testing.B) {
		p, draw := filled(b, manyFiles)
		for b.Loop() {
			p.picks = nil
			for i := range 20 {
				p.toggleAll(&p.tree.nodes[p.tree.folderAt(place{path: fmt.Sprintf("module%02d", i)})])
			}
			draw()
		}
	})
}

// How much memory the pane holds of so many changes, all of them fetched.
func BenchmarkMemory(b *testing.B) {
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		p, _ := filled(b, manyFiles)
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(p)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/manyFiles, "B/file")
}
