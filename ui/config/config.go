// Package config is what a person has set: from a file, and variables over it. Flags go
// over both and are their commands' own. What is wrong in the file is told with its place
// and what may stand there, and left out; all else holds.
//
// A Config doesn't change once it is loaded and is safe to share.
package config

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"stepbox/session/api"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
)

// Config is every setting in force.
type Config struct {
	File string // which it is read from; it needn't be there. "": it can't be told

	Theme         string
	Borders       Borders // and all other signs
	Plain         bool    // no boxes, one thing at a time, words
	Still         bool    // nothing moves by itself
	Layout        intent.Preset
	Mode          api.Mode
	Home          api.HomeKind
	Asking        api.Asking
	Editor, Pager string
	Clipboard     string // auto, osc52, none, or a command that takes a text
	Copies        Copies // by agents
	Memory, Disk  string // as ParseSize reads them
	CPUs          float64
	Pids          int64
	WallTime      time.Duration
	Dirs          []string // folders besides the project, as outfit.ParseDir reads them
	NoCaches      bool
	Unasked       bool     // agents are started with what turns off their own questions
	Env           []string // variables that new sessions' agents get: NAME, which passes, or NAME=value
	Notify        Notify
	Keys          *keys.Arrangement
	Warnings      []Warning // what doesn't hold, in the file's order
	leader        string
	values        map[string]Value
	bound         []bound // keys of the file that hold
	more          bool    // there are more warnings than are told
}

// Borders says what lines and signs are drawn with.
type Borders string

const (
	AutoBorders    Borders = "auto" // as the terminal and the language are
	UnicodeBorders Borders = "unicode"
	ASCIIBorders   Borders = "ascii"
)

// OnlyASCII says whether a terminal, or a person's language, has no signs but ASCII's.
// Where no language is set, as in containers, nothing says so.
func OnlyASCII(getenv func(string) string) bool {
	switch term := getenv("TERM"); {
	case term == "linux", term == "dumb", strings.HasPrefix(term, "vt"):
		return true
	}
	name, utf8 := Language(getenv)
	return name != "" && !utf8
}

// Language is the one that a person's letters are of, in small letters, and whether it is
// written in UTF-8. See locale(7).
func Language(getenv func(string) string) (name string, utf8 bool) {
	name = strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return name, strings.Contains(name, "utf-8") || strings.Contains(name, "utf8")
}

// When says when a person is told beyond the screen that something waits.
type When string

const (
	Unfocused When = "unfocused" // while the terminal hasn't the focus, or doesn't say
	Always    When = "always"
	Never     When = "never"
)

// Copies says whether agents may copy to the person's clipboard.
type Copies string

const (
	Ask   Copies = "ask" // once in a session
	Allow Copies = "allow"
	Deny  Copies = "deny"
)

// Notify is how a person is told that something waits.
type Notify struct {
	When    When
	After   time.Duration // of waiting
	Bell    bool
	OSC     string // off, auto, 9, 777 or 99
	Title   bool
	Agent   bool     // its bell and notifications, too
	Command []string // none: none is run
}

// Warning is something in the file that doesn't hold.
type Warning struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // from 1; 0: all of it
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
}

func (w Warning) String() string {
	if w.Line == 0 {
		return fmt.Sprintf("%s: %s", w.File, w.Message)
	}
	return fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Message)
}

// Value is a setting in force and where it came from.
type Value struct {
	Name    string `json:"name"`
	Value   string `json:"value"` // a list is written as YAML has it
	Default string `json:"default"`
	From    string `json:"from"` // default, file or variable
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Var     string `json:"variable,omitempty"`
}

// Origin is where it came from, in words.
func (v Value) Origin() string {
	switch v.From {
	case "file":
		return fmt.Sprintf("%s:%d", v.File, v.Line)
	case "variable":
		return "$" + v.Var
	}
	return v.From
}

// bound are keys of the file, and where they stand.
type bound struct {
	keys.Change
	name         string // as it is shown
	line, column int
}

// Path is the file's: $STEPBOX_CONFIG, else stepbox/config.yaml below $XDG_CONFIG_HOME or
// ~/.config; "" where none of them says where that is.
func Path(getenv func(string) string) string {
	if f := getenv("STEPBOX_CONFIG"); f != "" {
		return f
	}
	dir := getenv("XDG_CONFIG_HOME")
	if home := getenv("HOME"); !filepath.IsAbs(dir) {
		if !filepath.IsAbs(home) {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "stepbox", "config.yaml")
}

// Load reads the file and the variables. It never fails: what can't be read or isn't
// right is in the Warnings.
func Load(getenv func(string) string) *Config {
	c := &Config{File: Path(getenv), values: map[string]Value{}}
	for i := range Settings {
		s := &Settings[i]
		c.preset(s, getenv)
	}
	if c.File != "" {
		data, err := read(c.File, time.Now, time.Sleep)
		if err != nil {
			c.warn(0, 0, "%v; the defaults hold", err)
		}
		c.parse(data)
	}
	for i := range Settings {
		for _, name := range Settings[i].over {
			if v := getenv(name); v != "" {
				c.fromVariable(&Settings[i], name, v)
			}
		}
	}
	c.arrange()
	return c
}

// preset gives a setting what holds where the file says nothing of it.
func (c *Config) preset(s *Setting, getenv func(string) string) {
	c.values[s.Name] = Value{Name: s.Name, Value: s.Default, Default: s.Default, From: "default"}
	if s.Default != "" {
		_ = s.give(c, s.Default) // tested to be right
	}
	for _, name := range s.below {
		if v := getenv(name); v != "" {
			c.fromVariable(s, name, v)
			return
		}
	}
}

func (c *Config) fromVariable(s *Setting, name, v string) {
	switch name {
	case "NO_COLOR": // whatever it says, see no-color.org
		v = "plain"
	case "STEPBOX_PLAIN": // 1 is what people say
		v = strings.Replace(v, "1", "on", 1)
	}
	if s.give(c, v) == nil {
		c.values[s.Name] = Value{Name: s.Name, Value: v, Default: s.Default, From: "variable", Var: name}
	}
}

// take gives a setting what the file says; what isn't right leaves it as it was.
func (c *Config) take(s *Setting, v []string, line, column int) {
	was := *c
	if err := s.give(c, v...); err != nil {
		*c = was
		c.warn(line, column, "%s: %s isn't right (%v); %s holds", s.Name, quoted(v, s.list), err, cmp.Or(c.values[s.Name].Value, "none"))
		return
	}
	c.values[s.Name] = Value{Name: s.Name, Value: shown(v, s.list), Default: s.Default, From: "file", File: c.File, Line: line}
}

// arrange makes the keys, and tells of those that don't go together.
func (c *Config) arrange() {
	changes := make([]keys.Change, len(c.bound))
	slices.SortStableFunc(c.bound, func(a, b bound) int { return cmp.Compare(min(len(a.Place), 1), min(len(b.Place), 1)) }) // a place's go over all
	for i, b := range c.bound {
		changes[i] = b.Change
	}
	a, of, ofLeader := keys.Arrange(c.leader, changes)
	c.Keys = a
	if v := c.values["leader"]; ofLeader != nil {
		c.warn(v.Line, 1, "leader: %v; %s holds", ofLeader, keys.UsualLeader)
		c.values["leader"] = Value{Name: "leader", Value: keys.UsualLeader, Default: keys.UsualLeader, From: "default"}
	}
	var hold []bound
	for i, b := range c.bound {
		if of[i] != nil {
			c.warn(b.line, b.column, "keys: %s: %v", b.name, of[i])
			continue
		}
		hold = append(hold, b)
	}
	c.bound = hold
	slices.SortStableFunc(c.Warnings, func(a, b Warning) int { return cmp.Compare(a.Line, b.Line) })
	if c.more {
		c.Warnings = append(c.Warnings, Warning{File: api.Escape(c.File), Message: "and more"})
	}
}

// mostWarnings are told of one file.
const mostWarnings = 20

func (c *Config) warn(line, column int, format string, args ...any) {
	if c.more = len(c.Warnings) == mostWarnings; !c.more {
		c.Warnings = append(c.Warnings, Warning{api.Escape(c.File), line, column, api.Escape(api.Trim(fmt.Sprintf(format, args...), 400))})
	}
}

// Values lists what is in force: settings in their order, then keys that aren't the usual.
func (c *Config) Values() (out []Value) {
	for _, s := range Settings {
		out = append(out, c.values[s.Name])
	}
	for _, b := range c.bound {
		out = append(out, Value{Name: "keys." + b.name, Value: strings.Join(b.Keys, " "), From: "file", File: c.File, Line: b.line})
	}
	return out
}

// Said says whether the file or a variable sets it.
func (c *Config) Said(name string) bool { return c.values[name].From != "default" }

// Value is what a setting says, as it is written.
func (c *Config) Value(name string) string { return c.values[name].Value }

// By is where a setting that isn't the default is said, in words.
func (c *Config) By(name string) string {
	if !c.Said(name) {
		return ""
	}
	return name + ", " + c.values[name].Origin()
}

func shown(v []string, list bool) string {
	if !list {
		return v[0]
	}
	var out []string
	for _, w := range v {
		out = append(out, strconv.Quote(w))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func quoted(v []string, list bool) string {
	if list {
		return api.Trim(shown(v, true), 60)
	}
	return strconv.Quote(api.Trim(v[0], 40))
}

// ParseSize reads a number of bytes with an optional K, M, G or T (powers of 1024).
func ParseSize(s string) (int64, error) {
	digits := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I")
	shift := 0
	if digits != "" {
		if i := strings.IndexByte("KMGT", digits[len(digits)-1]); i >= 0 {
			digits, shift = digits[:len(digits)-1], 10*(i+1)
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n < 0 || math.IsNaN(n) || n*math.Pow(2, float64(shift)) > math.MaxInt64/2 {
		return 0, fmt.Errorf("%q is no size: use a number with K, M, G or T, like 512M", api.Escape(s))
	}
	return int64(n * math.Pow(2, float64(shift))), nil
}
