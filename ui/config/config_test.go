package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/ui/keys"
)

// loaded is what a file and variables make.
func loaded(t *testing.T, text string, env ...string) *Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	return Load(with(append(env, "STEPBOX_CONFIG="+file)...))
}

func with(env ...string) func(string) string {
	return func(name string) string {
		for _, e := range env {
			if k, v, _ := strings.Cut(e, "="); k == name {
				return v
			}
		}
		return ""
	}
}

func warnings(c *Config) string {
	var out []string
	for _, w := range c.Warnings {
		out = append(out, strings.TrimPrefix(w.String(), filepath.Dir(c.File)+"/"))
	}
	return strings.Join(out, "\n")
}

func TestDefaultsAreRight(t *testing.T) {
	c := Load(with())
	if len(c.Warnings) > 0 || c.Mode != api.ModePolicy || !c.Notify.Bell || c.Memory != "4G" || c.Pids != 2048 || c.Keys == nil || c.File != "" {
		t.Errorf("%+v", c)
	}
	for _, s := range Settings {
		if s.Default != "" {
			if err := s.give(c, s.Default); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
	}
	if c := loaded(t, strings.ReplaceAll(Template(), "#", "")); warnings(c) == "" {
		t.Error("prose is taken for settings")
	}
	var uncommented strings.Builder
	for line := range strings.Lines(Template()) {
		if rest, ok := strings.CutPrefix(line, "#"); ok && rest[0] != ' ' || strings.HasPrefix(line, "#  ") {
			uncommented.WriteString(rest)
		}
	}
	if c := loaded(t, uncommented.String()); warnings(c) != "" && !strings.Contains(warnings(c), `n is taken in "changes"`) {
		t.Errorf("the template isn't right: %s\n%s", warnings(c), uncommented.String())
	}
}

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name, text string
		env        []string
		warns      string // all of it, or a part after ~
		holds      func(c *Config) bool
	}{
		{"nothing", "", nil, "", func(c *Config) bool { return c.Theme == "auto" }},
		{"comments only", "# theme: dark\n", nil, "", func(c *Config) bool { return c.Theme == "auto" }},
		{"all kinds", "theme: light\nmode: step\non-ask: deny\nask-timeout: 10m\nlimits: {memory: 1G, cpus: 1.5, pids: 0, wall-time: 2h}\nnotify:\n  osc: 9\n  bell: false\n  command: [notify-send, -u, low]\n", nil, "", func(c *Config) bool {
			return c.Theme == "light" && c.Mode == "step" && c.Asking == api.Asking{On: "deny", Timeout: 10 * time.Minute} && c.Memory == "1G" && c.CPUs == 1.5 &&
				c.Pids == 0 && c.WallTime == 2*time.Hour && c.Notify.OSC == "9" && !c.Notify.Bell && len(c.Notify.Command) == 3
		}},
		{"one line is wrong", "theme: light\nmode: fast\neditor: nano\n", nil, `c.yaml:2:1: mode: "fast" isn't right (use step, policy or watch); policy holds`, func(c *Config) bool { return c.Theme == "light" && c.Mode == "policy" && c.Editor == "nano" }},
		{"no such theme", "theme: neon\nmode: watch\n", nil, "~theme: \"neon\" isn't right (there is no such theme; use auto, contrast, dark, deuteranopia, deuteranopia-light, light, plain, terminal, terminal-light, tritanopia, tritanopia-light, or write ", func(c *Config) bool { return c.Theme == "auto" && c.Mode == "watch" }},
		{"unknown", "them: light\nmode: watch\nlimits:\n  memroy: 1G\n", nil, "c.yaml:1:1: there is no setting \"them\"; is it \"theme\"?\nc.yaml:4:3: there is no setting \"limits.memroy\"; is it \"limits.memory\"?", func(c *Config) bool { return c.Mode == "watch" }},
		{"twice", "mode: watch\nmode: step\n", nil, "c.yaml:2:1: mode stands twice: line 1 holds", func(c *Config) bool { return c.Mode == "watch" }},
		{"no YAML", "theme: light\nlimits: [\nmode: watch\n", nil, "~can't be read as YAML", func(c *Config) bool { return c.Theme == "light" }},
		{"a tab", "theme: light\nlimits:\n\tmemory: 1G\nmode: watch\n", nil, "~can't be read as YAML", func(c *Config) bool { return c.Theme == "light" && c.Mode == "watch" }},
		{"a list", "- theme\n", nil, "~settings are expected here", func(c *Config) bool { return c.Theme == "auto" }},
		{"text", "theme", nil, "~settings are expected here", func(c *Config) bool { return c.Theme == "auto" }},
		{"a section without one", "limits: 4G\nmode: watch\n", nil, "~settings are expected here", func(c *Config) bool { return c.Mode == "watch" && c.Memory == "4G" }},
		{"anchors", "theme: &a light\nmode: *a\neditor: !!str nano\npager: cat\n", nil, "~c.yaml:1:1: theme: anchors, aliases and tags aren't taken", func(c *Config) bool { return c.Theme == "auto" && c.Editor == "vi" && c.Pager == "cat" }},
		{"nothing said", "theme:\nmode: watch\n", nil, "~c.yaml:1:1: theme: nothing is said", func(c *Config) bool { return c.Theme == "auto" && c.Mode == "watch" }},
		{"two documents", "theme: dark\n---\ntheme: light\n", nil, "~a second document", func(c *Config) bool { return c.Theme == "dark" }},
		{"escapes", "theme: \"\\e[31mred\"\n", nil, "~isn't right", func(c *Config) bool { return !strings.Contains(warnings(c), "\x1b") }},
		{"too little memory", "limits:\n  memory: 1M\n", nil, "~too little for a sandbox", func(c *Config) bool { return c.Memory == "4G" }},
		{"not a number", "limits: {cpus: .nan, pids: -1, disk: x}\nask-timeout: -1s\n", nil, "~limits.cpus", func(c *Config) bool {
			return c.CPUs == 0 && c.Pids == 2048 && c.Disk == "20G" && c.Asking.Timeout == 0 && len(c.Warnings) == 4
		}},
		{"variables go over", "theme: light\npager: cat\neditor: nano\n", []string{"NO_COLOR=1", "STEPBOX_PAGER=more", "PAGER=pg", "EDITOR=ed"}, "", func(c *Config) bool { return c.Theme == "plain" && c.Pager == "more" && c.Editor == "nano" }},
		{"variables below", "", []string{"PAGER=pg", "EDITOR=ed", "VISUAL=vis"}, "", func(c *Config) bool { return c.Pager == "pg" && c.Editor == "vis" }},
		{"keys", "leader: ctrl+g\nkeys:\n  approve: f5\n  deny: [x, f6]\n  changes:\n    \"]\": Q\n", nil, "", func(c *Config) bool {
			keys.Use(c.Keys)
			defer keys.Use(keys.Usual())
			return keys.LeaderKey() == "ctrl+g" && len(c.bound) == 3
		}},
		{"keys that clash", "keys:\n  approve: d\n  nothing: x\n  foo: {a: b}\n  deny: esc\n", nil, `~c.yaml:2:3: keys: approve: d is taken in "inbox"`, func(c *Config) bool { return len(c.Warnings) == 4 && len(c.bound) == 0 }},
		{"a leader that is needed", "leader: enter\n", nil, "~needed for typing", func(c *Config) bool { return c.values["leader"].Value == "ctrl+]" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := loaded(t, c.text, c.env...)
			words := warnings(got)
			if part, ok := strings.CutPrefix(c.warns, "~"); ok && !strings.Contains(words, part) || !ok && words != c.warns {
				t.Errorf("it warns:\n%s\nnot:\n%s", words, c.warns)
			}
			if !c.holds(got) {
				t.Errorf("it is %+v\n%s", got, words)
			}
		})
	}
}

// What isn't a file of settings is said, and the defaults hold.
func TestOddFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	check := func(err error) {
		must.OK(t, err)
	}
	check(os.Symlink("loop", at("loop")))
	check(os.Symlink("gone", at("dangling")))
	check(os.Mkdir(at("folder"), 0o700))
	check(syscall.Mkfifo(at("pipe"), 0o600))
	check(os.WriteFile(at("large"), bytes.Repeat([]byte("theme: dark\n"), 1<<20), 0o600))
	check(os.WriteFile(at("binary"), []byte("theme: \xff\n"), 0o600))
	check(os.WriteFile(at("nul"), []byte("theme: dark\x00\n"), 0o600))
	for name, words := range map[string]string{
		"loop": "too many levels", "dangling": `is a link to "gone", which isn't there`, "folder": "isn't a file", "pipe": "isn't a file", "large": "more than 64 KiB", "binary": "isn't text", "nul": "isn't text",
		"none": "", "folder/below/none": "", "large/none": "not a directory",
	} {
		c := Load(with("STEPBOX_CONFIG=" + at(name)))
		if got := warnings(c); (words == "") != (got == "") || !strings.Contains(got, words) || c.Theme != "auto" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What an editor begins a file with is no part of its first setting.
func TestByteOrderMark(t *testing.T) {
	if c := loaded(t, "\ufeffmode: step\r\n"); warnings(c) != "" || c.Mode != api.ModeStep {
		t.Errorf("%s: %s", c.Mode, warnings(c))
	}
}

// Of much that is wrong the first is told, in its order, and at last that there is more.
func TestManyWarnings(t *testing.T) {
	for n, want := range map[int]int{mostWarnings: mostWarnings, 3 * mostWarnings: mostWarnings + 1} {
		all := strings.Split(warnings(loaded(t, strings.Repeat("x: 1\n", n))), "\n")
		if len(all) != want || !strings.HasPrefix(all[0], "c.yaml:1:1: ") || (all[want-1] == "c.yaml: and more") != (want > mostWarnings) {
			t.Errorf("of %d there are %d, from %q to %q", n, len(all), all[0], all[len(all)-1])
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"theme: dark", "keys: {approve: [a, b], changes: {\"]\": x}}", "limits:\n  memory: 1G\n", "a: &a [*a]", "? x\n: y", "- - - -", "{[{[", "notify: {command: [a]}", "--- |\n x\n...\n", "<<: *a", "leader: ctrl+g"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > most {
			return
		}
		c := Load(with())
		c.File = "f"
		c.parse(data)
		c.arrange()
		if !c.Mode.Valid() || c.Keys == nil || len(c.Warnings) > mostWarnings+1 {
			t.Errorf("%+v", c)
		}
		for _, w := range c.Warnings {
			if strings.ContainsFunc(w.String(), func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("%q", w)
			}
		}
		c.Values()
	})
}
