package outside

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// mostOpened bounds a text that is opened, in bytes.
const mostOpened = 32 << 20

// Text is something to read in a program of the person's.
type Text struct {
	Name string // what it is called; only what it ends in is kept, where that is harmless
	Line int    // to begin at, from 1; 0: its beginning
	io.Reader
}

// Program is an editor or a pager with a file of its own. Close removes that.
type Program struct {
	argv []string
	env  []string
	dir  string
}

// Open prepares a command of the person's to read a text, as a copy that nobody else has and
// that nothing is written back from. The command is a shell's, as git runs one.
func Open(command string, t Text) (p *Program, err error) {
	dir, err := os.MkdirTemp("", "stepbox-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for it: %w", err)
	}
	p = &Program{dir: dir, env: os.Environ()}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	file := filepath.Join(dir, harmless(t.Name))
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return nil, fmt.Errorf("cannot make a copy of it: %w", err)
	}
	n, err := io.Copy(f, io.LimitReader(t, mostOpened+1))
	if err = errors.Join(err, f.Close()); err == nil && n > mostOpened {
		err = fmt.Errorf("it is longer than %d MiB", mostOpened>>20)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a copy of it: %w", err)
	}
	args, env := arguments(command, file, t.Line)
	p.argv = append([]string{"/bin/sh", "-c", command + ` "$@"`, command}, args...)
	p.env = append(slices.DeleteFunc(p.env, func(v string) bool { // less runs what they say, by the file's name
		return strings.HasPrefix(v, "LESSOPEN=") || strings.HasPrefix(v, "LESSCLOSE=")
	}), env...)
	return p, nil
}

// known are endings that say what language a text is in, and have no editor do more than
// colour it: archives, and what is decoded or run to be shown, aren't among them.
var known = strings.Fields("bash c cc cfg conf cpp cs css csv diff ex go h hpp hs html ini java jl js json jsx kt lock log lua md mk ml patch php pl proto py rb rs rst scala sh sql svelte swift tf toml ts tsx txt vue xml yaml yml zig zsh")

// harmless is a file's name that no program takes for more than one: of what the agent
// called it, only a known ending is left, and letters.
func harmless(name string) string {
	name = filepath.Base(name)
	ending := strings.ToLower(strings.TrimPrefix(filepath.Ext(name), "."))
	stem := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, strings.TrimSuffix(name, filepath.Ext(name)))
	stem = strings.Trim(stem, "-_")
	if stem = stem[:min(len(stem), 60)]; stem == "" {
		stem = "file"
	}
	if !slices.Contains(known, ending) {
		ending = "txt"
	}
	return stem + "." + ending
}

// runners run what stands after them and their options.
var runners = strings.Fields("command doas env exec nice nohup setsid sudo time")

// arguments are those of at for what a command runs.
func arguments(command, file string, line int) (args, env []string) {
	run := false
	for _, word := range strings.Fields(command) {
		name := filepath.Base(strings.Trim(word, `'"`))
		if strings.Contains(word, "=") || slices.Contains(runners, name) {
			run = run || !strings.Contains(word, "=")
			continue
		}
		if args, env = at(name, file, line); len(args) > 1 || !run { // else it is an option of what runs it
			return args, env
		}
	}
	return []string{file}, nil
}

// at are the arguments by which a program opens a file at a line, and that keep it from
// obeying what stands in the file; and variables to the same end. One that isn't known gets
// the file alone.
func at(program, file string, line int) (args, env []string) {
	line = max(line, 1)
	plus := "+" + strconv.Itoa(line)
	if program == "vi" || program == "editor" { // whose it is, is told by what it leads to
		if path, err := exec.LookPath(program); err == nil {
			if real, err := filepath.EvalSymlinks(path); err == nil {
				program = filepath.Base(real)
			}
		}
	}
	switch program {
	case "vim", "nvim", "gvim", "view", "vimx", "vim.basic", "vim.tiny", "vim.nox", "vim.gtk3":
		// Modelines are off before the file is read, and after the person's own settings.
		return []string{"-R", "--cmd", "set modelines=0", "--cmd", "silent! autocmd BufReadPre * setlocal nomodeline", plus, file}, nil
	case "emacs":
		return []string{"--eval", "(setq enable-local-variables nil enable-local-eval nil enable-dir-local-variables nil)", plus, file}, nil
	case "nano":
		return []string{"-v", plus, file}, nil
	case "vi", "nvi", "emacsclient", "micro", "hx", "helix", "kak", "joe", "mg", "ne":
		return []string{plus, file}, nil
	case "code", "codium", "code-insiders", "cursor":
		return []string{"--wait", "--goto", file + ":" + strconv.Itoa(line)}, nil
	case "less":
		env := []string{"LESSSECURE=1"}
		if os.Getenv("LESS") == "" {
			env = append(env, "LESS=")
		}
		return []string{"-+F", "-+E", plus, file}, env // it stays, however short it is
	}
	return []string{file}, nil
}

// Run runs the program on a terminal until the person has left it. It has a process group of
// its own in the foreground: what ctrl+c sends is for it alone. Stopped, it goes on at once,
// for nobody would be there to tell it to.
func (p *Program) Run(in, out *os.File) error {
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, out
	cmd.Dir, cmd.Env = p.dir, append(p.env, "PWD="+p.dir) // a project may have settings that editors obey
	tty := int(in.Fd())
	ours, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	if err != nil {
		return fmt.Errorf("cannot open it: %w", err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: tty}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot open it: %w", err)
	}
	goOn(cmd.Process.Pid)
	err = cmd.Wait()
	signal.Ignore(syscall.SIGTTOU) // it stops who isn't in the foreground and wants to be
	defer signal.Reset(syscall.SIGTTOU)
	if back := unix.IoctlSetPointerInt(tty, unix.TIOCSPGRP, ours); back != nil {
		return fmt.Errorf("cannot have the terminal back: %w", back)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.argv[3], err)
	}
	return nil
}

// goOn waits for a process to end, and has its group go on whenever it is stopped.
func goOn(pid int) {
	for {
		var what unix.Siginfo
		switch err := unix.Waitid(unix.P_PID, pid, &what, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil); {
		case err == unix.EINTR:
			continue
		case err != nil || what.Code != cldStopped:
			return // it has ended, which Wait says more of
		}
		_ = unix.Waitid(unix.P_PID, pid, &what, unix.WSTOPPED, nil) // it is known now
		_ = syscall.Kill(-pid, syscall.SIGCONT)
	}
}

// cldStopped is why a waited-for child is told of: it was stopped (sigaction(2)).
const cldStopped = 5

// Close removes the copy.
func (p *Program) Close() { _ = os.RemoveAll(p.dir) }
