package ui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"stepbox/session/e2e/must"
	"stepbox/ui/config"
)

// notifying shows a session to a person who set how they are notified.
func notifying(t *testing.T, yaml string, env map[string]string) *driver {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	must.OK(t, os.WriteFile(file, []byte(yaml), 0o600))
	c := config.Load(func(name string) string { return map[string]string{"STEPBOX_CONFIG": file}[name] })
	if len(c.Warnings) > 0 {
		t.Fatal(c.Warnings)
	}
	c.Theme = "plain"
	if bubbled() { // nobody changes it
		c.File = ""
	}
	f := sceneWorkbench()
	d := drive(t, f, 120, 35, Options{Session: sceneSession().ID, Config: c, Getenv: func(name string) string { return env[name] }})
	d.until("the session is shown", func() bool { return d.m.bench != nil && d.m.bench.Arrived() && f.LastTerminal() != nil })
	d.idle()
	return d
}

func TestNotifications(t *testing.T) {
	for _, c := range []struct {
		name, yaml string
		env        map[string]string
		focus      tea.Msg
		want       string
	}{
		{"the bell", "", nil, nil, "\a"},
		{"who looks isn't told", "", nil, tea.FocusMsg{}, ""},
		{"who looked away is", "", nil, tea.BlurMsg{}, "\a"},
		{"always", "notify: {when: always}", nil, tea.FocusMsg{}, "\a"},
		{"never", "notify: {when: never, osc: 9}", nil, tea.BlurMsg{}, ""},
		{"9", "notify: {bell: false, osc: 9}", nil, nil, "\x1b]9;stepbox: 1 held – fix-tests › rm x,y\\x1b]0,t\\x07\a"},
		{"777", "notify: {bell: false, osc: 777}", nil, nil, "\x1b]777;notify;stepbox: 1 held – fix-tests;› rm x,y\\x1b]0,t\\x07\a"},
		{"99", "notify: {bell: false, osc: auto}", map[string]string{"TERM": "xterm-kitty"}, nil, "\x1b]99;i=stepbox:d=0;stepbox: 1 held – fix-tests\a\x1b]99;i=stepbox:p=body;› rm x,y\\x1b]0,t\\x07\a"},
		{"auto, none", "notify: {bell: false, osc: auto}", map[string]string{"TERM": "xterm"}, nil, ""},
		{"tmux", "notify: {bell: false, osc: 9}", map[string]string{"TMUX": "x"}, nil, "\x1bPtmux;\x1b\x1b]9;stepbox: 1 held – fix-tests › rm x,y\\x1b]0,t\\x07\a\x1b\\"},
	} {
		t.Run(c.name, inBubble(func(t *testing.T) {
			d := notifying(t, c.yaml, c.env)
			if c.focus != nil {
				d.send(c.focus)
			}
			put(d, ask(6, 14, "rm x;y\x1b]0;t\a"))
			d.shows("◆ #14 held")
			d.idle()
			if d.raw != c.want {
				t.Errorf("it tells %q, not %q", d.raw, c.want)
			}
		}))
	}
}

func TestNotifyAfter(t *testing.T) { alone(t, testNotifyAfter) }

func testNotifyAfter(t *testing.T) {
	d := notifying(t, "notify: {after: 5s, title: false}", nil)
	put(d, ask(6, 14, "rm x"))
	d.shows("◆ #14 held")
	d.idle()
	if d.raw != "" || d.frame.Title != "" {
		t.Errorf("it rang at once (%q), or set the title %q", d.raw, d.frame.Title)
	}
	d.advance(6 * time.Second)
	d.send(clock{})
	d.until("it rings", func() bool { return d.raw == "\a" })
}

// The command has texts as arguments, whatever they say; no shell reads them.
func TestNotifyCommand(t *testing.T) { alone(t, testNotifyCommand) }

func testNotifyCommand(t *testing.T) {
	dir := t.TempDir()
	script, out := filepath.Join(dir, "tell"), filepath.Join(dir, "out")
	must.OK(t, os.WriteFile(script, []byte("#!/bin/sh\nprintf '%s|%s|%s|%s' \"$1\" \"$2\" \"$3\" \"$STEPBOX_TEXT\" > "+out+".new && mv "+out+".new "+out+"\n"), 0o700))
	d := notifying(t, "notify: {command: ["+script+", -u]}", nil)
	put(d, ask(6, 14, "--help $(touch "+dir+"/ran)"))
	var got []byte
	d.until("it ran", func() bool {
		var err error
		got, err = os.ReadFile(out)
		return err == nil
	})
	text := "› --help $(touch " + dir + "/ran)"
	if want := "-u|stepbox: 1 held – fix-tests|" + text + "|" + text; !strings.HasPrefix(want, string(got)) && string(got) != want {
		t.Errorf("it got %q, not %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("a shell read it")
	}
	d.until("it has ended", func() bool { return !d.m.notify.runs })
}

func TestNotifyCommandFails(t *testing.T) { alone(t, testNotifyCommandFails) }

func testNotifyCommandFails(t *testing.T) {
	d := notifying(t, "notify: {command: [/nowhere/at-all]}", nil)
	put(d, ask(6, 14, "rm x"))
	d.shows("notify.command failed")
}

// What is wrong in the settings is said once, and what is changed since holds at once.
func TestSettingsReload(t *testing.T) { // not beside others: keys are the process's
	d := notifying(t, "theme: light", nil)
	file := d.m.opt.Config.File
	load := func() *config.Config {
		return config.Load(func(name string) string { return map[string]string{"STEPBOX_CONFIG": file}[name] })
	}
	defer func() { _ = d.m.reconfigure(config.Load(func(string) string { return "" })) }()
	for _, c := range []struct{ yaml, says string }{
		{"leader: ctrl+g\nmode: fast", `config.yaml:2:1: mode: "fast" isn't right`},
		{"leader: ctrl+g\n", "all of your settings hold"},
		{"leader: ctrl+g\n", "ctrl+g ? help"},
	} {
		must.OK(t, os.WriteFile(file, []byte(c.yaml), 0o600))
		d.send(reloaded{load()})
		d.shows(c.says)
	}
}

// GNU screen may take each byte for a character, some of which end what it is told: what an
// agent says after them isn't drawn, nor obeyed.
func TestNotifyInScreen(t *testing.T) {
	t.Parallel()
	env := map[string]string{"STY": "1.pts-0.host", "KITTY_WINDOW_ID": "1"}
	out := osc("auto", "stepbox: м", "› "+harmless("МЛ2J"), func(name string) string { return env[name] })
	if out == "" || strings.ContainsFunc(out, func(r rune) bool { return r > '~' }) {
		t.Errorf("it is told %q", out)
	}
}
