package screen

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/ansi"

	"stepbox/session/e2e/must"
)

var others = flag.Bool("others", false, "ask xterm.js and tmux again, and write what they and we answer to testdata/terminals.json")

const terminalsFile = "testdata/terminals.json"

// terminalCase is an input, and what terminals show after it.
//
// An answer is the rows with bars between them, with the SGR of each change of
// looks in braces, the cursor (one beyond the last column: a wrap is pending),
// and what was replied. After a resize what is above the screen comes first, up to ⇡.
type terminalCase struct {
	Name   string `json:"name"`
	Group  string `json:"group"`
	Input  string `json:"input"` // as in a Go string
	Cols   int    `json:"cols"`
	Rows   int    `json:"rows"`
	Resize string `json:"resize,omitempty"` // sizes that it is given then
	After  string `json:"after,omitempty"`  // input that follows them

	Ours    string `json:"ours"`
	XtermJS string `json:"xtermjs"`
	Tmux    string `json:"tmux"`
	Why     string `json:"why,omitempty"` // of an answer that is ours alone
}

func unquote(t *testing.T, s string) []byte {
	t.Helper()
	v, err := strconv.Unquote(`"` + s + `"`)
	if err != nil {
		t.Fatalf("input %q: %v", s, err)
	}
	return []byte(v)
}

func (c *terminalCase) sizes() (sizes [][2]int) {
	for s := range strings.FieldsSeq(c.Resize) {
		var cols, rows int
		fmt.Sscanf(s, "%dx%d", &cols, &rows)
		sizes = append(sizes, [2]int{cols, rows})
	}
	return sizes
}

// TestTerminals holds the answers against those of xterm.js and tmux, as they
// were recorded (xterm.js 6.0 with Unicode 11, tmux 3.3a on glibc 2.36). Where
// neither answers as we do, the case says why.
func TestTerminals(t *testing.T) {
	b, err := os.ReadFile(terminalsFile)
	must.OK(t, err)
	var cases []*terminalCase
	must.OK(t, json.Unmarshal(b, &cases))
	if *others {
		askOthers(t, cases)
	}
	update := *others || flag.Lookup("update").Value.String() == "true" // golden's
	names := map[string]bool{}
	for _, c := range cases {
		t.Run(c.Group+"/"+c.Name, func(t *testing.T) {
			if names[t.Name()] {
				t.Error("there are two of this name")
			}
			names[t.Name()] = true
			got := ourAnswer(t, c)
			if update {
				c.Ours = got
			}
			if got != c.Ours {
				t.Errorf("%s on %dx%d %s%s:\ngot     %s\nwant    %s\nxterm.js %s\ntmux     %s", c.Input, c.Cols, c.Rows, c.Resize, c.After, got, c.Ours, c.XtermJS, c.Tmux)
			}
			if alone := got != c.XtermJS && got != c.Tmux; alone != (c.Why != "") {
				t.Errorf("%s: alone is %v, and why is %q:\nours     %s\nxterm.js %s\ntmux     %s", c.Input, alone, c.Why, got, c.XtermJS, c.Tmux)
			}
		})
	}
	if !update {
		return
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	must.OK(t, enc.Encode(cases))
	must.OK(t, os.WriteFile(terminalsFile, out.Bytes(), 0o644))
}

func ourAnswer(t *testing.T, c *terminalCase) string {
	t.Helper()
	s := New(c.Cols, c.Rows)
	var reply strings.Builder
	s.OnReply(func(p []byte) { reply.Write(p) })
	s.Write(unquote(t, c.Input))
	for _, size := range c.sizes() {
		s.Resize(size[0], size[1])
	}
	s.Write(unquote(t, c.After))
	if err := sound(s); err != nil {
		t.Error(err)
	}
	var above []string
	if c.Resize != "" && !s.AltScreen() {
		for i := range s.history.len() {
			g := newGrid(s.cols, 1, new(uint64))
			g.load(0, s.history.line(i))
			above = append(above, shownRow(&g.lines[0]))
		}
	}
	var rows []string
	for y := range s.rows {
		rows = append(rows, shownRow(&s.page.grid.lines[y]))
	}
	x := s.cursor.x
	if s.cursor.wrap {
		x++
	}
	return answer(above, rows, x, s.cursor.y, reply.String())
}

func answer(above, rows []string, x, y int, reply string) string {
	join := func(rows []string) string { return strings.TrimRight(strings.Join(rows, "|"), "|") }
	out := join(rows)
	if len(above) > 0 {
		out = join(above) + "⇡" + out
	}
	out += fmt.Sprintf(" @%d,%d", x, y)
	if reply != "" {
		q := strconv.Quote(reply)
		out += " →" + strings.ReplaceAll(q[1:len(q)-1], `\a`, `\x07`)
	}
	return out
}

// shownRow is a row as answers have it.
func shownRow(l *row) string {
	var b strings.Builder
	now := ""
	n := len(l.cells)
	for n > 0 && l.cells[n-1].text == " " {
		n--
	}
	for _, c := range l.cells[:n] {
		if c.width == 0 {
			continue
		}
		if look := lookOf(&c); look != now {
			b.WriteString("{" + look + "}")
			now = look
		}
		b.WriteString(c.text)
	}
	return b.String()
}

// lookOf is how a cell looks, without what nobody sees of a blank.
func lookOf(c *cell) string {
	if c.pen == nil {
		return ""
	}
	v := c.pen.style
	if c.text == " " && v.Underline == 0 && v.Attrs&(uv.AttrReverse|uv.AttrStrikethrough) == 0 {
		v.Fg, v.Attrs = nil, 0
	}
	if v.Underline == 0 {
		v.UnderlineColor = nil
	}
	for _, c := range []*color.Color{&v.Fg, &v.Bg} {
		if i, ok := (*c).(ansi.IndexedColor); ok && i < 16 {
			*c = ansi.BasicColor(i)
		}
	}
	s := strings.TrimSuffix(string(appendSGR(nil, &v)), "m")
	s = strings.ReplaceAll(s, ":2::", ":2:")
	return strings.TrimPrefix(strings.TrimPrefix(s, "0"), ";")
}

// askOthers has xterm.js and tmux answer, as far as they are there.
func askOthers(t *testing.T, cases []*terminalCase) {
	t.Helper()
	in, err := json.Marshal(cases)
	must.OK(t, err)
	node := exec.CommandContext(t.Context(), "node", "testdata/xterm.js")
	node.Stdin = bytes.NewReader(in)
	node.Stderr = os.Stderr
	out, err := node.Output()
	if err != nil {
		t.Fatalf("xterm.js: %v (NODE_PATH names where its packages are)", err)
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if len(lines) != len(cases) {
		t.Fatalf("%d answers of xterm.js to %d cases", len(lines), len(cases))
	}
	for i, c := range cases {
		must.OK(t, json.Unmarshal(lines[i], &c.XtermJS))
	}
	m := startTmux(t)
	for i, c := range cases {
		c.Tmux = m.answer(t, fmt.Sprint("c", i), c)
	}
}

// tmuxServer is a tmux that cases are put to.
type tmuxServer struct{ dir string }

func startTmux(t *testing.T) *tmuxServer {
	t.Helper()
	m := &tmuxServer{dir: t.TempDir()}
	conf := "set -g status off\nset -g history-limit 2000\nset -g escape-time 0\nset -g allow-rename on\n"
	must.OK(t, os.WriteFile(filepath.Join(m.dir, "conf"), []byte(conf), 0o600))
	m.run(t, "new-session", "-d", "-s", "base", "sleep 3600")
	t.Cleanup(func() { m.run(t, "kill-server") })
	return m
}

func (m *tmuxServer) run(t *testing.T, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", filepath.Join(m.dir, "s"), "-f", filepath.Join(m.dir, "conf")}, args...)...)
	c.Env = append(os.Environ(), "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TMUX=")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return out
}

func (m *tmuxServer) answer(t *testing.T, name string, c *terminalCase) string {
	t.Helper()
	file := func(n string) string { return filepath.Join(m.dir, name+n) }
	// The title says that all was read, and a reply that all were written.
	title := func(v string) string { return "\x1b]2;" + v + "\x1b\\" }
	const last = "\x1b[0n"
	for n, p := range map[string][]byte{"1": append(unquote(t, c.Input), title("one")...), "2": append(unquote(t, c.After), title("two")+"\x1b[5n"...)} {
		must.OK(t, os.WriteFile(file(n), p, 0o600))
	}
	script := fmt.Sprintf("stty raw -echo; exec 3<&0; cat <&3 >%q & cat %q; tmux -S %q wait-for %s; cat %q; wait", file("r"), file("1"), filepath.Join(m.dir, "s"), name, file("2"))
	m.run(t, "new-session", "-d", "-s", name, "-x", fmt.Sprint(c.Cols), "-y", fmt.Sprint(c.Rows), "sh", "-c", script)
	defer m.run(t, "kill-session", "-t", name)
	tell := func(format string) string {
		return strings.TrimSuffix(string(m.run(t, "display-message", "-p", "-t", name, format)), "\n")
	}
	await := func(there func() bool) {
		for end := time.Now().Add(time.Minute); !there(); {
			if time.Now().After(end) {
				t.Fatalf("tmux doesn't come to the end of %s", c.Input)
			}
		}
	}
	await(func() bool { return tell("#{pane_title}") == "one" })
	for _, size := range c.sizes() {
		m.run(t, "resize-window", "-t", name, "-x", fmt.Sprint(size[0]), "-y", fmt.Sprint(size[1]))
	}
	m.run(t, "wait-for", "-S", name)
	var reply []byte
	await(func() bool {
		reply, _ = os.ReadFile(file("r")) // not there yet: the same as none
		return tell("#{pane_title}") == "two" && bytes.HasSuffix(reply, []byte(last))
	})
	var x, y, above int
	fmt.Sscan(tell("#{cursor_x} #{cursor_y} #{history_size}"), &x, &y, &above)
	from := "0"
	if c.Resize == "" || tell("#{alternate_on}") == "1" {
		above = 0
	} else {
		from = "-"
	}
	// capture-pane gives line drawing as SO and SI.
	s := New(maxSize, 1)
	var all []string
	for l := range bytes.SplitSeq(bytes.TrimSuffix(m.run(t, "capture-pane", "-p", "-e", "-N", "-t", name, "-S", from), []byte("\n")), []byte("\n")) {
		s.Write([]byte("\x1b[H\x1b[2K\x1b)0\x1b[?7l"))
		s.Write(l)
		all = append(all, shownRow(&s.page.grid.lines[0]))
	}
	above = min(above, len(all))
	return answer(all[:above], all[above:], x, y, strings.TrimSuffix(string(reply), last))
}
