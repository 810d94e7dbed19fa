package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"
	"regexp"
	"slices"
	"strings"
)

// upkeepFile is one kind of command that an agent runs for itself, without
// being told to. Since nobody is asked about it, it must be one that only looks,
// or writes what nothing but the agent reads, and be recognised exactly.
type upkeepFile struct {
	// Run are commands, matched argument for argument.
	Run textList `yaml:"run"`
	// Program says what file it must be: "" in one of the system's folders and
	// called as the command is, "self" the agent's own.
	Program string `yaml:"program"`
	// Never are globs; an argument that matches one makes it something else.
	Never textList `yaml:"never"`
	// Script is what the last argument must be, when that is a script.
	Script *scriptFile `yaml:"script"`
	// Reads are files in the home folder that it takes commands from.
	Reads []string `yaml:"reads"`
	// Children says that what it starts is part of it.
	Children bool `yaml:"children"`
	// Starts are the system's programs that it starts, where not any: a shell
	// that reads files starts what somebody wrote into them meanwhile.
	Starts []string `yaml:"starts"`
}

// scriptFile recognises a script without repeating it.
type scriptFile struct {
	// Holes are regular expressions whose first group is left out. A group that
	// is called home must hold the agent's home folder.
	Holes textList `yaml:"holes"`
	// SHA256 are sums, in hexadecimal, of what remains; one per known version.
	SHA256 []string `yaml:"sha256"`
}

// upkeep is an upkeepFile, checked.
type upkeep struct {
	upkeepFile
	run   []Rule
	holes []*regexp.Regexp
}

func (f *upkeepFile) compile() (u upkeep, bad Problems) {
	u.upkeepFile = *f
	if u.run, bad = f.Run.rules(); bad != nil {
		return u, bad
	}
	if bad = f.Never.globs(); bad != nil {
		return u, bad
	}
	if f.Program != "" && f.Program != "self" {
		return u, wrong(0, 0, `a program of housekeeping can only be "self"`)
	}
	if f.Script == nil {
		return u, nil
	}
	for _, h := range f.Script.Holes {
		re, err := regexp.Compile(h.s)
		if err == nil && re.NumSubexp() != 1 {
			err = errors.New("a hole has one group")
		}
		if err != nil {
			return u, h.bad("%w", err)
		}
		u.holes = append(u.holes, re)
	}
	return u, nil
}

// systemFolders are where programs are that the agent can't write.
var systemFolders = []string{"/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"}

// Upkeep is a command that is an agent's own upkeep.
type Upkeep struct {
	// Children says that what it starts is part of it. Where not, it starts
	// nothing as a rule, and what it does start is to be judged: a repository can
	// be made to have git run programs, and a variable can be made to have a
	// shell run them (BASH_ENV, LD_PRELOAD and many more). PATH may be any, as
	// agents put folders of theirs first: what is found along it is to be judged
	// when it, or a link to it, is where the agent can write.
	Children bool

	starts []string
}

// Housekeeping is a command as the agent's own upkeep, which is recorded but not
// asked about; nil when it isn't any. It must be one that the profile knows, the
// file must be what the command says, and nothing that it runs or reads commands
// from may have been written in this session.
func (p *Profile) Housekeeping(c Command) *Upkeep {
	u := p.upkeep(c)
	if u == nil {
		return nil
	}
	strange := slices.ContainsFunc(c.Env, func(v string) bool { return !Harmless(v) && !strings.HasPrefix(v, "PATH=") })
	return &Upkeep{Children: u.Children && !strange, starts: u.Starts}
}

// Starts says of an upkeep command with children whether it is known to start a
// program, given by its file and argv[0].
func (u *Upkeep) Starts(file, name string) bool {
	if len(u.starts) == 0 {
		return true
	}
	base := path.Base(file)
	if many[base] {
		base = path.Base(name)
	}
	return slices.Contains(systemFolders, path.Dir(file)) && slices.Contains(u.starts, base)
}

// many are programs that are many, by the name that they are called.
var many = map[string]bool{"busybox": true, "coreutils": true, "toybox": true}

// harmlessNames and harmlessPrefixes are of variables that agents set for what
// they run, and that have no shell or system program run anything.
var (
	harmlessNames = []string{
		"TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "LANG", "LANGUAGE",
		"TZ", "TMPDIR", "AI_AGENT", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "COREPACK_ENABLE_AUTO_PIN",
		"NoDefaultCurrentDirectoryInExePath", "GEMINI_CLI", "GEMINI_CLI_NO_RELAUNCH", "QWEN_CODE", "QWEN_CODE_NO_RELAUNCH",
		"PI_CODING_AGENT", "PI_SKIP_VERSION_CHECK", "COPILOT_CLI", "COPILOT_CLI_BINARY_VERSION", "COPILOT_LOADER_PID", "COPILOT_AGENT_SESSION_ID",
	}
	harmlessPrefixes = []string{"LC_", "CLAUDECODE", "CLAUDE_", "ANTHROPIC_", "CODEX_", "OPENCODE_", "AIDER_", "OTEL_", "DISABLE_", "MCP_"}
	harmlessValues   = []string{"GIT_EDITOR=true", "EDITOR=true", "PAGER=cat", "GIT_PAGER=cat", "GH_PAGER=cat"}
)

// numbers are variables that a shell takes for arithmetic, in which other words than a number run commands.
var numbers = []string{"COLUMNS", "LINES", "SHLVL"}

// isNumber says whether a value is a number and nothing else.
func isNumber(value string) bool {
	return value != "" && len(value) <= 5 && strings.Trim(value, "0123456789") == ""
}

// Harmless says whether a variable is one that agents set for what they run, and that
// has no shell or system program run anything.
func Harmless(variable string) bool {
	name, value, _ := strings.Cut(variable, "=")
	return slices.Contains(harmlessNames, name) || slices.Contains(numbers, name) && isNumber(value) || slices.Contains(harmlessValues, variable) ||
		slices.ContainsFunc(harmlessPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

func (p *Profile) upkeep(c Command) *upkeep {
	if len(c.Argv) == 0 || c.wrote() {
		return nil
	}
	size := 0
	for _, a := range c.Argv {
		size += len(a)
	}
	if size > maxBytes {
		return nil
	}
	v := invocation{names: []string{path.Base(c.Argv[0])}, args: words(c.Argv[1:])}
	for i := range p.keep {
		u := &p.keep[i]
		if anyMatches(u.run, &v) && u.allows(p, c) {
			return u
		}
	}
	return nil
}

// allows checks what the words don't say.
func (u *upkeep) allows(p *Profile, c Command) bool {
	name := path.Base(c.Argv[0])
	if u.Program == "self" {
		if !p.file.Match.fits(c.Program) {
			return false
		}
	} else if !system(c.Program, name) || strings.Contains(c.Argv[0], "/") && !slices.Contains(systemFolders, path.Dir(c.Argv[0])) {
		return false
	}
	written := func(name string) bool { return c.Home == "" || c.Wrote(path.Join(c.Home, name)) }
	if slices.ContainsFunc(c.Argv[1:], u.Never.match) || c.Wrote != nil && slices.ContainsFunc(u.Reads, written) {
		return false
	}
	if u.Script != nil {
		return slices.Contains(u.Script.SHA256, u.sum(c.Argv[len(c.Argv)-1], c.Home))
	}
	return true
}

// system says whether a file is the system's program of that name. Links are
// resolved by then: awk may be mawk and sh may be dash, but not anything.
func system(file, name string) bool {
	if !slices.Contains(systemFolders, path.Dir(file)) {
		return false
	}
	base := path.Base(file)
	switch {
	case base == name, strings.HasPrefix(base, name+"."):
		return true
	case name == "sh":
		return base == "dash" || base == "bash" || base == "busybox"
	}
	return base == "busybox" || base == "coreutils"
}

// sum is that of a script without its holes.
func (u *upkeep) sum(script, home string) string {
	for _, re := range u.holes {
		var b strings.Builder
		last := 0
		for _, m := range re.FindAllStringSubmatchIndex(script, 256) {
			if re.SubexpNames()[1] == "home" && script[m[2]:m[3]] != home {
				continue
			}
			b.WriteString(script[last:m[2]])
			last = m[3]
		}
		b.WriteString(script[last:])
		script = b.String()
	}
	h := sha256.Sum256([]byte(script))
	return hex.EncodeToString(h[:])
}
