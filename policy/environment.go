package policy

import (
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed environment.yaml
var environmentYAML []byte

// passing are the variables that pass to every agent.
var passing = sync.OnceValue(func() []string {
	var f struct {
		Pass []string `yaml:"pass"`
	}
	if err := Decode("environment.yaml", environmentYAML, &f); err != nil {
		panic(err) // the file is part of the program, and tested
	}
	return f.Pass
})

// How an environment gets a variable without a rule.
const (
	VariableSet    = "set"    // by the profile
	VariablePassed = "passed" // from the person's
)

// Gets says how an agent's environment gets a variable by its profile, and the value that
// is set; "" is not at all.
func (p *Profile) Gets(name string) (value, how string) {
	if value, set := p.file.Env[name]; set {
		return value, VariableSet
	}
	if slices.Contains(passing(), name) || slices.Contains(p.file.Pass, name) {
		return "", VariablePassed
	}
	return "", ""
}

// maxValue bounds what passes: no setting of a terminal or an editor is longer.
const maxValue = 4096

// Environment is what an agent's environment gets from the person's (host, each
// NAME=value) and from its profile: variables that are known to carry no
// secret, those that the profile names, and those that it sets. HOME, PATH and
// PWD aren't among them, since they say what the sandbox looks like.
func Environment(host []string, p *Profile) []string {
	// What is set turns off a sandbox of the agent's own, which can't work in
	// ours, and updates and telemetry, and lets it run as uid 0, which is the
	// person's own uid outside.
	set := p.file.Env
	var out []string
	seen := map[string]bool{}
	for _, e := range host {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" || seen[name] || len(value) > maxValue {
			continue
		}
		if _, own := set[name]; own {
			continue
		}
		if slices.Contains(passing(), name) || slices.Contains(p.file.Pass, name) {
			seen[name] = true
			out = append(out, e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		out = append(out, name+"="+set[name])
	}
	return out
}
