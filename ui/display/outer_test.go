package display

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/charmbracelet/x/exp/golden" // the flag -update
	"golang.org/x/text/unicode/norm"

	"stepbox/session/e2e/must"
)

var others = flag.Bool("others", false, "show the hard characters in tmux, xterm and xterm.js again, and write what they make of them to testdata/outer.json")

const outerFile = "testdata/outer.json"

// outer is what terminals made of a frame.
type outer struct {
	Frame string              `json:"frame"`
	Shown map[string][]string `json:"shown"` // by terminal: its rows
}

// What terminals that don't measure by clusters made of the frame when they were asked:
// whatever they draw, what is behind it stands in its place, and nothing was blank that
// they know. The frame has to be the one that they were shown.
func TestOuterTerminals(t *testing.T) {
	frame := bytesOf(t, 20, len(hard), hardFrame)
	if *others {
		askOthers(t, frame)
	}
	is := recorded(t)
	if is.Frame != frame {
		t.Errorf("the frame is another than the one that terminals were shown: run this with -others where tmux, Xvfb with xterm, and node are")
	}
	for name, rows := range is.Shown {
		for i, h := range hard {
			row := rows[i]
			if !strings.HasPrefix(row, "<") || !strings.Contains(row, ">") || !strings.HasSuffix(row, "]") || made(row, h.text) == "" {
				t.Errorf("%s shows of %s %q", name, h.name, row)
			}
		}
	}
}

// made is how a terminal's row shows a character, in words; "" is not at all.
func made(row, text string) string {
	_, row, _ = strings.Cut(row, "<")
	in, _, _ := strings.Cut(row, ">")
	switch in = strings.TrimSpace(in); {
	case norm.NFC.String(in) == norm.NFC.String(text): // xterm composes
		return "whole"
	case in != "":
		return "its first part"
	case text == "🫩":
		return "as a blank: it is newer"
	}
	return ""
}

func recorded(t *testing.T) (is outer) {
	t.Helper()
	data, err := os.ReadFile(outerFile)
	if err == nil {
		err = json.Unmarshal(data, &is)
	}
	must.OK(t, err)
	return is
}

func askOthers(t *testing.T, frame string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "frame")
	must.OK(t, os.WriteFile(file, []byte(frame), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run := func(in, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Stdin, cmd.Stderr = strings.NewReader(in), os.Stderr
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TMUX=")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return string(out)
	}
	is := outer{Frame: frame, Shown: map[string][]string{}}
	take := func(name, text string) { is.Shown[name] = rowsOf(text) }

	name, text, _ := strings.Cut(run(frame, "node", "testdata/xterm.js", fmt.Sprint(len(hard))), "\n")
	take(name, text)

	socket := filepath.Join(dir, "tmux")
	run("", "tmux", "-u", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-x", "20", "-y", fmt.Sprint(len(hard)), "-s", "s",
		fmt.Sprintf("tmux -S %q set status off; stty raw; cat %q; tmux -S %q wait-for -S shown; sleep 600", socket, file, socket))
	defer run("", "tmux", "-S", socket, "kill-server")
	run("", "tmux", "-S", socket, "wait-for", "shown")
	for {
		text = run("", "tmux", "-S", socket, "capture-pane", "-p", "-t", "s")
		if strings.Count(text, "]") == len(hard) {
			break
		}
	}
	take(strings.TrimSpace(run("", "tmux", "-V")), text)

	take("xterm "+strings.Trim(strings.TrimPrefix(run("", "xterm", "-version"), "XTerm"), "()\n"), inXterm(t, ctx, dir, file))
	data, err := json.MarshalIndent(is, "", "  ")
	if err == nil {
		err = os.WriteFile(outerFile, append(data, '\n'), 0o644)
	}
	must.OK(t, err)
}

// inXterm shows a file in an xterm that nobody sees, and has it print its screen.
func inXterm(t *testing.T, ctx context.Context, dir, file string) string {
	t.Helper()
	server := exec.CommandContext(ctx, "Xvfb", "-displayfd", "1", "-screen", "0", "800x600x24")
	out, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	must.OK(t, err)
	defer func() { _, _ = server.Process.Kill(), server.Wait() }()
	number, err := bufio.NewReader(out).ReadString('\n')
	must.OK(t, err)
	printed := filepath.Join(dir, "printed")
	x := exec.CommandContext(ctx, "xterm", "-u8", "-geometry", fmt.Sprintf("20x%d", len(hard)), "-xrm", "xterm*printerCommand: cat >"+printed+".part; mv "+printed+".part "+printed,
		"-e", "sh", "-c", fmt.Sprintf("stty raw; cat %q; printf '\\033[i'; until [ -e %q ]; do sleep 0.1; done", file, printed))
	x.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "DISPLAY=:"+strings.TrimSpace(number))
	if out, err := x.CombinedOutput(); err != nil {
		t.Fatalf("xterm: %v: %s", err, out)
	}
	data, err := os.ReadFile(printed)
	must.OK(t, err)
	var text []string
	for _, row := range rowsOf(string(data)) {
		row = row[max(0, strings.Index(row, "m<")+1):]
		text = append(text, strings.ReplaceAll(strings.TrimSuffix(row, "\x1b[0m"), "\uffff", "")) // halves of wide ones
	}
	return strings.Join(text, "\n")
}

func rowsOf(text string) (rows []string) {
	for row := range strings.Lines(text) {
		rows = append(rows, strings.TrimRight(row, " \r\n"))
	}
	return rows[:min(len(rows), len(hard))]
}

// The tables of docs/terminal.md are what was recorded; -update writes them. Each test that
// the page names is there.
func TestTerminalPage(t *testing.T) {
	const page = "../../docs/terminal.md"
	data, err := os.ReadFile(page)
	must.OK(t, err)
	text := replaced(t, string(data), "drawn", drawnTable(t))
	text = replaced(t, text, "cases", casesTable(t))
	if flag.Lookup("update").Value.String() == "true" {
		err = os.WriteFile(page, []byte(text), 0o644)
	} else if text != string(data) {
		t.Error("docs/terminal.md isn't what was recorded: go test ./ui/display -run TestTerminalPage -update writes it")
	}
	must.OK(t, err)
	out, err := exec.CommandContext(t.Context(), "grep", "-rhoE", "^func (Test|Fuzz)[A-Za-z0-9]+", "--include=*_test.go", "../../ui", "../../session").Output()
	must.OK(t, err)
	tests := strings.Fields(strings.ReplaceAll(string(out), "func ", ""))
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == '`' || r == ' ' || r == ',' || r == '\n' }) {
		if (strings.HasPrefix(word, "Test") || strings.HasPrefix(word, "Fuzz")) && word != "Tests" && !slices.Contains(tests, word) {
			t.Errorf("docs/terminal.md names %s, which isn't there", word)
		}
	}
}

// replaced is a page with another generated part of a name.
func replaced(t *testing.T, page, name, table string) string {
	t.Helper()
	before, rest, ok := strings.Cut(page, "<!-- Generated: "+name+" -->\n")
	_, after, ok2 := strings.Cut(rest, "<!-- End of what is generated. -->\n")
	if !ok || !ok2 {
		t.Fatalf("the page has no place for %s", name)
	}
	return before + "<!-- Generated: " + name + " -->\n" + table + "<!-- End of what is generated. -->\n" + after
}

func drawnTable(t *testing.T) string {
	is := recorded(t)
	var b bytes.Buffer
	names := make([]string, 0, len(is.Shown))
	for name := range is.Shown {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Fprintf(&b, "| | character | columns | %s |\n|%s\n", strings.Join(names, " | "), strings.Repeat(" --- |", 3+len(names)))
	for i, h := range hard {
		fmt.Fprintf(&b, "| %s | %s | %d |", h.name, h.text, h.width)
		for _, name := range names {
			fmt.Fprintf(&b, " %s |", made(is.Shown[name][i], h.text))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// casesTable counts the cases of the emulator's own table by what they are about.
func casesTable(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../session/screen/testdata/terminals.json")
	must.OK(t, err)
	var cases []struct{ Group, Ours, XtermJS, Tmux, Why string }
	must.OK(t, json.Unmarshal(data, &cases))
	type count struct {
		all, xtermjs, tmux, alone int
		why                       []string
	}
	var groups []string
	counts := map[string]*count{}
	for _, c := range cases {
		if counts[c.Group] == nil {
			counts[c.Group] = &count{}
			groups = append(groups, c.Group)
		}
		n := counts[c.Group]
		n.all++
		n.xtermjs += one(c.Ours == c.XtermJS)
		n.tmux += one(c.Ours == c.Tmux)
		n.alone += one(c.Ours != c.XtermJS && c.Ours != c.Tmux)
		if c.Why != "" && !slices.Contains(n.why, c.Why) {
			n.why = append(n.why, c.Why)
		}
	}
	var b bytes.Buffer
	b.WriteString("| about | cases | as xterm.js | as tmux | as neither | why |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, g := range groups {
		n := counts[g]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %s |\n", g, n.all, n.xtermjs, n.tmux, n.alone, strings.Join(n.why, "; "))
	}
	return b.String()
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
