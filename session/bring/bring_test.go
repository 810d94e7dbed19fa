package bring_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/bring"
	"stepbox/session/e2e/must"
	"stepbox/session/home"
)

const key = "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\n-----END OPENSSH " + "PRIVATE KEY-----\n"

var brings = policy.Brings{
	Texts: []string{".a/A.md", ".a/cmd/"}, At: map[string]string{"A_HOME": ".a"},
	Settings: []policy.BroughtSettings{
		{File: ".a/s.json", Own: []string{"trust"}, Hooks: []string{"hooks"}}, {File: ".a.json", Only: []string{"servers"}}, {File: ".a/c.toml"}, {File: ".a/d.yml"},
	},
}

// put writes files below a folder: links as "->TARGET", hard links as "=>TARGET", pipes as "|", executables as "#!".
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		p, text := filepath.Join(dir, name), files[name]
		must.OK(t, os.MkdirAll(filepath.Dir(p), 0o755))
		var err error
		to, link := strings.CutPrefix(text, "->")
		switch {
		case link:
			err = os.Symlink(strings.ReplaceAll(to, "HOME", dir), p)
		case strings.HasPrefix(text, "=>"):
			err = os.Link(filepath.Join(dir, text[2:]), p)
		case text == "|":
			err = unix.Mkfifo(p, 0o644)
		case text == "/":
			err = os.Mkdir(p, 0o755)
		case strings.HasPrefix(text, "#!"):
			err = os.WriteFile(p, []byte(text), 0o755)
		default:
			err = os.WriteFile(p, []byte(text), 0o644)
		}
		must.OK(t, err)
	}
}

// files are all below a folder: regular files with what is in them, * for executables.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if !d.Type().IsRegular() {
			out[rel] = d.Type().String()
			return nil
		}
		data, err := os.ReadFile(p)
		info, _ := d.Info()
		if out[rel] = string(data); info.Mode()&0o100 != 0 {
			out[rel] += "*"
		}
		return err
	})
	must.OK(t, err)
	return out
}

func all(t *testing.T, mine, theirs string, env ...string) *api.Brought {
	t.Helper()
	d, err := home.Open(theirs)
	must.OK(t, err)
	defer d.Close()
	return bring.All(bring.Needs{Home: mine, Workspace: filepath.Join(mine, "project"), Private: []string{filepath.Join(mine, "data")}, Env: env, Brings: brings, Into: d, Was: d})
}

func TestAll(t *testing.T) {
	for name, test := range map[string]struct {
		mine, had map[string]string // the person's home; the agent's
		want      map[string]string // the agent's after that
		line      string
	}{
		"nothing": {},
		"all": {mine: map[string]string{".a/A.md": "be nice", ".a/cmd/x.md": "x", ".a/cmd/d/run": "#!/bin/sh\n", ".a/s.json": `{"m":1}`, ".a.json": `{"servers":{},"me":1}`, ".a/c.toml": "a = 1\n", ".a/d.yml": "a: 1\n", ".gitconfig": "[user]\nname=Ada\n[push]\ndefault=x\n", ".config/git/ignore": "*.o\n", ".a/other": "x"},
			want: map[string]string{".a/A.md": "be nice", ".a/cmd/x.md": "x", ".a/cmd/d/run": "#!/bin/sh\n*", ".a/s.json": "{\n  \"m\": 1\n}\n", ".a.json": "{\n  \"servers\": {}\n}\n", ".a/c.toml": "a = 1\n", ".a/d.yml": "a: 1\n", ".gitconfig": "[user]\n\tname = \"Ada\"\n", ".config/git/ignore": "*.o\n"},
			line: "brought: git identity, git ignore, A.md, 2 cmds, s.json, .a.json (servers), c.toml, d.yml"},
		"the person's wins": {mine: map[string]string{".a/A.md": "mine", ".a/s.json": `{"m":1,"trust":"mine"}`, ".a.json": `{"servers":{"a":1}}`, ".gitconfig": "[user]\nname=Ada\n"},
			had:  map[string]string{".a/A.md": "evil", ".a/s.json": `{"hooks":1,"m":2,"trust":"own"}`, ".a.json": `{"servers":{"evil":1},"n":12345678901234567890}`, ".gitconfig": "[user]\nname=Evil\n[safe]\ndirectory=/x\n", ".a/own": "x"},
			want: map[string]string{".a/A.md": "mine", ".a/s.json": "{\n  \"m\": 1,\n  \"trust\": \"own\"\n}\n", ".a.json": "{\n  \"n\": 12345678901234567890,\n  \"servers\": {\n    \"a\": 1\n  }\n}\n", ".gitconfig": "[safe]\n\tdirectory = \"/x\"\n[user]\n\tname = \"Ada\"\n", ".a/own": "x"},
			line: "brought: git identity, A.md, s.json, .a.json (servers)"},
		"the agent's own can't be read": {mine: map[string]string{".a.json": `{"servers":{"a":1}}`}, had: map[string]string{".a.json": `{`}, want: map[string]string{".a.json": `{`}, line: "left out: 1 file · brought: nothing"},
		"links and pipes in its way": {mine: map[string]string{".a/A.md": "mine", ".a/cmd/x": "x", ".gitconfig": "[user]\nname=Ada\n"},
			had:  map[string]string{".a/A.md": "->/etc/passwd", ".a/cmd": "->/tmp", ".gitconfig": "|"},
			want: map[string]string{".a/A.md": "mine", ".a/cmd": "L---------", ".gitconfig": "[user]\n\tname = \"Ada\"\n"}, line: "left out: 1 file · brought: git identity, A.md"},
		"a folder in its way": {mine: map[string]string{".a/A.md": "mine"}, had: map[string]string{".a/A.md/x": "y"}, want: map[string]string{".a/A.md/x": "y"}, line: "left out: 1 file · brought: nothing"},

		// The person's links.
		"dotfiles":                     {mine: map[string]string{"dots/c.md": "mine", "dots/cmd/x": "x", ".a/A.md": "->../dots/c.md", ".a/cmd": "->HOME/dots/cmd"}, want: map[string]string{".a/A.md": "mine", ".a/cmd/x": "x"}, line: "brought: A.md, 1 cmd"},
		"a link to a key":              {mine: map[string]string{".ssh/id_ed25519": key, ".a/s.json": "->HOME/.ssh/id_ed25519", ".a/A.md": "->HOME/.ssh/id_ed25519"}, line: "left out: 2 files · brought: nothing"},
		"a link to a key over another": {mine: map[string]string{".ssh/id_ed25519": key, "k": "->.ssh", ".a/A.md": "->../k/id_ed25519"}, line: "left out: 1 file · brought: nothing"},
		"secrets that are links":       {mine: map[string]string{"dots/ssh/config": "x", ".ssh": "->dots/ssh", ".a/A.md": "->../dots/ssh/config"}, line: "left out: 1 file · brought: nothing"},
		"a link to the record":         {mine: map[string]string{"data/x": "x", ".a/A.md": "->../data/x"}, line: "left out: 1 file · brought: nothing"},
		"a link to nothing":            {mine: map[string]string{".a/A.md": "->nothing"}, line: "left out: 1 file · brought: nothing"},
		"a link to itself":             {mine: map[string]string{".a/A.md": "->A.md"}, line: "left out: 1 file · brought: nothing"},
		"a link to what isn't for all": {mine: map[string]string{".a/A.md": "->/etc/shadow"}, line: "left out: 1 file · brought: nothing"},
		"hard links to a key":          {mine: map[string]string{".K/k": key, ".a/A.md": "=>.K/k", ".a/s.json": "=>.K/k", ".a/cmd/x": "=>.K/k"}, line: "left out: 3 files · brought: nothing"},
		"a link to a device":           {mine: map[string]string{".a/A.md": "->/dev/zero", ".a/s.json": "->/dev/zero"}, line: "left out: 2 files · brought: nothing"},
		"links out of a folder":        {mine: map[string]string{".a/cmd/x": "->../../secretive", ".a/cmd/y": "->/etc/passwd", ".a/cmd/z": "->w", ".a/cmd/w": "w", ".a/cmd/d": "->.", "secretive": "s"}, want: map[string]string{".a/cmd/z": "w", ".a/cmd/w": "w"}, line: "left out: 3 links · brought: 2 cmds"},
		"pipes":                        {mine: map[string]string{".a/A.md": "|", ".a/s.json": "|", ".a/cmd/x": "|", ".gitconfig": "|"}, line: "left out: 1 setting of git, 3 files · brought: nothing"},
		"not folders and not files":    {mine: map[string]string{".a/A.md": "/", ".a/cmd": "x", ".a/s.json": "/"}, line: "left out: 3 files · brought: nothing"},
		"not valid":                    {mine: map[string]string{".a/s.json": "{", ".a/c.toml": "a", ".a/d.yml": "a: [", ".a.json": "\x00"}, line: "left out: 4 files · brought: nothing"},
		"too large":                    {mine: map[string]string{".a/A.md": strings.Repeat("x", 1<<20+1), ".a/s.json": `{"a":"` + strings.Repeat("x", 1<<18) + `"}`, ".a/d.yml": "a: " + strings.Repeat("x", 1<<16)}, line: "left out: 3 files · brought: nothing"},
		"names that tell":              {mine: map[string]string{".a/cmd/.env": "x", ".a/cmd/d/id_rsa": "x", ".a/cmd/.git/config": "x", ".a/cmd/.ssh/x": "x", ".a/cmd/node_modules/x": "x", ".a/cmd/x": "x"}, want: map[string]string{".a/cmd/x": "x"}, line: "left out: 3 tokens, 2 files · brought: 1 cmd"},
		"secrets in texts":             {mine: map[string]string{".a/A.md": "a " + key + "b", ".a/cmd/x": "password: " + `"hunter22"`, ".a/cmd/y": "\xff" + key}, want: map[string]string{".a/A.md": "a [redacted: private key]\nb", ".a/cmd/x": `password: "[redacted: value of a secret setting]"`}, line: "left out: 3 tokens · brought: A.md, 1 cmd"},
		"settings with all kinds":      {mine: map[string]string{".a/s.json": `{"hooks":{},"token":"x","m":1}`}, want: map[string]string{".a/s.json": "{\n  \"m\": 1\n}\n"}, line: "left out: 1 hook, 1 token · brought: s.json"},
	} {
		t.Run(name, func(t *testing.T) {
			mine, theirs := t.TempDir(), t.TempDir()
			put(t, mine, test.mine)
			put(t, theirs, test.had)
			before := files(t, mine)
			got := all(t, mine, theirs)
			if now := files(t, theirs); !maps.Equal(now, test.want) {
				t.Errorf("there are\n %q, want\n %q", now, test.want)
			}
			if got.Line() != test.line {
				t.Errorf("%q, want %q", got.Line(), test.line)
			}
			if !maps.Equal(files(t, mine), before) {
				t.Error("the person's home was written")
			}
			if t.Failed() {
				t.Logf("%+v", got)
			}
		})
	}
}

// Folders are where the person's variables say.
func TestElsewhere(t *testing.T) {
	mine, theirs := t.TempDir(), t.TempDir()
	put(t, mine, map[string]string{"x/A.md": "there", ".a/A.md": "here", "xdg/git/config": "[user]\nname=Ada\n", "xdg/git/ignore": "*.o\n"})
	all(t, mine, theirs, "A_HOME="+filepath.Join(mine, "x"), "XDG_CONFIG_HOME="+filepath.Join(mine, "xdg"))
	want := map[string]string{".a/A.md": "there", ".gitconfig": "[user]\n\tname = \"Ada\"\n", ".config/git/ignore": "*.o\n"}
	if got := files(t, theirs); !maps.Equal(got, want) {
		t.Errorf("there are %q, want %q", got, want)
	}
}

// Of what is much, some comes and the rest is told; what is the same isn't written again.
func TestBounds(t *testing.T) {
	mine, theirs := t.TempDir(), t.TempDir()
	many := map[string]string{".a/cmd/" + strings.Repeat("d/", 12) + "deep": "x"}
	for i := range 600 {
		many[fmt.Sprintf(".a/cmd/%03d", i)] = "x"
	}
	put(t, mine, many)
	got := all(t, mine, theirs)
	if n := len(files(t, theirs)); n != 500 || got.Line() != "left out: 1 file · brought: 500 cmds" {
		t.Errorf("%d files, %q %+v", n, got.Line(), got.Left)
	}
	info, _ := os.Stat(filepath.Join(theirs, ".a/cmd/000"))
	all(t, mine, theirs)
	if again, _ := os.Stat(filepath.Join(theirs, ".a/cmd/000")); !os.SameFile(info, again) {
		t.Error("what is the same was written again")
	}
	for i := range 100 {
		many[fmt.Sprintf(".a/cmd/%03d", i)] = strings.Repeat("x", 100<<10)
	}
	big, into := t.TempDir(), t.TempDir()
	put(t, big, many)
	all(t, big, into)
	sum := 0
	for _, text := range files(t, into) {
		sum += len(text)
	}
	if sum > 4<<20 || sum < 3<<20 {
		t.Errorf("%d bytes came along", sum)
	}
}
