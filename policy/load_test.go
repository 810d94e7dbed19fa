package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"stepbox/session/e2e/must"
)

// folderOf reads files from memory.
func folderOf(files map[string]string) func(string) ([]byte, error) {
	return func(file string) ([]byte, error) {
		s, ok := files[file]
		if !ok {
			return nil, fs.ErrNotExist
		}
		return []byte(s), nil
	}
}

func TestLoad(t *testing.T) {
	files := map[string]string{
		"/c/policy.yaml":      "version: 1\ninclude: [team/rules.yaml, /shared.yaml]\ncommands:\n  - allow: make\nask: {on: deny}\nchecks: [go vet ./...]\n",
		"/c/team/rules.yaml":  "include: ../common.yaml\ncommands:\n  - ask: make\n    why: x\nfiles:\n  hide: ['*.pem']\n",
		"/c/common.yaml":      "network:\n  - deny: example.org\nask: {on: wait, timeout: 5m}\n",
		"/shared.yaml":        "include: /c/common.yaml\nlimits: {memory: 1G}\nenvironment: {pass: [A], set: {B: 1}}\nmounts: [{path: ~/x}]\n",
		"/c/.unrelated.yaml~": "",
	}
	l, err := Load("user", "/c/policy.yaml", folderOf(files))
	must.OK(t, err)
	if want := []string{"/c/policy.yaml", "/c/team/rules.yaml", "/c/common.yaml", "/shared.yaml"}; !slices.Equal(l.Sources, want) {
		t.Errorf("sources %q, want %q", l.Sources, want)
	}
	if len(l.Rules) != 2 || l.Rules[0].File != "/c/policy.yaml" || l.Rules[1].File != "/c/team/rules.yaml" || l.Rules[1].Line != 3 {
		t.Errorf("rules %+v", l.Rules)
	}
	j := asking().With(l).Command(Command{Argv: []string{"make", "x"}})
	if j.Verdict != Ask || j.File != "/c/team/rules.yaml" || j.Line != 3 {
		t.Errorf("%+v", j)
	}
	if len(l.Network) != 1 || len(l.Hide) != 1 || len(l.Limits) != 1 || len(l.Pass) != 1 || len(l.Set) != 1 || len(l.Mounts) != 1 || len(l.Checks) != 1 || l.Mounts[0].File != "/shared.yaml" {
		t.Errorf("%+v", l)
	}
	if a := asking().With(l).Asking(); len(a) != 2 || a[0].On != "deny" || a[0].File != "/c/policy.yaml" {
		t.Errorf("asking %+v: what a file includes counts beside its own word", a)
	}
	// Every byte of every file counts, and so does where they are.
	sum := l.Sum
	for name, more := range map[string]string{"/c/policy.yaml": "#", "/c/common.yaml": " ", "/shared.yaml": "\n"} {
		changed := map[string]string{}
		for n, s := range files {
			changed[n] = s
		}
		changed[name] += more
		if l, err := Load("user", "/c/policy.yaml", folderOf(changed)); err != nil || l.Sum == sum {
			t.Errorf("another byte in %s is the same sum (%v)", name, err)
		}
	}
	moved := map[string]string{"/d/policy.yaml": "version: 1\n"}
	a, _ := Load("user", "/d/policy.yaml", folderOf(moved))
	moved["/e/policy.yaml"] = moved["/d/policy.yaml"]
	b, _ := Load("user", "/e/policy.yaml", folderOf(moved))
	if a.Sum != b.Sum || a.Sum == "" {
		t.Errorf("the same file elsewhere has another sum: %q, %q", a.Sum, b.Sum)
	}
}

func TestLoadRefuses(t *testing.T) {
	deep, many := map[string]string{}, map[string]string{}
	var names []string
	for i := range 20 {
		deep[fmt.Sprintf("/%d.yaml", i)] = fmt.Sprintf("include: %d.yaml\n", i+1)
	}
	for i := range 100 {
		names = append(names, fmt.Sprintf("m%d.yaml", i))
		many["/"+names[i]] = ""
	}
	many["/0.yaml"] = "include: [" + strings.Join(names, ", ") + "]\n"
	half := strings.Repeat("# "+strings.Repeat("x", 98)+"\n", 6_000)
	for what, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"a cycle":   {map[string]string{"/0.yaml": "include: b.yaml\n", "/b.yaml": "version: 1\ninclude:\n  - 0.yaml\n"}, []string{"/b.yaml:3:5: cannot include /0.yaml → /b.yaml → /0.yaml: it is being read already: files include one another"}},
		"itself":    {map[string]string{"/0.yaml": "include: ./0.yaml\n"}, []string{"/0.yaml:1:10: cannot include /0.yaml → /0.yaml: it is being read"}},
		"depth":     {deep, []string{"/8.yaml:1:10: cannot include /0.yaml → /1.yaml", "more than 8 times"}},
		"number":    {many, []string{"more than 64 files"}},
		"size":      {map[string]string{"/0.yaml": "include: b.yaml\n" + half, "/b.yaml": half}, []string{"/0.yaml:1:10: cannot include /0.yaml → /b.yaml: files of rules have at most 1048576 bytes"}},
		"not there": {map[string]string{"/0.yaml": "include: b.yaml\n"}, []string{"/0.yaml:1:10: cannot include /0.yaml → /b.yaml: file does not exist"}},
		"home":      {map[string]string{"/0.yaml": "include: ~/b.yaml\n"}, []string{`/0.yaml:1:10: cannot include "~/b.yaml": name a file`}},
		"both":      {map[string]string{"/0.yaml": "include: b.yaml\nlimits: {cpus: x}\n", "/b.yaml": "x: 1\n"}, []string{"/0.yaml:2:16:"}},
		"within":    {map[string]string{"/0.yaml": "include: b.yaml\n", "/b.yaml": "x: 1\n"}, []string{`/b.yaml:1:1: there is no key "x"`}},
		"none":      {nil, []string{"/0.yaml: file does not exist"}},
	} {
		l, err := Load("user", "/0.yaml", folderOf(c.files))
		var all Problems
		if !errors.As(err, &all) {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", what, err, want)
			}
		}
		if len(l.Rules) > 0 || l.File != "/0.yaml" || len(l.Sources) == 0 || l.Sum == "" {
			t.Errorf("%s: what is left is %+v", what, l)
		}
	}
	if _, err := Load("user", "/none", folderOf(nil)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v doesn't say that there is none", err)
	}
}

// What nobody confirmed can only take away.
func TestTightening(t *testing.T) {
	l := layer(t, "project", `
commands:
  - deny: rm
  - allow: curl *
    children: allow
  - ask: make
network:
  - allow: example.org
  - deny: example.net
  - ask: example.com
files: {hide: [a], read-only: [b], review: [c]}
limits: {memory: 1G, wall-time: 1h}
environment: {pass: [AWS_SECRET_ACCESS_KEY], set: {A: b}}
mounts: [{path: /srv}]
ask: {on: wait, timeout: 24h}
checks: [make]
`)
	got := l.Tightening()
	if len(got.Rules) != 2 || got.Rules[0].Verdict != Deny || got.Rules[1].Verdict != Ask || len(got.Network) != 2 || got.Network[0].Verdict != Deny {
		t.Errorf("rules %+v, %+v", got.Rules, got.Network)
	}
	if len(got.Hide)+len(got.ReadOnly)+len(got.Review) != 3 || len(got.Limits) != 2 || len(got.Asking) != 1 {
		t.Errorf("%+v", got)
	}
	if len(got.Pass)+len(got.Set)+len(got.Mounts)+len(got.Checks) != 0 {
		t.Errorf("it loosens: %+v", got)
	}
	if !l.Loosens() || got.Loosens() {
		t.Errorf("it loosens: %v, and when tightened: %v", l.Loosens(), got.Loosens())
	}
}

func TestMerge(t *testing.T) {
	p := asking().With(
		layer(t, "user", "files: {hide: [a]}\nlimits: {memory: 1G, cpus: 2}\nenvironment: {pass: [A, B], set: {C: user, D: user}}\nmounts: [{path: /a}, {path: /b, write: true}]\nask: {on: deny, timeout: 5m}\n"),
		layer(t, "project", "files: {hide: [b]}\nlimits: {memory: 2G, cpus: 0.5}\nenvironment: {pass: [B], set: {C: project}}\nmounts: [{path: /a, write: true}, {path: /b, write: true}]\nask: {on: wait}\n"),
	)
	if h := p.Hide(); len(h) != 2 || h[0].Glob != "b" {
		t.Errorf("hidden: %+v", h)
	}
	for name, want := range map[string]float64{"memory": 1 << 30, "cpus": 0.5} {
		if l, ok := p.Limit(name); !ok || l.Amount != want {
			t.Errorf("%s: %v, want %v", name, l.Amount, want)
		}
	}
	if _, ok := p.Limit("pids"); ok {
		t.Error("there is a limit that nobody set")
	}
	pass, set := p.Variables()
	if len(pass) != 2 || len(set) != 2 || set[0].Value != "project" || set[1].Value != "user" {
		t.Errorf("passing %+v, set %+v", pass, set)
	}
	if m := p.Mounts(); len(m) != 2 || m[0].Write || !m[1].Write {
		t.Errorf("mounts %+v", m)
	}
	if a := p.Asking(); len(a) != 2 || a[0].On != "wait" || a[1].On != "deny" || a[1].Timeout != 5*time.Minute || a[1].File != "user.yaml" {
		t.Errorf("asking: %+v", a)
	}
}

func TestFileRule(t *testing.T) {
	for _, c := range []struct {
		glob       string
		match, not []string
	}{
		{"*.pem", []string{"a.pem", "x/y/a.pem", "x.pem/in"}, []string{"a.pem.txt", "pem"}},
		{"/a", []string{"a", "a/b"}, []string{"x/a", "ab"}},
		{"x/*.go", []string{"x/a.go"}, []string{"x/y/a.go", "y/x/a.go"}},
		{"x/**", []string{"x/a", "x/y/z", "x"}, []string{"y/x/a"}},
		{".github/", []string{".github/workflows/a.yml", "sub/.github"}, []string{"github"}},
		{"**/gen/*.{go,ts}", []string{"gen/a.go", "x/gen/b.ts"}, []string{"gen/a.py"}},
	} {
		r, err := parseFile(c.glob)
		must.OK(t, err)
		for _, s := range c.match {
			if !r.Match(s) {
				t.Errorf("%s isn't about %s", c.glob, s)
			}
		}
		for _, s := range c.not {
			if r.Match(s) {
				t.Errorf("%s is about %s", c.glob, s)
			}
		}
	}
}

// A rule that allows holds only where the command was started, others wherever it may be.
func TestIn(t *testing.T) {
	p := asking().With(layer(t, "user", `
commands:
  - allow: rm -rf build
    in: services
  - deny: make deploy
    in: [services/*, ~/scratch]
  - ask: ls
    in: .
`))
	for _, c := range []struct {
		cwd, script string
		want        Verdict
	}{
		{"/h/p/services", "rm -rf build", Allow},
		{"/h/p/services/api", "rm -rf build", Allow},
		{"/h/p/services/api", "make deploy", Deny},
		{"/h/p/services", "make deploy", Allow},
		{"/h/p/services", "cd api && make deploy", Deny},
		{"/h/p", "cd services/api; make deploy", Deny},
		{"/h/p", "cd $X; make deploy", Deny},
		{"", "make deploy", Deny},
		{"/h/scratch/x", "make deploy", Deny},
		{"/h/p", "ls", Ask},
		{"/h", "ls", Allow},
		{"/h/p2", "ls", Allow},
	} {
		j := p.Command(Command{Argv: []string{"sh", "-c", c.script}, Cwd: c.cwd, Project: "/h/p", Home: "/h"})
		if j.Verdict != c.want {
			t.Errorf("%s in %q: %s, want %s\n%s", c.script, c.cwd, j.Verdict, c.want, j.Explain())
		}
	}
	// What is asked about elsewhere isn't allowed because of where a script goes.
	q := asking().With(layer(t, "user", "commands:\n  - allow: git push\n    in: services\n"))
	for cwd, want := range map[string]Verdict{"/h/p/services": Allow, "/h/p": Ask, "": Ask} {
		if j := q.Command(Command{Argv: []string{"git", "push"}, Cwd: cwd, Project: "/h/p", Home: "/h"}); j.Verdict != want {
			t.Errorf("git push in %q: %s, want %s", cwd, j.Verdict, want)
		}
	}
	if j := q.Command(Command{Argv: []string{"sh", "-c", "cd services && git push"}, Cwd: "/h/p", Project: "/h/p", Home: "/h"}); j.Verdict != Ask {
		t.Errorf("a script goes where it is allowed: %s", j.Verdict)
	}
}

// Escapes in quotes make no characters that the file doesn't show.
func TestEscapesAreSeen(t *testing.T) {
	for text, good := range map[string]bool{`x\0y`: false, `x\u200by`: false, `x\x1b[2K`: false, `x\u202ey`: false, `x\ry`: false, `x\ay`: false, `x \\ \"y\"`: true, `x\u00e9`: true} {
		for _, in := range []string{"commands:\n  - allow: \"%s\"\n", "commands: [{allow: x, why: \"%s\"}]\n", "limits: {\"%s\": 1}\n"} {
			_, err := ParseLayer("test", "test.yaml", []byte(strings.Replace(in, "%s", text, 1)))
			if hidden := err != nil && strings.Contains(err.Error(), "invisible"); hidden == good {
				t.Errorf("%s in %s: %v", text, in, err)
			}
		}
	}
}
