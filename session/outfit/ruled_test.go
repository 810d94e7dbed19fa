package outfit

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/policy"
	"stepbox/policy/git"
	"stepbox/policy/policytest"
	"stepbox/runner"
	"stepbox/session/e2e/must"
)

func rulesOf(t *testing.T, text string) *policy.Policy {
	t.Helper()
	l, err := policytest.ParseLayer("user", "/c/policy.yaml", []byte(text))
	must.OK(t, err)
	return policy.Of(l)
}

func TestRulesHide(t *testing.T) {
	dir := project(t, "main.go", "sub/notes.private", "private/a", "deep/private/b", "node_modules/p/x.private", "conf/prod.yaml", "conf/dev.yaml", "real/key")
	for link, to := range map[string]string{"l.private": "main.go", "link": "real", "out.private": "/etc/passwd"} {
		must.OK(t, os.Symlink(to, filepath.Join(dir, link)))
	}
	must.OK(t, os.Link(filepath.Join(dir, "conf/prod.yaml"), filepath.Join(dir, "other.txt")))
	p := rulesOf(t, "files: {hide: ['*.private', /private, conf/prod.yaml, link/key, later/on.txt]}")
	got := look(dir, git.Person{}, maxSurveyed, p.Hide())
	slices.Sort(got.hidden)
	want := []string{"conf/prod.yaml", "l.private", "main.go", "node_modules/p/x.private", "other.txt", "out.private", "private", "real/key", "sub/notes.private"}
	if !slices.Equal(got.hidden, want) {
		t.Errorf("hidden are\n %q, want\n %q", got.hidden, want)
	}
	if !slices.Contains(got.toCome, "later/on.txt") || slices.Contains(got.toCome, "private") {
		t.Errorf("to come are %q", got.toCome)
	}
	fixed, err := got.fixed(dir, rulesOf(t, "files: {read-only: [conf, private, '*.go', deep/**, none]}").ReadOnly())
	slices.Sort(fixed)
	if want := []string{"conf", "deep"}; err != nil || !slices.Equal(fixed, want) {
		t.Errorf("protected are %q (%v), want %q", fixed, err, want)
	}
}

func TestTooManyAreProtected(t *testing.T) {
	var names []string
	for i := range maxFixed + 1 {
		names = append(names, fmt.Sprintf("a/%d.lock", i))
	}
	s := survey{}
	_, err := s.fixed(project(t, names...), rulesOf(t, "files: {read-only: ['*.lock']}").ReadOnly())
	if err == nil || !strings.Contains(err.Error(), "(/c/policy.yaml, line 1)") {
		t.Errorf("too many: %v", err)
	}
	if ruled(project(t, "a", "b", "c"), rulesOf(t, "files: {hide: ['*.x']}").Hide(), 2, nil) {
		t.Error("a large project is said to be searched")
	}
}

// What leads out of the sandbox, holds secrets or is the sandbox's own isn't mounted,
// whoever says so.
func TestRefusedMounts(t *testing.T) {
	home := t.TempDir()
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	for _, d := range []string{".ssh/keys", ".config/gh", "data/set", "src/project", "state"} {
		must.OK(t, os.MkdirAll(filepath.Join(home, d), 0o755))
	}
	l, err := net.Listen("unix", filepath.Join(home, "sock"))
	must.OK(t, err)
	defer l.Close()
	for link, to := range map[string]string{"innocent": ".ssh", "up": "/", "proc": "/proc/self"} {
		must.OK(t, os.Symlink(to, filepath.Join(home, link)))
	}
	private := []string{filepath.Join(home, "src/project"), filepath.Join(home, "state")}
	for path, want := range map[string]string{
		"~/data": "", "~/data/set": "", "~/.ssh": "never shown", "~/.ssh/keys": "never shown", "~/.config": "never shown", "~/innocent": "never shown", "~/innocent/keys": "never shown",
		"~/src": "never shown", "~/src/project": "never shown", "~/state": "never shown", "~/sock": "a socket", "~/none": "isn't there", "~/up": "whole system",
		"~/proc": "its own /proc", "/": "whole system", "/home": "whole system", "/etc": "its own /etc", "/etc/passwd": "its own /etc", "/run": "its own /run", "/dev/null": "neither", "/proc": "its own /proc", home: "home folder", filepath.Dir(home): "home folder",
	} {
		got := Refused(Expand(path, home), home, private...)
		if !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestMountsAndVariables(t *testing.T) {
	home := t.TempDir()
	for _, d := range []string{"data", "cache", "project", "state", ".ssh"} {
		must.OK(t, os.Mkdir(filepath.Join(home, d), 0o755))
	}
	file := filepath.Join(home, "file")
	must.OK(t, os.WriteFile(file, nil, 0o644))
	n := Needs{Workspace: filepath.Join(home, "project"), Home: home, DataDir: filepath.Join(home, "state"), StateDir: filepath.Join(home, "state/s"),
		Env: []string{"A=1", "B=2", "C=3", "PATH=/bin"}, Rules: rulesOf(t, "mounts: [{path: ~/data}, {path: ~/cache, write: true}]\nenvironment: {pass: [A, NONE], set: {B: other, D: 4}}\n")}
	got, err := mounts(n)
	want := []runner.Bind{{Source: home + "/data", Target: home + "/data"}, {Source: home + "/cache", Target: home + "/cache", Upper: upperOf(home+"/state/s", home+"/cache")}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v (%v), want %+v", got, err, want)
	}
	if env := variables([]string{"B=2", "PATH=/bin"}, n); !slices.Equal(env, []string{"PATH=/bin", "A=1", "B=other", "D=4"}) {
		t.Errorf("variables: %q", env)
	}
	for text, want := range map[string]string{
		"mounts: [{path: ~/.ssh}]":               "line 1): it is, holds or is in " + home + "/.ssh, which is never shown",
		"mounts: [{path: ~/file, write: true}]":  "only folders can",
		"mounts: [{path: ~/project}]":            "never shown",
		"version: 1\nmounts: [{path: ~/state}]":  "line 2)",
		"mounts:\n- path: ~/none\n  write: true": "it isn't there",
	} {
		n.Rules = rulesOf(t, text)
		if _, err := mounts(n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
