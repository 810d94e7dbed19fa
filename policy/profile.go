package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Profile is what is known about one kind of agent. It is immutable.
type Profile struct {
	Name  string
	Title string // what a person calls it
	// Prompts are arguments that turn off its own sandbox or its questions, with what
	// each does. They are shown; whether to give them is the person's choice.
	Prompts map[string]string
	File    string // "": it is built in
	Text    []byte // what the file says

	file  profileFile
	hosts []NetRule
	ask   []Asking
	wraps []wrap
	roots []Rule
}

type profileFile struct {
	Name    string            `yaml:"name"`
	Title   string            `yaml:"title"`
	Prompts map[string]string `yaml:"prompts"`
	// SignIn says in words how a person signs in.
	SignIn string `yaml:"sign-in"`
	// Unasked are those of the prompts that a person who wants none of its questions gives.
	Unasked []string  `yaml:"unasked"`
	Agent   bool      `yaml:"agent"`
	Match   matchFile `yaml:"match"`
	// Env is set for the agent; an empty value unsets nothing, it is empty.
	Env map[string]string `yaml:"env"`
	// Pass are variables that pass to it beside those that always do.
	Pass []string `yaml:"pass"`
	// Wants are variables that it reads and that don't pass by themselves, as they hold a
	// secret or say to whom one is sent: a person who has one is told how to pass it.
	Wants []string `yaml:"wants"`
	// Secret are variables whose values are secret although their names don't tell.
	Secret []string `yaml:"secret"`
	// Args are put behind the program's name.
	Args []string `yaml:"args"`
	// Hooks have it tell Stepbox what it does, see docs/agents-tell.md.
	Hooks hooksFile `yaml:"hooks"`
	Hosts textList  `yaml:"hosts"`
	// Network are rules as in a policy, for what isn't as simple: a host that
	// the agent's own program asks for without being told to.
	Network []netFile `yaml:"network"`
	Ask     askFile   `yaml:"ask"` // as in a policy
	// Roots are programs to whom the agent, or a person, feeds commands.
	Roots    textList   `yaml:"roots"`
	Wrappers []wrapFile `yaml:"wrappers"`
	Brings   bringsFile `yaml:"brings"` // what comes along of the person's home
}

// hooksFile is where an agent reads what its hooks and MCP servers are.
type hooksFile struct {
	// Etc are files of the sandbox's /etc, by their names below it.
	Etc map[string]string `yaml:"etc"`
	// Args are put behind the program's name, before those that are anyway.
	Args []string `yaml:"args"`
}

// Hooks are the files of the sandbox's /etc by which the agent tells Stepbox what it
// does, and arguments that it needs for it.
func (p *Profile) Hooks() (etc map[string]string, args []string) {
	return p.file.Hooks.Etc, p.file.Hooks.Args
}

// matchFile is how a program is recognised.
type matchFile struct {
	Programs     []string `yaml:"programs"`     // what its file is called
	Paths        textList `yaml:"paths"`        // globs for its file, or for the script that an interpreter runs
	Interpreters []string `yaml:"interpreters"` // programs that run it as a script
	// Faces are names in argv[0] under which its file is another program.
	Faces []string `yaml:"faces"`
	// Modes are globs for a first argument with which it is a helper.
	Modes textList `yaml:"modes"`
	// Starters are those of the modes in which it only becomes the command
	// that stands behind: it is still the agent, and that command is judged.
	// So a denied one fails there, where its output is read, and the agent
	// doesn't take it for a fault of its own and try another way.
	Starters []string `yaml:"starters"`
}

// is says whether a program is the agent itself.
func (m *matchFile) is(argv []string, resolved string) bool {
	if len(argv) == 0 || slices.Contains(m.Faces, path.Base(argv[0])) {
		return false
	}
	if len(argv) > 1 && m.Modes.match(argv[1]) {
		return false
	}
	resolved = cmp.Or(resolved, argv[0])
	if m.fits(resolved) {
		return true
	}
	if i := m.script(argv, resolved); i > 0 {
		return m.fits(argv[i])
	}
	return false
}

func (m *matchFile) fits(file string) bool {
	return slices.Contains(m.Programs, path.Base(file)) || m.Paths.match(file)
}

// script is the index of the script that an interpreter runs; 0: none.
func (m *matchFile) script(argv []string, resolved string) int {
	if !slices.Contains(m.Interpreters, path.Base(argv[0])) && !slices.Contains(m.Interpreters, path.Base(resolved)) {
		return 0
	}
	return 1 + slices.IndexFunc(argv[1:], func(a string) bool { return !strings.HasPrefix(a, "-") })
}

// Agent says whether it is an agent's: what it starts is judged by itself, also
// when another program started it.
func (p *Profile) Agent() bool { return p.file.Agent }

// Programs are what its program's file is called.
func (p *Profile) Programs() []string { return p.file.Match.Programs }

// Self says whether a program is the agent starting itself again, such as its
// native program from its launcher. Then it is a root as the agent is. The
// file decides, not what it calls itself.
func (p *Profile) Self(c Command) bool {
	if !p.file.Agent || c.wrote() || c.Program == "" || len(c.Argv) == 0 {
		return false
	}
	m := &p.file.Match
	argv, file := c.Argv, c.Program
	if p.Starter(argv) {
		argv = argv[:1]
	}
	i := m.script(argv, c.Program)
	if i > 1 && slices.ContainsFunc(argv[1:i], func(o string) bool { return !harmlessOption(o) }) {
		return false
	}
	if !m.is(argv, c.Program) {
		return false
	}
	if i > 0 && path.IsAbs(argv[i]) {
		if file = c.file(argv[i]); file == "" || c.Wrote != nil && c.Wrote(file) {
			return false
		}
	}
	return m.fits(file)
}

// harmlessOption says whether an interpreter that is given this option before its
// script runs nothing else.
func harmlessOption(option string) bool {
	name, _, _ := strings.Cut(option, "=")
	return slices.Contains([]string{"--max-old-space-size", "--max-semi-space-size", "--stack-size", "--expose-gc", "--no-warnings",
		"--no-deprecation", "--enable-source-maps", "--no-node-snapshot", "--experimental-wasm-modules"}, name)
}

// Starter says whether the agent's own program was started only to become the
// command that stands behind.
func (p *Profile) Starter(argv []string) bool {
	return len(argv) > 1 && slices.Contains(p.file.Match.Starters, argv[1])
}

// Root says whether a program will be fed commands, from a terminal or a pipe:
// an interactive shell, one without a script, a terminal multiplexer. It
// belongs to no action; what it starts does.
func (p *Profile) Root(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	name := path.Base(strings.TrimPrefix(argv[0], "-"))
	if grammarOf([]string{name}).Shell {
		_, has, file, _ := shellArgs(words(argv[1:]))
		return !has && (len(file) == 0 || isInput(file[0].text))
	}
	v := invocation{names: []string{name}, args: words(argv[1:])}
	return anyMatches(p.roots, &v) || anyMatches(BuiltinProfiles().Named("").roots, &v)
}

// Wants are variables that the agent reads and that don't pass by themselves.
func (p *Profile) Wants() []string { return p.file.Wants }

// Secret are variables whose values are secret although their names don't tell.
func (p *Profile) Secret() []string { return p.file.Secret }

// Args is argv with what the agent needs to be told as arguments, and more. The result
// is a new slice.
func (p *Profile) Args(argv []string, more ...string) []string {
	out, add := slices.Clone(argv), slices.Concat(more, p.file.Args)
	if len(out) == 0 || len(add) == 0 {
		return out
	}
	return slices.Insert(out, p.file.Match.script(argv, argv[0])+1, add...)
}

// Unasked are the arguments that turn off the agent's own questions and sandbox; none
// where argv says already what becomes of them.
func (p *Profile) Unasked(argv []string) []string {
	for given := range p.Prompts {
		option, _, _ := strings.Cut(given, "=")
		if slices.ContainsFunc(argv, func(a string) bool { return a == option || strings.HasPrefix(a, option+"=") }) {
			return nil
		}
	}
	return slices.Clone(p.file.Unasked)
}

// Layer is the profile as rules: its hosts are allowed, and what it says of questions counts.
func (p *Profile) Layer() Layer {
	return Layer{Name: p.layerName(), Origin: Needs, Network: p.hosts, Asking: p.ask}
}

func (p *Profile) layerName() string { return "profile " + p.Name }

// ParseProfile reads one file, strictly. Errors are of type Problems; what could be read
// is returned all the same.
func ParseProfile(file string, data []byte) (*Profile, error) {
	p := &Profile{Text: data}
	err := Decode(file, data, &p.file)
	if p.Name = p.file.Name; err != nil {
		return p, err
	}
	p.Title, p.Prompts = cmp.Or(p.file.Title, p.file.Name), p.file.Prompts
	return p, p.compile(file).in(file)
}

// compile checks and prepares what the file says.
func (p *Profile) compile(file string) (bad Problems) {
	f := &p.file
	if bad = profileName(f.Name); bad != nil {
		return bad
	}
	if bad = f.variables(); bad != nil {
		return bad
	}
	for _, flag := range f.Unasked {
		if f.Prompts[flag] == "" {
			return wrong(0, 0, "unasked: %q isn't in prompts, which says what it does", flag)
		}
	}
	for _, l := range []textList{f.Match.Paths, f.Match.Modes} {
		if bad = l.globs(); bad != nil {
			return bad
		}
	}
	if bad = f.Brings.check(); bad != nil {
		return bad
	}
	if p.hosts, bad = f.Hosts.allowing(file); bad != nil {
		return bad
	}
	for i := range f.Network {
		rules, bad := f.Network[i].rules(&Layer{Name: p.layerName(), File: file})
		if bad != nil {
			return bad
		}
		p.hosts = append(p.hosts, rules...)
	}
	if p.roots, bad = f.Roots.rules(); bad != nil {
		return bad
	}
	if p.ask, bad = f.Ask.asking(&Layer{Name: p.layerName(), File: file}); bad != nil {
		return bad
	}
	for i := range f.Wrappers {
		w, bad := f.Wrappers[i].compile()
		if bad != nil {
			return bad
		}
		p.wraps = append(p.wraps, w)
	}
	return nil
}

// globs checks each as a pattern.
func (l textList) globs() Problems {
	for _, t := range l {
		if err := checkGlob(t.s); err != nil {
			return t.bad("%w", err)
		}
	}
	return nil
}

// match says whether one of them, as a pattern, fits.
func (l textList) match(s string) bool {
	return slices.ContainsFunc(l, func(t text) bool { return glob(t.s).match(s) })
}

// rules reads each as the words of a rule that is matched argument for argument.
func (l textList) rules() ([]Rule, Problems) {
	var out []Rule
	for _, t := range l {
		r, offset, err := parseRule(Allow, t.s, true)
		if err != nil {
			return nil, wrong(t.line, t.column+offset, "%w", err)
		}
		r.Line = t.line
		out = append(out, r)
	}
	return out, nil
}
