package outside

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"stepbox/session/e2e/must"
)

// opens is the variable that has this program open a text with a command.
const opens = "OUTSIDE_OPENS"

func TestMain(m *testing.M) {
	if command := os.Getenv(opens); command != "" {
		p, err := Open(command, Text{Name: "a/b c.go", Line: 7, Reader: strings.NewReader("package x")})
		if err == nil {
			err = p.Run(os.Stdin, os.Stdout)
			p.Close()
		}
		fmt.Println("back:", err)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// cat is found before the PATH is one of stubs alone: a desktop has clipboard programs.
var cat, _ = exec.LookPath("cat")

// stub puts a program on the PATH that writes its arguments and its input into files.
func stub(t *testing.T, dir, name string) {
	t.Helper()
	script := "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$0.argv\"\nexec " + cat + " >\"$0.in\"\n"
	must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755))
}

func content(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	must.OK(t, err)
	return string(b)
}

// The clipboard's program is the first that is there and whose display is; what is copied
// is its input, and never in its arguments.
func TestCopier(t *testing.T) {
	const text = "rm -rf / # ünï\n$(true)"
	for _, tt := range []struct {
		name    string
		there   []string
		env     string // NAME=value
		setting string
		by      string
		in      string
	}{
		{"wayland", []string{"wl-copy", "xclip"}, "WAYLAND_DISPLAY=wayland-0", "", "wl-copy", text},
		{"x11", []string{"wl-copy", "xclip", "xsel"}, "DISPLAY=:0", "auto", "xclip", text},
		{"x11 with xsel alone", []string{"xsel"}, "DISPLAY=:0", "auto", "xsel", text},
		{"wsl", []string{"clip.exe"}, "WSL_DISTRO_NAME=Debian", "auto", "clip.exe", ""},
		{"tmux", []string{"tmux", "xclip"}, "TMUX=/tmp/x,1,0", "auto", "tmux", text},
		{"no display", []string{"wl-copy", "xclip", "xsel", "clip.exe"}, "", "auto", "", ""},
		{"no program", nil, "DISPLAY=:0", "auto", "", ""},
		{"by the terminal", []string{"xclip"}, "DISPLAY=:0", "osc52", "", ""},
		{"by nothing", []string{"xclip"}, "DISPLAY=:0", "none", "", ""},
		{"by a command", []string{"mine", "xclip"}, "DISPLAY=:0", "mine -a 'b c'", "mine -a 'b c'", text},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			for _, name := range tt.there {
				stub(t, dir, name)
			}
			key, value, _ := strings.Cut(tt.env, "=")
			by, err := Copier(func(name string) string {
				if name == key {
					return value
				}
				return ""
			})(t.Context(), tt.setting, text)
			if err != nil || by != tt.by {
				t.Fatalf("by %q (%v), want %q", by, err, tt.by)
			}
			if tt.in != "" {
				program := filepath.Join(dir, strings.Fields(by)[0])
				if got := content(t, program+".in"); got != tt.in {
					t.Errorf("its input is %q", got)
				}
				if argv := content(t, program+".argv"); strings.Contains(argv, "rm") {
					t.Errorf("its arguments are %q", argv)
				}
			}
			if tt.by == "clip.exe" {
				if got := content(t, filepath.Join(dir, "clip.exe.in")); !strings.HasPrefix(got, "\xff\xfer\x00m\x00") || !strings.Contains(got, "\xfc\x00") {
					t.Errorf("its input is %q", got)
				}
			}
		})
	}
}

func TestCopierFails(t *testing.T) {
	if _, err := Copier(os.Getenv)(t.Context(), "exit 3", "x"); err == nil || !strings.Contains(err.Error(), "exit 3 failed") {
		t.Errorf("it says %v", err)
	}
}
