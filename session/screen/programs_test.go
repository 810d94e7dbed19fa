package screen

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/exp/golden"
	"github.com/creack/pty"

	"stepbox/session/e2e/must"
)

var capture = flag.Bool("capture", false, "run the programs again and replace testdata/programs/*.raw")

// programs are what testdata/programs holds the output of: real programs at
// 80×24, cut off while they show something.
var programs = []struct {
	name  string
	setup string // a shell script run first, in an empty folder
	argv  []string
	steps []step
}{
	{
		name: "vim", setup: `seq 1 60 | awk '{print "int line" $1 "(void) { return \"text " $1 "\"; } /* é 漢字 */"}' >a.c`,
		argv: []string{"vim", "-u", "NONE", "-N", "+syntax on", "+set number background=dark ruler", "a.c"},
		steps: []step{
			{"line20", "10Gdd5jOinserted 漢字 text\x1b"}, {"inserted", ":split\r\x06"}, {"line4", "ggyy3P"}, {"a.c", "/line7\r"}, {"line7", ""},
		},
	},
	{
		name: "less", setup: `seq 1 200 | awk '{print "\033[3" ($1%8) "mline " $1 "\033[0m wide 漢字 e\xcc\x81 and a long tail that is wrapped at the right edge of the window once or twice"}' >t`,
		argv:  []string{"less", "-R", "t"},
		steps: []step{{"line 5", " "}, {"line 20", "jjj"}, {"line 21", "/line 99\r"}, {"line 99", "kk"}, {"line 98", ""}},
	},
	{
		name: "gitlog", setup: `git init -q -b main . && for i in 1 2 3 4 5 6; do echo $i >f; git add f; GIT_AUTHOR_DATE="2024-01-0$i 12:00:00 +0000" GIT_COMMITTER_DATE="2024-01-0$i 12:00:00 +0000" git -c user.name=A -c user.email=a@example.org commit -qm "change $i"; done`,
		argv:  []string{"git", "--no-pager", "log", "--color", "--graph", "--stat", "-p"},
		steps: []step{{"change 1", ""}},
	},
	{
		// In its own namespaces it shows only itself.
		name: "htop", argv: []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "htop", "--delay=5"},
		steps: []step{{"F10", "\x1bOB"}, {"F10", "\x1b[17~"}, {"Sort by", ""}},
	},
	{
		name: "tmux", setup: `printf 'set -g status-right ""\nset -g status-left "[x]"\nset -g default-shell /bin/sh\nset -g automatic-rename off\n' >c`,
		argv:  []string{"tmux", "-S", "s", "-f", "c", "new-session", "-n", "one", "PS1='$ ' sh"},
		steps: []step{{"$", "printf '\\033[31mred\\033[m 漢字\\n'; seq 1 40\r"}, {"40", "\x02%"}, {"│", "PS1='> '\r"}, {">", "seq 1 30\r"}, {"30", ""}},
	},
}

// step types keys once the screen shows something.
type step struct{ shows, keys string }

func TestCapture(t *testing.T) {
	if !*capture {
		t.Skip("runs with -capture only: it replaces testdata")
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
			defer cancel()
			dir := t.TempDir()
			env := append(os.Environ(), "TERM=xterm-256color", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "HOME="+dir, "TMUX=", "LESS=", "PS1=$ ")
			if p.setup != "" {
				c := exec.CommandContext(ctx, "sh", "-c", p.setup)
				c.Dir, c.Env = dir, env
				if out, err := c.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			c := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
			c.Dir, c.Env = dir, env
			tty, err := pty.StartWithSize(c, &pty.Winsize{Cols: 80, Rows: 24})
			must.OK(t, err)
			raw := drive(ctx, t, tty, p.steps, func() {
				if p.name == "tmux" {
					_ = exec.Command("tmux", "-S", filepath.Join(dir, "s"), "kill-server").Run()
				}
				c.Process.Kill()
				c.Wait()
			})
			tty.Close()
			must.OK(t, os.WriteFile(filepath.Join("testdata", "programs", p.name+".raw"), raw, 0o644))
		})
	}
}

// drive types the steps and gives what the program printed until it had shown
// the last one and then was quiet for a while.
func drive(ctx context.Context, t *testing.T, tty *os.File, steps []step, kill func()) []byte {
	s := New(80, 24)
	s.OnReply(func(p []byte) { tty.Write(p) })
	chunks := make(chan []byte)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(chunks)
		for {
			b := make([]byte, 4096)
			n, err := tty.Read(b)
			if n > 0 {
				select {
				case chunks <- b[:n]:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	var raw []byte
	quiet := time.NewTimer(time.Second)
	for open := true; open; {
		if len(steps) > 0 && strings.Contains(strings.Join(s.Text(), "\n"), steps[0].shows) {
			tty.WriteString(steps[0].keys)
			steps = steps[1:]
			quiet.Reset(700 * time.Millisecond)
		}
		select {
		case b, ok := <-chunks:
			if !ok {
				open = false
				break
			}
			raw = append(raw, b...)
			s.Write(b)
		case <-quiet.C:
			if len(steps) == 0 {
				open = false
				break
			}
			quiet.Reset(time.Second)
		case <-ctx.Done():
			kill()
			t.Fatalf("still waiting for %q:\n%s", steps, strings.Join(s.Text(), "\n"))
		}
	}
	kill() // which ends the read: closing our side doesn't
	for range chunks {
	}
	wg.Wait()
	return raw
}

func recorded(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, p := range programs {
		b, err := os.ReadFile(filepath.Join("testdata", "programs", p.name+".raw"))
		must.OK(t, err)
		out[p.name] = b
	}
	return out
}

// The screens that real programs draw, cell by cell.
func TestProgramsDrawAsBefore(t *testing.T) {
	for name, raw := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			s := New(80, 24)
			s.Write(raw)
			must.OK(t, sound(s))
			golden.RequireEqual(t, state(s))
		})
	}
}

// tmux, given the same bytes, shows the same: text and styles of every cell.
func TestProgramsDrawAsInTmux(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux")
	}
	for name, raw := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			// What it shows at several moments, not only at the end.
			for _, part := range []int{4, 2, 1} {
				p := whole(raw[:len(raw)/part])
				ours := New(80, 24)
				ours.Write(p)
				theirs := inTmux(t, p, 80, 24)
				compare(t, fmt.Sprintf("%s to byte %d", name, len(p)), ours, theirs)
			}
		})
	}
}

// whole cuts off an unfinished sequence or character at the end.
func whole(p []byte) []byte {
	s := New(80, 24)
	s.Write(p)
	return p[:len(p)-len(s.pending())]
}

// compare reports rows that look different.
func compare(t *testing.T, what string, ours, theirs *Screen) {
	t.Helper()
	for y := range ours.rows {
		a, b := &ours.page.grid.lines[y], &theirs.page.grid.lines[y]
		if x, y2 := shownCells(a), shownCells(b); x != y2 {
			t.Errorf("%s, row %d:\nours %s\ntmux %s", what, y, x, y2)
		}
	}
	if a, b := ours.cursor, theirs.cursor; min(a.x, ours.cols-1) != b.x || a.y != b.y {
		t.Errorf("%s: cursor at %d,%d, in tmux at %d,%d", what, a.x, a.y, b.x, b.y)
	}
}

// shownCells is a row without what nobody sees, the foreground of blanks, and
// without blanks at the end of whatever background: capture-pane leaves out
// cells that were erased.
func shownCells(l *row) string {
	out := make([]cell, len(l.cells))
	copy(out, l.cells)
	for i := range out {
		c := &out[i]
		if c.pen == nil {
			continue
		}
		p := *c.pen
		p.link.Params = ""
		if c.text == " " && p.style.Underline == 0 && p.style.Attrs&(1<<5|1<<7) == 0 {
			p.style.Fg, p.style.Attrs = nil, 0
		}
		c.pen = &p
		if p == (pen{}) {
			c.pen = nil
		}
	}
	n := len(out)
	for n > 0 && out[n-1].text == " " {
		n--
	}
	return cells(out[:n])
}

// inTmux has a tmux show the bytes and gives its screen.
func inTmux(t *testing.T, p []byte, cols, rows int) *Screen {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	file := filepath.Join(dir, "bytes")
	must.OK(t, os.WriteFile(file, p, 0o600))
	must.OK(t, os.WriteFile(filepath.Join(dir, "conf"), []byte("set -g status off\nset -g history-limit 2000\nset -g escape-time 0\n"), 0o600))
	tmux := func(args ...string) []byte {
		c := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", filepath.Join(dir, "s"), "-f", filepath.Join(dir, "conf")}, args...)...)
		c.Env = append(os.Environ(), "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TMUX=")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return out
	}
	// raw: the bytes have the line ends that a terminal made.
	script := fmt.Sprintf("stty raw -echo; cat %q; tmux -S %q wait-for -S shown; exec cat >/dev/null", file, filepath.Join(dir, "s"))
	tmux("new-session", "-d", "-x", fmt.Sprint(cols), "-y", fmt.Sprint(rows), "sh", "-c", script)
	defer tmux("kill-server")
	tmux("wait-for", "shown")
	// The wait can end before the last bytes are parsed: until two looks agree
	// and a marker in the title, printed last, has come.
	var out []byte
	for last := []byte(nil); ; last = out {
		out = tmux("capture-pane", "-p", "-e", "-N")
		if last != nil && bytes.Equal(out, last) {
			break
		}
	}
	var x, y int
	fmt.Sscan(string(tmux("display-message", "-p", "#{cursor_x} #{cursor_y}")), &x, &y)
	s := New(cols, rows)
	s.Write([]byte("\x1b)0")) // capture-pane gives line drawing as SO and SI
	for i, l := range bytes.Split(bytes.TrimSuffix(out, []byte("\n")), []byte("\n")) {
		if i < rows {
			fmt.Fprintf(s, "\x1b[%dH\x1b[?7l%s", i+1, l)
		}
	}
	s.cursor.x, s.cursor.y = min(x, cols-1), y
	return s
}

// notAsInTmux are the sequences that tmux shows otherwise, and why.
var notAsInTmux = map[string]string{
	"newline mode":              "tmux 3.3 has no LNM",
	"columns":                   "tmux has no left and right margins",
	"single shift":              "tmux has no SS2 and SS3",
	"emoji grows":               "tmux 3.3 keeps an emoji narrow after U+FE0F; programs that measure clusters expect it wide",
	"wrap waits":                "tmux counts a waiting wrap as a column of its own; xterm doesn't",
	"overwrite half a wide":     "tmux leaves the other half of a wide character; xterm blanks it",
	"erase half a wide":         "likewise",
	"delete half a wide":        "likewise",
	"mark after a move is lost": "tmux joins it to the blank left of the cursor",
	"invalid bytes":             "tmux leaves them out; here a person sees that there was something",
	"8-bit controls are text":   "likewise",
}

func TestSequencesDoAsInTmux(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux")
	}
	for name, c := range sequences {
		t.Run(name, func(t *testing.T) {
			if why := notAsInTmux[name]; why != "" {
				t.Skip(why)
			}
			ours := New(10, 5)
			ours.Write([]byte(c.in))
			compare(t, name, ours, inTmux(t, []byte(c.in), 10, 5))
		})
	}
}
