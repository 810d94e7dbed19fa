package screen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	uv "github.com/charmbracelet/ultraviolet"
)

// output makes about n bytes of what programs print, with line ends as a PTY has them.
func output(kind string, n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the quick brown fox jumps over lazy dog func return error main package import const var")
	wide := strings.Fields("漢字 かな 한국어 café ☺ ─── →")
	var b bytes.Buffer
	for b.Len() < n {
		switch kind {
		case "repaint":
			b.WriteString("\x1b[H")
			for y := range 40 {
				fmt.Fprintf(&b, "\x1b[%d;1H\x1b[38;5;%dm", y+1, r.IntN(256))
				b.WriteString(strings.Repeat(words[r.IntN(len(words))]+" ", 16))
				b.WriteString("\x1b[0m\x1b[K")
			}
			continue
		case "region":
			b.WriteString("\x1b[2;39r\x1b[39;1H")
		}
		for range 4 + r.IntN(13) {
			w := words[r.IntN(len(words))]
			switch kind {
			case "coloured":
				sgr := []string{"1;31", "32", fmt.Sprintf("38;5;%d", r.IntN(256)), "38;2;1;2;3"}[r.IntN(4)]
				fmt.Fprintf(&b, "\x1b[%sm%s\x1b[0m ", sgr, w)
			case "unicode":
				b.WriteString(wide[r.IntN(len(wide))] + " ")
			default:
				b.WriteString(w + " ")
			}
		}
		b.WriteString("\r\n")
	}
	return b.Bytes()
}

func BenchmarkWrite(b *testing.B) {
	for _, kind := range []string{"plain", "coloured", "unicode", "repaint", "region"} {
		b.Run(kind, func(b *testing.B) {
			p := output(kind, 8<<20)
			s := New(120, 40)
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				for rest := p; len(rest) > 0; {
					n := min(4096, len(rest)) // what a PTY gives at once
					s.Write(rest[:n])
					rest = rest[n:]
				}
			}
		})
	}
}

func BenchmarkDraw(b *testing.B) {
	s := New(120, 40)
	s.Write(output("coloured", 64<<10))
	dst := uv.NewScreenBuffer(160, 50)
	b.ReportAllocs()
	for b.Loop() {
		s.Draw(dst, uv.Rect(0, 0, 120, 40), 0)
	}
}

func BenchmarkKeyframe(b *testing.B) {
	s := New(120, 40)
	s.Write(output("coloured", 1<<20))
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(s.Keyframe())))
	}
}
