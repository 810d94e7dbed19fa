package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/near"
)

// Setting is something that can be set, beside keys.
type Setting struct {
	Name    string // with a dot where it is in a section
	Default string // "": none
	Allowed string // what it may be, in words
	About   string

	over  []string // variables that go over the file
	below []string // variables that hold where the file says nothing
	list  bool     // it is a list of words
	set   func(c *Config, v []string) error
	one   func(c *Config, v string) // in place of set, where it is one of the words that are Allowed
}

// give sets it, and says why it isn't right.
func (s *Setting) give(c *Config, v ...string) error {
	if s.one == nil {
		return s.set(c, v)
	}
	s.one(c, v[0])
	return oneOf(slices.Contains(strings.Split(strings.ReplaceAll(s.Allowed, " or ", ", "), ", "), v[0]), s.Allowed)
}

// The least that an agent can be started with, and the most that can be meant.
const (
	LeastMemory = 16 << 20 // below it not even the sandbox's own first process comes up
	LeastCPUs   = 0.01     // a millisecond in every tenth of a second, the kernel's least (cgroups(7))
	MostCPUs    = 100_000
)

const longestWait = 1000 * time.Hour // for anything

// Settings lists them, as they stand in a file.
var Settings = []Setting{
	{Name: "theme", Default: "auto", Allowed: "auto, " + strings.Join(themes.Names(), ", ") + ", or one in your folder of themes", About: "colours of the screens; without it the one that you chose last, by the palette", over: []string{"NO_COLOR", "STEPBOX_THEME"},
		set: func(c *Config, v []string) error {
			if !themes.IsName(v[0]) {
				return errNot("a theme's name")
			}
			c.Theme = v[0]
			return there(v[0])
		}},
	{Name: "borders", Default: string(AutoBorders), Allowed: "auto, unicode or ascii", About: "what lines and signs are drawn with: auto is ASCII where TERM is linux or vt…, or your language isn't in UTF-8",
		one: func(c *Config, v string) { c.Borders = Borders(v) }},
	{Name: "plain", Default: "off", Allowed: "on or off", About: "no boxes, one pane at a time, words instead of signs: for screen readers", over: []string{"STEPBOX_PLAIN"},
		set: func(c *Config, v []string) error { return onOff(&c.Plain, v[0], "on") }},
	{Name: "motion", Default: "on", Allowed: "on or off", About: "what moves by itself: marks that turn, blinking cursors, graphs, times that count",
		set: func(c *Config, v []string) error { return onOff(&c.Still, v[0], "off") }},
	{Name: "layout", Default: string(intent.Usual), Allowed: "usual, watching, reviewing or deciding", About: "how the workbench is divided, until you divide it otherwise",
		one: func(c *Config, v string) { c.Layout = intent.Preset(v) }},
	{Name: "leader", Default: keys.UsualLeader, Allowed: "a key with ctrl or alt, or f1 to f20", About: "the one key that isn't the agent's while the Terminal has the focus",
		set: func(c *Config, v []string) (err error) { c.leader, err = keys.Clean(v[0]); return err }},
	{Name: "mode", Default: "policy", Allowed: "step, policy or watch", About: "the mode of new sessions",
		one: func(c *Config, v string) { c.Mode = api.Mode(v) }},
	{Name: "home", Default: "profile", Allowed: "profile, session or fresh", About: "the home folder of new sessions' agents: session keeps apart what they change there",
		one: func(c *Config, v string) { c.Home = api.HomeKind(v) }},
	{Name: "on-ask", Default: "wait", Allowed: "wait or deny", About: "what becomes of questions in new sessions: deny answers each at once, whoever is attached",
		one: func(c *Config, v string) { c.Asking.On = api.OnAsk(v) }},
	{Name: "ask-timeout", Default: "0", Allowed: "a time like 10m, or 0 for never", About: "deny what nobody answered for this long",
		set: func(c *Config, v []string) error { return wait(&c.Asking.Timeout, v[0]) }},
	{Name: "editor", Default: "vi", Allowed: "a command", About: "what config edit opens, and what e opens in Changes", below: []string{"VISUAL", "EDITOR"},
		set: func(c *Config, v []string) error { c.Editor = v[0]; return said(v[0]) }},
	{Name: "pager", Default: "less", Allowed: "a command", About: "what shows diffs on a terminal", over: []string{"STEPBOX_PAGER"}, below: []string{"PAGER"},
		set: func(c *Config, v []string) error { c.Pager = v[0]; return said(v[0]) }},
	{Name: "clipboard", Default: "auto", Allowed: "auto, osc52, none, or a command that takes the text as its input", About: "what fills your clipboard: auto is the terminal by OSC 52, and wl-copy, xclip, xsel, clip.exe or tmux where there is one",
		set: func(c *Config, v []string) error { c.Clipboard = v[0]; return said(v[0]) }},
	{Name: "agent-copies", Default: string(Ask), Allowed: "ask, allow or deny", About: "whether agents may copy to your clipboard, by OSC 52: ask is once in a session; none ever reads it",
		one: func(c *Config, v string) { c.Copies = Copies(v) }},
	{Name: "add-dir", Allowed: "a list of folders like [~/lib:ro]", About: "folders that new sessions have besides the project, at their own paths: :ro to be read, else what is written stays in the session", list: true,
		set: func(c *Config, v []string) error {
			c.Dirs = v
			return oneOf(!slices.ContainsFunc(v, func(d string) bool { return !filepath.IsAbs(d) && !strings.HasPrefix(d, "~/") }), "folders, absolute or from ~/ on")
		}},
	{Name: "caches", Default: "on", Allowed: "on or off", About: "whether new sessions begin with your build caches; what they write there stays with them",
		set: func(c *Config, v []string) error { return onOff(&c.NoCaches, v[0], "off") }},
	{Name: "own-questions", Default: "on", Allowed: "on or off", About: "whether agents ask questions of their own, beside Stepbox's: off starts them with the argument that turns these off",
		set: func(c *Config, v []string) error { return onOff(&c.Unasked, v[0], "off") }},
	{Name: "env", Allowed: "a list of NAME and NAME=value", About: "variables that the agents of new sessions get: NAME passes from your environment; a secret stands here by its name alone", list: true,
		set: func(c *Config, v []string) error {
			c.Env = v
			for _, variable := range v {
				name, _, valued := strings.Cut(variable, "=")
				if valued && api.SecretName(name) {
					return fmt.Errorf("%s looks like a secret: name it alone, and its value passes from your environment", name)
				}
				if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") != "" || name == "" {
					return errNot("NAME or NAME=value")
				}
			}
			return nil
		}},
	{Name: "limits.memory", Default: "4G", Allowed: "a size like 512M, or 0 for no limit", About: "most memory that an agent may use",
		set: func(c *Config, v []string) error {
			n, err := ParseSize(v[0])
			if err == nil && n != 0 && n < LeastMemory {
				err = fmt.Errorf("too little for a sandbox: use at least %dM, or 0 for no limit", LeastMemory>>20)
			}
			c.Memory = v[0]
			return err
		}},
	{Name: "limits.cpus", Default: "0", Allowed: "a number like 1.5, or 0 for no limit", About: "most processors' time that it may use",
		set: func(c *Config, v []string) (err error) {
			c.CPUs, err = strconv.ParseFloat(v[0], 64)
			return oneOf(err == nil && (c.CPUs == 0 || c.CPUs >= LeastCPUs && c.CPUs <= MostCPUs), "a number from 0.01 on, like 1.5, or 0 for no limit")
		}},
	{Name: "limits.pids", Default: "2048", Allowed: "a number, or 0 for no limit", About: "most processes and threads",
		set: func(c *Config, v []string) (err error) {
			c.Pids, err = strconv.ParseInt(v[0], 10, 64)
			return oneOf(err == nil && c.Pids >= 0, "a number, or 0 for no limit")
		}},
	{Name: "limits.disk", Default: "20G", Allowed: "a size like 20G, or 0 for no limit but the disk's", About: "most that it may write before it is paused",
		set: func(c *Config, v []string) (err error) { c.Disk = v[0]; _, err = ParseSize(v[0]); return err }},
	{Name: "limits.wall-time", Default: "0", Allowed: "a time like 2h, or 0 for never", About: "end the session after this long",
		set: func(c *Config, v []string) error { return wait(&c.WallTime, v[0]) }},
	{Name: "notify.when", Default: string(Unfocused), Allowed: "unfocused, always or never", About: "when what waits for you is told beyond the screen; a terminal that doesn't say whether it has the focus hasn't",
		one: func(c *Config, v string) { c.Notify.When = When(v) }},
	{Name: "notify.after", Default: "0", Allowed: "a time like 5s", About: "only what still waits after this long",
		set: func(c *Config, v []string) error { return wait(&c.Notify.After, v[0]) }},
	{Name: "notify.bell", Default: "true", Allowed: "true or false", About: "ring the terminal's bell",
		set: func(c *Config, v []string) error { return truth(&c.Notify.Bell, v[0]) }},
	{Name: "notify.osc", Default: "off", Allowed: "off, auto, 9, 777 or 99", About: "a desktop notification by the terminal: 9 is iTerm2's and WezTerm's, 777 foot's and urxvt's, 99 kitty's",
		set: func(c *Config, v []string) error {
			c.Notify.OSC = v[0]
			if v[0] == "false" { // off is that in older YAML
				c.Notify.OSC = "off"
			}
			return oneOf(slices.Contains([]string{"off", "auto", "9", "777", "99"}, c.Notify.OSC), "off, auto, 9, 777 or 99")
		}},
	{Name: "notify.title", Default: "true", Allowed: "true or false", About: "say in the terminal's title what is held",
		set: func(c *Config, v []string) error { return truth(&c.Notify.Title, v[0]) }},
	{Name: "notify.agent", Default: "true", Allowed: "true or false", About: "pass on the agent's own bell, and its notifications in these ways",
		set: func(c *Config, v []string) error { return truth(&c.Notify.Agent, v[0]) }},
	{Name: "notify.command", Allowed: "a list: a program and its arguments", About: "a program to run, with a title and a text as two more arguments, like [notify-send]", list: true,
		set: func(c *Config, v []string) error {
			c.Notify.Command = v
			return oneOf(len(v) == 0 || v[0] != "", "a program and its arguments")
		}},
}

// there says why there is no such theme; one in the person's own folder may be broken, which
// the screens tell of.
func there(theme string) error {
	all, dir := append(themes.Names(), "auto"), themes.Dir()
	if slices.Contains(all, theme) {
		return nil
	}
	slices.Sort(all)
	words := fmt.Sprintf("there is no such theme%s; use %s", near.Words(theme, all), strings.Join(all, ", "))
	if dir == "" {
		return errors.New(words)
	}
	file := filepath.Join(dir, theme+".yaml")
	if _, err := os.Stat(file); os.IsNotExist(err) {
		return fmt.Errorf("%s, or write %s", words, file)
	}
	return nil
}

func errNot(what string) error { return fmt.Errorf("use %s", what) }

func oneOf(ok bool, allowed string) error {
	if ok {
		return nil
	}
	return errNot(allowed)
}

// onOff says whether a setting is on, or off, also by what YAML once read as that.
func onOff(is *bool, v, which string) error {
	v = strings.NewReplacer("true", "on", "false", "off").Replace(v)
	*is = v == which
	return oneOf(v == "on" || v == "off", "on or off")
}

func said(v string) error {
	return oneOf(strings.TrimSpace(v) != "" && len(v) < 1000, "a command")
}

func truth(b *bool, v string) error {
	*b = v == "true"
	return oneOf(v == "true" || v == "false", "true or false")
}

func wait(d *time.Duration, v string) (err error) {
	*d, err = time.ParseDuration(v)
	return oneOf(err == nil && *d >= 0 && *d <= longestWait, "a time like 30s, 10m or 2h, or 0")
}
