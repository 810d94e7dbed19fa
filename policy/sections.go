package policy

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Variable is one of the environment.
type Variable struct {
	Name, Value string // Value is "" of those that pass
	Where
}

// variables are names and values, and where each stood.
type variables []struct{ name, value setting }

func (v *variables) read(n ast.Node) Problems {
	var d decoder
	for name, e := range d.mapping(n) {
		of := struct{ name, value setting }{name: setting{text{placeOf(e.Key), name}}}
		bad := of.value.read(e.Value)
		if d.add(bad); bad == nil {
			*v = append(*v, of)
		}
	}
	return d.problems
}

// checkName says what is wrong with a variable's name.
func checkName(s string) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
	if s == "" || strings.Trim(s, letters+"0123456789") != "" || strings.Trim(s[:1], letters) != "" {
		return fmt.Errorf("%q is no name of a variable: those have letters, digits and underscores; patterns aren't read", s)
	}
	if slices.Contains([]string{"HOME", "PATH", "PWD"}, s) {
		return fmt.Errorf("%s is the sandbox's own", s)
	}
	return nil
}

// CheckGiven says what is wrong with a variable that a person gives a session, as NAME or
// NAME=VALUE. No error has the value.
func CheckGiven(variable string) error {
	name, value, _ := strings.Cut(variable, "=")
	if err := checkName(name); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(name, "LD_"):
		return fmt.Errorf("%s has every program load what isn't its own, so that nothing would be what it looks like", name)
	case strings.ContainsRune(value, 0):
		return fmt.Errorf("the value of %s holds a NUL byte, which no variable can", name)
	case len(value) > maxVariable:
		return fmt.Errorf("the value of %s has %d bytes: at most %d are passed", name, len(value), maxVariable)
	}
	return nil
}

// maxVariable bounds the value of a variable that a person gives: keys in files of JSON are
// given so, too. Linux takes twice as much.
const maxVariable = 64 << 10

// Names are the addresses that host names have in the sandbox.
type Names struct {
	Range netip.Prefix
	Where
}

func (s *setting) names(l *Layer) ([]Names, Problems) {
	if s == nil {
		return nil, nil
	}
	p, err := netip.ParsePrefix(s.s)
	if err != nil || !p.Addr().Is4() || p != p.Masked() || p.Bits() < 8 || p.Bits() > 24 {
		return nil, s.bad("names have addresses of an IPv4 network of 8 to 24 bits, as 100.64.0.0/10, not of %q", s.s)
	}
	return []Names{{p, s.where(l)}}, nil
}

// Mount is what programs see of the host beside the project.
type Mount struct {
	Path  string // absolute, or from ~/ on
	Write bool
	Where
}

// Asking is what becomes of questions.
type Asking struct {
	On      string        // "wait", "deny", or "" where nothing is said
	Timeout time.Duration // 0: nothing is said
	Where
}

// Check is a command that a person wants run on a session's files.
type Check struct {
	Command string
	Where
}

// sections puts what isn't a rule on commands or connections into a layer.
func (f *layerFile) sections(l *Layer) (all Problems) {
	for _, k := range []struct {
		texts textList
		into  *[]FileRule
	}{{f.Files.Hide, &l.Hide}, {f.Files.ReadOnly, &l.ReadOnly}, {f.Files.Review, &l.Review}} {
		for _, t := range k.texts {
			r, err := parseFile(t.s)
			if r.Where = t.where(l); err != nil {
				all = append(all, t.bad("%w", err)...)
				continue
			}
			*k.into = append(*k.into, r)
		}
	}
	limits, bad := readLimits(l, f.Limits.At, f.Limits.texts())
	l.Limits, all = limits, append(all, bad...)
	all = append(all, f.Environment.into(l)...)
	all = append(all, f.mounts(l)...)
	all = append(all, f.credentials(l)...)
	names, bad := f.Names.names(l)
	l.Names, all = names, append(all, bad...)
	asking, bad := f.Ask.asking(l)
	l.Asking, all = asking, append(all, bad...)
	return append(all, f.checks(l)...)
}

func (f *layerFile) mounts(l *Layer) (all Problems) {
	for i := range f.Mounts {
		m := &f.Mounts[i]
		p := path.Clean(m.Path.s)
		fromHome := strings.HasPrefix(m.Path.s, "~/") && p != "~"
		if !fromHome && (!path.IsAbs(p) || p == "/") || slices.Contains(strings.Split(m.Path.s, "/"), "..") {
			all = append(all, m.bad("a mount needs a path, absolute or from ~/ on and without %q", "..")...)
			continue
		}
		l.Mounts = append(l.Mounts, Mount{p, m.Write, m.where(l)})
	}
	return all
}

func (f *layerFile) checks(l *Layer) (all Problems) {
	if n := len(f.Checks); n > maxChecks {
		all = f.Checks[0].bad("%d checks are too many: at most %d are run", n, maxChecks)
	}
	for _, t := range f.Checks {
		if l.Checks = append(l.Checks, Check{t.s, t.where(l)}); strings.TrimSpace(t.s) == "" {
			all = append(all, t.bad("a check is a command")...)
		}
	}
	return all
}

func (f *variablesFile) into(l *Layer) (all Problems) {
	for _, t := range f.Pass {
		if err := checkName(t.s); err != nil {
			all = append(all, t.bad("%w", err)...)
		}
		l.Pass = append(l.Pass, Variable{Name: t.s, Where: t.where(l)})
	}
	for _, v := range f.Set {
		if err := checkName(v.name.s); err != nil {
			all = append(all, v.name.bad("%w", err)...)
		}
		if len(v.value.s) > maxValue {
			all = append(all, v.value.bad("a value has at most %d bytes", maxValue)...)
		}
		l.Set = append(l.Set, Variable{v.name.s, v.value.s, v.name.where(l)})
	}
	return all
}

func (f *askFile) asking(l *Layer) ([]Asking, Problems) {
	if f.On == nil && f.Timeout == nil {
		return nil, nil
	}
	out := Asking{Where: f.where(l)}
	if f.On != nil {
		if out.On = f.On.s; out.On != "wait" && out.On != "deny" {
			return nil, f.On.bad("questions wait or are denied: use wait or deny, not %q", out.On)
		}
	}
	if f.Timeout != nil {
		n, err := seconds(f.Timeout.s)
		if err != nil {
			return nil, f.Timeout.bad("%w", err)
		}
		out.Timeout = time.Duration(n * float64(time.Second))
	}
	return []Asking{out}, nil
}
