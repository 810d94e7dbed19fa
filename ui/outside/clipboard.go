// Package outside runs the person's own programs for the screens: what fills their clipboard,
// their editor and their pager. What it hands to them comes out of a sandbox, so it is never
// a part of what is run: a text goes in by standard input, a file has a name of ours in a
// folder of ours.
//
// Its functions may be called from any goroutine and block until the program has ended.
package outside

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode/utf16"
)

// How a person's clipboard is filled; anything else is a command of theirs.
const (
	Auto  = "auto"  // by the terminal, and by a program that is there
	OSC52 = "osc52" // by the terminal alone
	None  = "none"
)

// copyTime bounds a program that fills the clipboard. Those that go on in the background
// to serve it have let go of us by then.
const copyTime = 5 * time.Second

// tool is a program that fills the clipboard, where one of the variables is set.
type tool struct {
	where []string
	argv  []string
	utf16 bool // it takes that, and no other encoding
}

var tools = []tool{
	{where: []string{"WAYLAND_DISPLAY"}, argv: []string{"wl-copy"}},
	{where: []string{"DISPLAY"}, argv: []string{"xclip", "-selection", "clipboard", "-in"}},
	{where: []string{"DISPLAY"}, argv: []string{"xsel", "--clipboard", "--input"}},
	{where: []string{"WSL_INTEROP", "WSL_DISTRO_NAME"}, argv: []string{"clip.exe"}, utf16: true},
	// By its defaults it drops what a program in it copies by OSC 52, and hands on what -w gives it.
	{where: []string{"TMUX"}, argv: []string{"tmux", "load-buffer", "-w", "-"}},
}

// find is the tool for an environment, with the program's path.
func find(getenv func(string) string) (tool, bool) {
	for _, t := range tools {
		for _, name := range t.where {
			if getenv(name) == "" {
				continue
			}
			if path, err := exec.LookPath(t.argv[0]); err == nil {
				return tool{argv: append([]string{path}, t.argv[1:]...), utf16: t.utf16}, true
			}
		}
	}
	return tool{}, false
}

// Copier gives what fills the clipboard of whoever has this environment: by the setting's
// command, or the first tool that there is. It names the program, "" where there is none.
func Copier(getenv func(string) string) func(ctx context.Context, setting, text string) (by string, err error) {
	return func(ctx context.Context, setting, text string) (string, error) {
		switch setting = cmp.Or(setting, Auto); setting {
		case OSC52, None:
			return "", nil
		case Auto:
			t, ok := find(getenv)
			if !ok {
				return "", nil
			}
			if t.utf16 {
				text = toUTF16(text)
			}
			by := t.argv[0][strings.LastIndexByte(t.argv[0], '/')+1:]
			return by, feed(ctx, by, text, t.argv)
		}
		return setting, feed(ctx, setting, text, []string{"/bin/sh", "-c", setting}) // as git runs a pager
	}
}

// feed runs a program with a text as its input. Its output is nobody's: what it leaves in
// the background may hold that open for ever.
func feed(ctx context.Context, name, text string, argv []string) error {
	ctx, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = strings.NewReader(text)
	err := Whole(cmd).Run()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s took too long", name)
	case errors.Is(err, exec.ErrWaitDelay):
		return nil
	case err != nil:
		return fmt.Errorf("%s failed: %w", name, err)
	}
	return nil
}

// Whole has a command's end by its context be that of all that it started.
func Whole(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// toUTF16 is a text in the encoding of Windows, with the mark that says so.
func toUTF16(text string) string {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(text)) {
		out = binary.LittleEndian.AppendUint16(out, u)
	}
	return string(out)
}
