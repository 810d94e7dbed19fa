package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// person is one who uses the program: a home, a project and a record.
type person struct {
	t       testing.TB
	dir     string
	home    string
	project string
	temp    string
}

// newPerson makes a person. What they leave running when the test ends is ended,
// and nothing else of theirs may be left.
func newPerson(t testing.TB) *person {
	t.Helper()
	dir, err := os.MkdirTemp("", "p") // short: sockets have short names
	if err = errors.Join(err, listed()); err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, dir: dir}
	t.Cleanup(p.leave)
	for _, at := range []struct {
		field *string
		name  string
	}{{&p.home, "home"}, {&p.project, "project"}, {&p.temp, "tmp"}, {new(string), "run"}} {
		*at.field = filepath.Join(dir, at.name)
		must.OK(t, os.Mkdir(*at.field, 0o700))
	}
	// Who knows the screens: the tour that is for newcomers was seen.
	tour := filepath.Join(p.dir, "data", "screen", "tour")
	must.OK(t, os.MkdirAll(filepath.Dir(tour), 0o700))
	must.OK(t, os.WriteFile(tour, []byte("1"), 0o600))
	return p
}

// write makes a file in the project.
func (p *person) write(name, text string) {
	p.t.Helper()
	must.OK(p.t, os.WriteFile(filepath.Join(p.project, name), []byte(text), 0o755))
}

// command is the program as this person starts it.
func (p *person) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = p.project
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "TMPDIR=" + p.temp, "XDG_RUNTIME_DIR=" + filepath.Join(p.dir, "run"),
		"STEPBOX_DATA=" + filepath.Join(p.dir, "data"), "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/bash",
	}
	return cmd
}

// do runs the program without a terminal and returns what it printed.
func (p *person) do(args ...string) string {
	p.t.Helper()
	out, err := p.try(args...)
	if err != nil {
		p.t.Fatalf("stepbox %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func (p *person) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := p.command(ctx, args...)
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, words.String())
	}
	return out.String(), nil
}

// sessions is what the record lists.
func (p *person) sessions() []api.Session {
	p.t.Helper()
	var list []api.Session
	must.OK(p.t, json.Unmarshal([]byte(p.do("ls", "--json")), &list))
	return list
}

// shown is the session whose name is given, with what it did and asks.
type shown struct {
	api.Session
	List      []api.Action   `json:"action_list"`
	Questions []api.Question `json:"questions"`
}

func (p *person) show(name string) shown {
	p.t.Helper()
	var s shown
	must.OK(p.t, json.Unmarshal([]byte(p.do("show", "--json", name)), &s))
	return s
}

// holds fails the test unless the only thing held is the given action, and
// nothing of it was decided.
func (p *person) holds(name string, action int) {
	p.t.Helper()
	s := p.show(name)
	if len(s.Questions) != 1 || s.Questions[0].Action != action || !s.Questions[0].Open() {
		p.t.Fatalf("held are %+v, want only action %d", s.Questions, action)
	}
	for _, a := range s.List {
		if a.N == action && a.State != api.ActionHeld {
			p.t.Fatalf("action %d is %s", action, a.State)
		}
	}
}

// leave ends what this person left running, and looks for what stayed behind.
func (p *person) leave() {
	defer os.RemoveAll(p.dir)
	out, err := p.try("ls", "--json")
	var list []api.Session
	if err != nil || json.Unmarshal([]byte(out), &list) != nil {
		p.t.Errorf("the record can't be read any more: %v: %s", err, out)
	}
	for _, s := range list {
		if s.Live() {
			if _, err := p.try("kill", s.ID); err != nil {
				p.t.Logf("ending %s: %v", s.ID, err) // it may have ended meanwhile; what stays is found below
			}
		}
	}
	var left []string
	poll(func() bool { left = p.traces(list); return len(left) == 0 })
	if len(left) > 0 {
		p.t.Errorf("left behind:\n  %s", strings.Join(left, "\n  "))
	}
}

// poll waits until a condition of the kernel or of other processes holds, for
// which there is nothing to wait on.
func poll(cond func() bool) bool {
	for end := time.Now().Add(patience); ; {
		if cond() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		<-time.After(20 * time.Millisecond)
	}
}

// traces lists processes, cgroups, mounts and temporary files of this person's sessions.
func (p *person) traces(list []api.Session) []string {
	var out []string
	procs, _ := filepath.Glob("/proc/[0-9]*") // a pattern that is well-formed
	for _, proc := range procs {
		env, err := os.ReadFile(proc + "/environ") // it may be gone: then it isn't left
		if err != nil || !bytes.Contains(env, []byte(p.dir)) {
			continue
		}
		if state, err := os.ReadFile(proc + "/stat"); err != nil || bytes.Contains(state, []byte(") Z ")) {
			continue
		}
		name, _ := os.ReadFile(proc + "/cmdline")
		out = append(out, "process "+proc+" "+strings.ReplaceAll(string(name), "\x00", " "))
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, p.dir) {
			out = append(out, "mount "+strings.TrimSpace(line))
		}
	}
	for _, s := range list {
		groups, _ := filepath.Glob("/sys/fs/cgroup/*/*stepbox-" + s.ID + "*")
		more, _ := filepath.Glob("/sys/fs/cgroup/*stepbox-" + s.ID + "*")
		out = append(out, append(groups, more...)...)
	}
	files, _ := filepath.Glob(filepath.Join(p.temp, "*"))
	sockets, _ := filepath.Glob(filepath.Join(p.dir, "run", "*", "*"))
	out = append(out, append(files, sockets...)...)
	slices.Sort(out)
	return out
}
