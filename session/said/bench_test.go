package said

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkInTranscript looks for a command that isn't in four long transcripts.
func BenchmarkInTranscript(b *testing.B) {
	home := b.TempDir()
	other := claudeLine(noon, "/p", strings.Repeat("make ", 50), "Build it")
	result := `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","content":"` + strings.Repeat("out ", 2000) + `"}]}}` + "\n"
	for _, p := range []string{"a", "b", "c", "d"} {
		put(b, filepath.Join(home, ".claude/projects/-p", p+".jsonl"), strings.Repeat(other+result, 200))
	}
	for b.Loop() {
		if got := InTranscript(home, Act{Lines: []string{"ls"}, Project: "/p", From: noon.Add(time.Hour), Until: noon.Add(time.Hour)}); got.Text != "" {
			b.Fatal(got)
		}
	}
}
