package outside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"

	"stepbox/session/e2e/must"
)

// Of what an agent calls a file nothing is left that a program would obey, nor a path.
func TestHarmless(t *testing.T) {
	for in, want := range map[string]string{
		"src/parse.go": "parse.go", "notes.TXT": "notes.txt", "a b;$(x).py": "a_b___x.py", "../../etc/passwd": "passwd.txt",
		".vimrc": "file.txt", ".dir-locals.el": "dir-locals.txt", "-c:!sh.md": "c__sh.md", "x.tar.gz": "x_tar.txt", "x.zip": "x.txt",
		"": "file.txt", "/": "file.txt", "..": "file.txt", "名前.rs": "file.rs", "Makefile": "Makefile.txt", "a\x1b[2Jb\n.go": "a__2Jb.go",
		strings.Repeat("x", 300) + ".go": strings.Repeat("x", 60) + ".go", "x.go\x00.zip": "x_go.txt",
	} {
		if got := harmless(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// A stub of an editor or a pager gets the file at its line in the way that it knows, with what
// keeps it from obeying the file; the file is a copy that is there alone, and gone afterwards.
func TestOpen(t *testing.T) {
	const vim = "-R\n--cmd\nset modelines=0\n--cmd\nsilent! autocmd BufReadPre * setlocal nomodeline\n+7\nFILE"
	for _, tt := range []struct{ command, want string }{
		{"vim", vim},
		{"nvim -u x", "-u\nx\n" + vim},
		{"LANG=C nvim", vim},
		{"env LANG=C 'vim'", vim},
		{"nice -n 5 vim", vim},
		{"mine vim", "vim\nFILE"},
		{"nano", "-v\n+7\nFILE"},
		{"emacs -nw", "-nw\n--eval\n(setq enable-local-variables nil enable-local-eval nil enable-dir-local-variables nil)\n+7\nFILE"},
		{"hx", "+7\nFILE"},
		{"micro", "+7\nFILE"},
		{"code -n", "-n\n--wait\n--goto\nFILE:7"},
		{"less", "-+F\n-+E\n+7\nFILE"},
		{"mine 'a b'", "a b\nFILE"},
	} {
		t.Run(tt.command, func(t *testing.T) {
			bin, tmp := t.TempDir(), t.TempDir()
			t.Setenv("PATH", bin+":/usr/bin:/bin")
			t.Setenv("TMPDIR", tmp)
			t.Setenv("LESSOPEN", "|evil %s")
			out := filepath.Join(bin, "out")
			script := fmt.Sprintf("#!/bin/sh\nexec >%s\nprintf '%%s\\n' \"$@\"\nfor f; do :; done\nf=${f%%%%:7}\necho \"$(stat -c '%%a' \"$f\" .) $(cat \"$f\") $PWD $LESSOPEN\" >%s.more\n", out, out)
			for _, name := range strings.Fields(tt.command) {
				if name = strings.Trim(name, "'"); !strings.ContainsAny(name, "=-") && !slices.Contains(runners, name) {
					must.OK(t, os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755))
				}
			}
			if said := onTerminal(t, tt.command, ""); !strings.Contains(said, "back: <nil>") {
				t.Fatal(said)
			}
			mode, more, _ := strings.Cut(content(t, out+".more"), " package x ")
			dir, lessopen, _ := strings.Cut(more, " ")
			got := strings.ReplaceAll(strings.TrimSpace(content(t, out)), filepath.Join(dir, "b_c.go"), "FILE")
			if got != tt.want {
				t.Errorf("its arguments are\n%s\nwant\n%s", got, tt.want)
			}
			if mode != "400\n700" || filepath.Dir(dir) != tmp || lessopen != "\n" {
				t.Errorf("the file and its folder have the modes %q, in %q; LESSOPEN is %q", mode, dir, lessopen)
			}
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("left are %v (%v)", left, err)
			}
		})
	}
}

// A person's ctrl+c is the editor's alone, and ctrl+z has nobody to go on to: the screens are
// there again when it has ended, and not before.
func TestOpenHasTheTerminal(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	said := onTerminal(t, `trap "echo interrupted" INT; echo ready; read line; read line; echo "read $line"; exit 3 #`, "\x03\x1a\nlast\n")
	for _, words := range []string{"interrupted", "read last", "exit status 3"} {
		if !strings.Contains(said, words) {
			t.Errorf("%q isn't in %q", words, said)
		}
	}
}

// onTerminal opens a command by a process that leads a terminal, types something once that
// has printed "ready", and returns all that was printed.
func onTerminal(t *testing.T, command, typed string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), opens+"="+command)
	tty, err := pty.Start(cmd)
	must.OK(t, err)
	defer tty.Close()
	var said strings.Builder
	for buf := make([]byte, 1024); ; {
		n, err := tty.Read(buf)
		said.Write(buf[:n])
		if typed != "" && strings.Contains(said.String(), "ready") {
			if _, err := tty.WriteString(typed); err != nil {
				t.Fatal(err)
			}
			typed = ""
		}
		if err != nil { // it is gone
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, said.String())
	}
	return said.String()
}

func TestOpenRefuses(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	if _, err := Open("vi", Text{Name: "x", Reader: endless{}}); err == nil || !strings.Contains(err.Error(), "longer than 32 MiB") {
		t.Errorf("of what is endless it says %v", err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left are %v (%v)", left, err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
