package policy

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// Profile is what is known about one kind of agent. It is immutable.
type Profile struct {
	Name string
	file profileFile

	housekeeping []housekeeping
	wrappers     []wrapper
	hosts        []HostRule
	layer        Layer
}

//go:embed profiles/*.yaml
var profileFiles embed.FS

// profiles are all of them, generic last.
var profiles = sync.OnceValue(func() []*Profile {
	entries, err := profileFiles.ReadDir("profiles")
	if err != nil {
		panic(err)
	}
	var out []*Profile
	var generic *Profile
	for _, e := range entries {
		file := "profiles/" + e.Name()
		data, err := profileFiles.ReadFile(file)
		if err != nil {
			panic(err)
		}
		if e.Name() == "environment.yaml" {
			continue
		}
		p, err := parseProfile(file, data)
		if err != nil {
			panic(err) // the file is part of the program, and tested
		}
		if p.Name == "generic" {
			generic = p
			continue
		}
		out = append(out, p)
	}
	return append(out, generic)
})

type profileFile struct {
	Name  string `yaml:"name"`
	Agent bool   `yaml:"agent"`
	Match struct {
		Programs     []string `yaml:"programs"`     // what argv[0] or the file is called
		Paths        textList `yaml:"paths"`        // globs for the resolved file, or for the script of an interpreter
		Interpreters []string `yaml:"interpreters"` // programs whose first operand is the script
	} `yaml:"match"`
	Env  map[string]string `yaml:"env"`  // set for the agent
	Pass []string          `yaml:"pass"` // names or globs of variables that pass beside the usual ones
	Args []struct {
		Add    []string `yaml:"add"`    // put behind the program's name
		Unless textList `yaml:"unless"` // not when one of these arguments is given
	} `yaml:"args"`
	Hosts        textList `yaml:"hosts"` // what its own service needs
	Home         Home     `yaml:"home"`
	Housekeeping []struct {
		Run     textList `yaml:"run"`     // as a rule that allows
		Paths   textList `yaml:"paths"`   // where the program may be; none: the system's folders
		Scripts textList `yaml:"scripts"` // the last argument is exactly one of these, with holes
		Why     string   `yaml:"why"`
	} `yaml:"housekeeping"`
	Wrappers []struct {
		Run    textList `yaml:"run"`
		Script text     `yaml:"script"`
		Why    string   `yaml:"why"`
	} `yaml:"wrappers"`
	Notes string `yaml:"notes"`
}

// Home is what an agent keeps in its Stepbox home, for a person to know.
// Paths are relative to it.
type Home struct {
	Folders []string `yaml:"folders"`
	Files   []string `yaml:"files"`
	Secrets []string `yaml:"secrets"` // those of them that hold its sign-in
}

// Profiles are the names of all that there are.
func Profiles() []string {
	var out []string
	for _, p := range profiles() {
		out = append(out, p.Name)
	}
	return out
}

// ProfileNamed finds a profile by its name; nil if there is none.
func ProfileNamed(name string) *Profile {
	for _, p := range profiles() {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// ProfileFor finds the profile of a program by what it is called and the file
// that it really is (resolved, may be ""). It is never nil: shells and
// programs nobody knows get "generic".
func ProfileFor(argv []string, resolved string) *Profile {
	all := profiles()
	for _, p := range all[:len(all)-1] {
		if p.is(argv, resolved) {
			return p
		}
	}
	return all[len(all)-1]
}

func (p *Profile) is(argv []string, resolved string) bool {
	m := &p.file.Match
	candidates := []string{resolved}
	if len(argv) > 0 {
		candidates = append(candidates, argv[0])
		if slices.Contains(m.Interpreters, path.Base(argv[0])) || slices.Contains(m.Interpreters, path.Base(resolved)) {
			for _, a := range argv[1:] {
				if !strings.HasPrefix(a, "-") {
					candidates = append(candidates, a)
					break
				}
			}
		}
	}
	for _, c := range candidates {
		if c == "" {
			continue
		}
		if slices.Contains(m.Programs, path.Base(c)) {
			return true
		}
		for _, g := range m.Paths {
			if glob(g.s).match(c) {
				return true
			}
		}
	}
	return false
}

// Agent says whether it is an agent's, whose programs are judged one by one
// even when it was started by another program.
func (p *Profile) Agent() bool { return p.file.Agent }

// Env is what is set for the agent: what turns off a sandbox of its own, which
// can't work in ours, updates and telemetry, and what lets it run as uid 0,
// which is the caller's own uid outside. The caller may change the map.
func (p *Profile) Env() map[string]string { return maps.Clone(p.file.Env) }

// Args is argv with what the agent needs to be told as arguments. The result
// is a new slice.
func (p *Profile) Args(argv []string) []string {
	out := slices.Clone(argv)
	if len(out) == 0 {
		return out
	}
	for _, a := range p.file.Args {
		if !given(argv[1:], a.Unless) {
			out = slices.Insert(out, 1, a.Add...)
		}
	}
	return out
}

func given(args []string, any textList) bool {
	for _, a := range args {
		if a == "--" {
			break
		}
		for _, g := range any {
			if glob(g.s).match(a) {
				return true
			}
		}
	}
	return false
}

// Hosts are those of the agent's own service: signing in and working.
func (p *Profile) Hosts() []HostRule { return slices.Clone(p.hosts) }

// Layer is the profile as rules: its hosts are allowed.
func (p *Profile) Layer() Layer { return p.layer }

// Home is what the agent keeps in its Stepbox home.
func (p *Profile) Home() Home { return p.file.Home }

// parseProfile reads one file, strictly.
func parseProfile(file string, data []byte) (*Profile, error) {
	p := &Profile{}
	if err := decode(file, data, &p.file); err != nil {
		return nil, err
	}
	f := &p.file
	if f.Name == "" {
		return nil, &FileError{File: file, Err: fmt.Errorf("a profile needs a name")}
	}
	p.Name = f.Name
	err := p.compile()
	if fe, ok := err.(*FileError); ok {
		fe.File = file
	}
	return p, err
}

func (p *Profile) compile() (err error) {
	f := &p.file
	for _, g := range f.Match.Paths {
		if err := checkGlob(g.s); err != nil {
			return g.bad(0, err)
		}
	}
	if p.hosts, err = f.Hosts.hosts(); err != nil {
		return err
	}
	p.layer = Layer{Name: "profile " + p.Name, Allow: p.hosts}
	return nil
}

type housekeeping struct{}
type wrapper struct{}

// Peeled is a command without what an agent wrapped around it.
type Peeled struct {
	// Line is the command as a person would write it: the script itself where
	// a wrapper was peeled off, else Line(argv). It is exact, and not escaped.
	Line string
	// Argv is what to judge: a shell with the script, or all of argv.
	Argv    []string
	Wrapped bool
	// Sources are files that the wrapper reads commands from.
	Sources []string
}

// Peel takes off what an agent puts around the commands it runs.
func (p *Profile) Peel(argv []string) Peeled {
	return Peeled{Line: Line(argv), Argv: argv}
}

// Housekeeping says whether a command is the agent's own upkeep.
func (p *Profile) Housekeeping(c Command) bool { return false }

// Root says whether a program is a shell that will be fed commands, or a
// terminal multiplexer: it belongs to no action, and what it starts does.
func (p *Profile) Root(argv []string) bool {
	if len(argv) == 0 {
		return false
	}
	g := grammarOf([]string{path.Base(strings.TrimPrefix(argv[0], "-"))})
	if !g.Shell {
		return false
	}
	_, has, file, _ := shellArgs(words(argv[1:]))
	return !has && (file == nil || isInput(file.text))
}

// Environment is what passes from the person's environment to an agent.
func Environment(host []string, p *Profile) []string { return nil }
