package policy

import (
	"bytes"
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed profiles/*.yaml
var profileFiles embed.FS

// Profiles are the kinds of agents that are known. A set is immutable; nil is the
// built-in one.
type Profiles struct {
	list    []candidate // the person's own first
	generic *Profile    // of programs that nobody knows
}

// candidate is a profile as it is looked for. The rest of a built-in one is read when it is
// needed: a session has use for one or two, and reading all took a tenth of its start.
type candidate struct {
	name  string
	match *matchFile
	own   bool
	whole func() *Profile
}

// BuiltinProfiles are those that are part of the program.
var BuiltinProfiles = sync.OnceValue(func() *Profiles {
	entries, err := profileFiles.ReadDir("profiles")
	if err != nil {
		panic(err) // the files are part of the program, and tested
	}
	ps := &Profiles{}
	for _, e := range entries {
		file := "profiles/" + e.Name()
		data, err := profileFiles.ReadFile(file)
		if err != nil {
			panic(err)
		}
		k := candidate{name: strings.TrimSuffix(e.Name(), ".yaml"), match: &matchFile{}, whole: sync.OnceValue(func() *Profile {
			p, err := ParseProfile(file, data)
			if err != nil {
				panic(err)
			}
			return p
		})}
		if k.name == generic {
			ps.generic = k.whole()
			continue
		}
		if err := Decode(file, below(data, "match"), k.match); err != nil {
			panic(err)
		}
		ps.list = append(ps.list, k)
	}
	return ps
})

// below is what stands indented below a key of a file.
func below(data []byte, key string) (out []byte) {
	_, rest, _ := bytes.Cut(data, []byte("\n"+key+":\n"))
	for line := range bytes.Lines(rest) {
		if line[0] != ' ' {
			break
		}
		out = append(out, line...)
	}
	return out
}

// generic is the profile's name of programs that nobody knows.
const generic = "generic"

// With are these and a person's own, which go first: one of a name that is there takes
// its place.
func (ps *Profiles) With(own ...*Profile) *Profiles {
	ps = ps.orBuiltin()
	out := &Profiles{generic: ps.generic}
	for _, p := range own {
		out.list = append(out.list, candidate{p.Name, &p.file.Match, p.File != "", func() *Profile { return p }})
	}
	for _, k := range ps.list {
		if !slices.ContainsFunc(own, func(o *Profile) bool { return o.Name == k.name }) {
			out.list = append(out.list, k)
		}
	}
	return out
}

func (ps *Profiles) orBuiltin() *Profiles {
	if ps == nil {
		return BuiltinProfiles()
	}
	return ps
}

// For finds the profile of a program by its arguments and the file that it really is,
// links resolved ("": not known). It is never nil: shells, and programs that nobody
// knows, get "generic". So do the helpers that an agent's file also is, under other names.
func (ps *Profiles) For(argv []string, resolved string) *Profile {
	ps = ps.orBuiltin()
	for _, k := range ps.list {
		if k.match.is(argv, resolved) {
			return k.whole()
		}
	}
	return ps.generic
}

// Clash is an error that names them if more than one of the person's own profiles are
// for a program: nobody said which of them counts.
func (ps *Profiles) Clash(argv []string, resolved string) error {
	var first *Profile
	for _, k := range ps.orBuiltin().list {
		switch {
		case !k.own || !k.match.is(argv, resolved):
		case first == nil:
			first = k.whole()
		default:
			return fmt.Errorf("%s and %s are both for this program: change what one of them matches, or remove it", first.File, k.whole().File)
		}
	}
	return nil
}

// Named is a profile by its name; "" is the one of programs that nobody knows. nil: there
// is none of that name.
func (ps *Profiles) Named(name string) *Profile {
	ps = ps.orBuiltin()
	for _, k := range ps.list {
		if k.name == name {
			return k.whole()
		}
	}
	if name == "" || name == generic {
		return ps.generic
	}
	return nil
}

// All lists them, generic last.
func (ps *Profiles) All() (all []*Profile) {
	ps = ps.orBuiltin()
	for _, k := range ps.list {
		all = append(all, k.whole())
	}
	return append(all, ps.generic)
}

// Names lists them.
func (ps *Profiles) Names() string {
	var names []string
	for _, k := range ps.orBuiltin().list {
		names = append(names, k.name)
	}
	return strings.Join(append(names, generic), ", ")
}

// OwnProfile reads a person's own profile. Beside what is wrong in any, one is refused
// that is for programs which are no agent in particular: all of them would be let do what
// the agent may.
func OwnProfile(file string, data []byte) (*Profile, error) {
	p, err := ParseProfile(file, data)
	if p.File = file; err == nil {
		err = p.file.Match.narrow(p.Name).in(file)
	}
	return p, err
}

// MayBe says whether a profile that can't be used may be the one for a program: it is, or
// not even what it matches could be read.
func (p *Profile) MayBe(argv []string, resolved string) bool {
	m := &p.file.Match
	known := len(m.Programs)+len(m.Paths) > 0 && m.narrow(p.Name) == nil
	return !known || m.is(argv, resolved)
}

// anything are files whose names nobody chose: what matches one matches everything.
var anything = []string{"zq", "/usr/bin/zq", "/opt/zq/zq/zq.js", "/home/zq/.zq/bin/zq.py", "/usr/lib/zq/zq/zq/zq"}

// narrow says what is wrong with how a person's own profile recognises an agent.
func (m *matchFile) narrow(name string) Problems {
	switch {
	case name == generic:
		return wrong(0, 0, "generic is of programs that no profile is for: give yours another name")
	case len(m.Programs)+len(m.Paths) == 0:
		return wrong(0, 0, "it has to say in match: which programs or paths it is for")
	}
	for _, p := range m.Programs {
		switch {
		case p == "" || strings.ContainsAny(p, "/*?[{"):
			return wrong(0, 0, "match: programs are names of files, as my-agent.py, and not %q: patterns are for paths", p)
		case RunsScripts(p) || slices.Contains(m.Interpreters, p):
			return wrong(0, 0, "match: %s runs all sorts of scripts: name the script in programs or paths, and %s in interpreters", p, p)
		}
	}
	for _, t := range m.Paths {
		if slices.ContainsFunc(anything, func(f string) bool { return glob(t.s).match(f) }) || t.s == "" {
			return t.bad("%q matches every program", t.s)
		}
		if RunsScripts(path.Base(t.s)) {
			return t.bad("%q runs all sorts of scripts: name the script, and this in interpreters", t.s)
		}
	}
	return nil
}

// interpreters are programs that no agent is by itself.
var interpreters = []string{"node", "bun", "deno", "python", "ruby", "perl", "php", "java", "env", "npx", "uv", "uvx"}

// RunsScripts says whether a program of this name runs what its first argument names.
func RunsScripts(name string) bool {
	versioned := strings.TrimRight(name, "0123456789.") // python3.11
	return slices.Contains(interpreters, name) || slices.Contains(interpreters, versioned) || grammarOf([]string{name}).Shell
}

// profileName says what is wrong with a profile's name, which its agents' home is called.
func profileName(s string) Problems {
	if s == "" || len(s) > 40 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || s[0] == '-' {
		return wrong(0, 0, "a profile needs a name, of at most 40 small letters, digits and hyphens, and not %q", s)
	}
	return nil
}

// variables checks the names of those that a profile speaks of.
func (f *profileFile) variables() Problems {
	names := slices.Concat(f.Pass, f.Wants, f.Secret)
	for name := range f.Env {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := CheckGiven(name); err != nil {
			return wrong(0, 0, "%w", err)
		}
	}
	return nil
}

// Saying is what a profile says, for people who look at it.
type Saying struct {
	Programs, Paths, Interpreters []string
	Pass, Args                    []string
	Set                           []Variable
	SignIn                        string // how a person signs in, in words
	Wrappers                      int    // how many kinds
}

// Says is what the profile says.
func (p *Profile) Says() Saying {
	f := &p.file
	out := Saying{
		Programs: slices.Clone(f.Match.Programs), Interpreters: slices.Clone(f.Match.Interpreters),
		Pass: slices.Clone(f.Pass), Args: slices.Clone(f.Args), SignIn: f.SignIn, Wrappers: len(f.Wrappers),
	}
	for _, t := range f.Match.Paths {
		out.Paths = append(out.Paths, t.s)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		out.Set = append(out.Set, Variable{Name: name, Value: f.Env[name]})
	}
	return out
}
