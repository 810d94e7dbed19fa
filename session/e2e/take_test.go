package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
	"stepbox/session/screen"
)

// copies waits for the terminal to be told to fill its clipboard.
func (tm *terminal) copies(text string) {
	tm.t.Helper()
	want := "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\a"
	tm.until(fmt.Sprintf("%q is copied", text), func() (told bool) {
		tm.look(func(*screen.Screen) { told = strings.Contains(tm.raw.String(), want) })
		return told
	})
}

// drag drags the mouse as terminals tell it, from one place to another, both from 1.
func (tm *terminal) drag(fromX, fromY, toX, toY int) {
	tm.press(fmt.Sprintf("\x1b[<0;%d;%dM\x1b[<32;%d;%dM\x1b[<0;%d;%dm", fromX, fromY, toX, toY, toX, toY))
}

// A person takes out of a real session what is on the screen: by the mouse, by copy mode and
// by what is selected, through the terminal and a program; and reads a file in their editor.
func TestTakeOut(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("a.txt", "one\ntwo\n")
	p.do("run", "--mode", "watch", "--name", "taken", "--", "bash", "-c",
		`for i in $(seq 100); do echo row $i; done; sed -i s/two/three/ a.txt; printf 'widths 漢字 here\n'; printf 'x%.0s' $(seq 90); echo; echo '# vim: set ft=evil:' >> a.txt`)
	bin := filepath.Join(p.dir, "bin")
	must.OK(t, os.Mkdir(bin, 0o700))
	for name, script := range map[string]string{
		"xclip": `cat >"$0.in"; printf '%s\n' "$@" >"$0.argv"`,
		"vim":   `printf '%s\n' "$@" >"$0.argv"; for f; do :; done; cat "$f"; echo "the editor has it"; read -r line; echo "$line" >"$0.line"`,
	} {
		must.OK(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	read := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(bin, name)) // "" until it is there
		return string(b)
	}
	tm := p.start(120, 35, func(ctx context.Context) *exec.Cmd {
		cmd := p.command(ctx, "attach", "taken")
		cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "EDITOR=vim", "DISPLAY=:99")
		return cmd
	})
	tm.shows("row 100", "a.txt", "ENDED")
	at := func(words string) (x, y int) {
		for y, row := range tm.rows() {
			if before, _, ok := strings.Cut(row, words); ok {
				return len([]rune(before)) + 1, y + 1
			}
		}
		t.Fatalf("%q isn't on the screen\n%s", words, tm.text())
		return 0, 0
	}

	x, y := at("widths")
	tm.drag(x, y, x+9, y)
	tm.copies("widths 漢字")
	tm.shows("✓ copied 1 line")
	if in, argv := read("xclip.in"), read("xclip.argv"); in != "widths 漢字" || argv != "-selection\nclipboard\n-in\n" {
		t.Errorf("xclip got %q, with %q", in, argv)
	}
	tm.press(leader + "[")
	tm.shows("copy mode")
	tm.press("?row 3" + enter)
	tm.shows("of 11")
	tm.press("gg/row 42" + enter + "Vjy")
	tm.copies("row 42\nrow 43")
	tm.press(leader + "[?xxx" + enter + "V" + enter)
	tm.copies(strings.Repeat("x", 90)) // which the screen had wrapped

	tm.press("2C" + enter)
	tm.copies("a.txt")
	tm.press("e")
	tm.shows("the editor has it", "three")
	tm.press("typed\r")
	tm.shows("2 Changes", "row 100")
	if got := read("vim.line"); got != "typed\n" {
		t.Errorf("the editor read %q", got)
	}
	argv := strings.Split(strings.TrimSpace(read("vim.argv")), "\n")
	if n := len(argv); n < 3 || argv[0] != "-R" || argv[n-2] != "+2" || filepath.Base(argv[n-1]) != "a.txt" || !strings.HasPrefix(argv[n-1], p.temp) {
		t.Errorf("the editor was told %q", argv)
	}
	if left, err := filepath.Glob(filepath.Join(p.temp, "stepbox-*")); err != nil || len(left) > 0 {
		t.Errorf("left is %q (%v)", left, err)
	}
	tm.press("4GkC")
	tm.copies("seq 90")
	tm.press("kC" + enter)
	tm.copies("sed -i s/two/three/ a.txt")

	out := exec.Command("git", "apply", "-")
	out.Dir = p.project
	patch := p.do("diff", "taken")
	out.Stdin = strings.NewReader(patch)
	tm.press("2C")
	tm.shows("copy diff")
	tm.press("diff" + enter)
	tm.copies(patch)
	if said, err := out.CombinedOutput(); err != nil {
		t.Errorf("git apply: %v: %s", err, said)
	}
}

// Copy mode goes to where actions began, in a live session.
func TestActionsInScrollback(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	tm := p.open(120, 35, "run", "--mode", "watch", "--", "bash", "-c", "seq 60; echo done one; /bin/ls -d /; seq 61 90; echo done all; read -r x; echo got $x")
	tm.shows("done all", "seq 61 90")
	tm.press(leader + "[gg]")
	tm.shows("#2  copy mode  62/")
	tm.press("]")
	tm.shows("#3  copy mode  63/")
	tm.press("[[")
	tm.shows("#1  copy mode  1/")
	tm.press("q" + leader + "4GkB")
	tm.shows("#2  copy mode  62/")
	tm.press("q")
	tm.gone("copy mode")
	tm.tick()
	tm.press("words\r")
	tm.shows("got words", "ENDED")
}
