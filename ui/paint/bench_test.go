package paint

import (
	"strings"
	"testing"
)

// A command of the largest size an exec takes must not hold up frames for long.
func BenchmarkWrapLongCommand(b *testing.B) {
	s := screen(1, 1)
	for name, text := range map[string]string{
		"words": strings.Repeat("echo some words && ", 7000), "solid": strings.Repeat("x", 128<<10),
		"wide": strings.Repeat("漢字", 20000), "hidden": strings.Repeat("\u200b", 40000), "lines": strings.Repeat("a\n", 60000),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Wrap(s, text, 100)
				Marked(text)
			}
		})
	}
}
