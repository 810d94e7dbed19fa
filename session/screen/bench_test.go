package screen

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/creack/pty"

	"stepbox/session/e2e/must"
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

// BenchmarkBesideTmux has cat print 100 MB into a PTY that this package reads,
// and the same into one that tmux reads, and gives what each needs of the CPU,
// reading included. ours/tmux is the budget's figure: at most 2.
func BenchmarkBesideTmux(b *testing.B) {
	if _, err := exec.LookPath("tmux"); err != nil {
		b.Skip("needs tmux")
	}
	for _, kind := range []string{"plain", "coloured", "unicode", "repaint", "region"} {
		b.Run(kind, func(b *testing.B) {
			file := filepath.Join(b.TempDir(), "output")
			p := output(kind, 100<<20)
			must.OK(b, os.WriteFile(file, p, 0o600))
			mb := float64(len(p)) / 1e6
			for b.Loop() {
				ours, theirs := readHere(b, file), readByTmux(b, file)
				b.ReportMetric(mb/ours.Seconds(), "ours-MB/cpu-s")
				b.ReportMetric(mb/theirs.Seconds(), "tmux-MB/cpu-s")
				b.ReportMetric(ours.Seconds()/theirs.Seconds(), "ours/tmux")
			}
		})
	}
}

func readHere(b *testing.B, file string) time.Duration {
	c := exec.CommandContext(b.Context(), "sh", "-c", "stty raw -echo; cat "+file)
	before := cpu(b, "/proc/self/stat")
	tty, err := pty.StartWithSize(c, &pty.Winsize{Cols: 120, Rows: 40})
	must.OK(b, err)
	s := New(120, 40)
	buf := make([]byte, 32<<10)
	for {
		n, err := tty.Read(buf)
		s.Write(buf[:n])
		if err != nil {
			break // EIO: cat is done
		}
	}
	tty.Close()
	must.OK(b, c.Wait())
	return cpu(b, "/proc/self/stat") - before
}

func readByTmux(b *testing.B, file string) time.Duration {
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	socket := filepath.Join(b.TempDir(), "s")
	tmux := func(args ...string) string {
		c := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", socket, "-f", "/dev/null"}, args...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			b.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	tmux("new-session", "-d", "-x", "120", "-y", "40", "sh", "-c",
		fmt.Sprintf("stty raw -echo; tmux -S %q wait-for go; cat %q; tmux -S %q wait-for -S done; exec cat >/dev/null", socket, file, socket))
	defer tmux("kill-server")
	stat := "/proc/" + tmux("display-message", "-p", "#{pid}") + "/stat"
	before := cpu(b, stat)
	tmux("wait-for", "-S", "go")
	tmux("wait-for", "done")
	return cpu(b, stat) - before
}

// cpu is the time a process has used, see proc_pid_stat(5).
func cpu(b *testing.B, stat string) time.Duration {
	if stat == "/proc/self/stat" {
		var u syscall.Rusage
		must.OK(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	p, err := os.ReadFile(stat)
	must.OK(b, err)
	f := strings.Fields(string(p[bytes.LastIndexByte(p, ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
