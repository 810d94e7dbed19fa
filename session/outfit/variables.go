package outfit

import (
	"slices"
	"strings"
)

// variables adds what a policy says of the environment.
func variables(env []string, n Needs) []string {
	pass, set := n.Rules.Variables()
	has := func(name string) bool {
		return slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
	}
	for _, v := range pass {
		if value := Variable(n.Env, v.Name); value != "" && !has(v.Name) {
			env = append(env, v.Name+"="+value)
		}
	}
	for _, v := range set {
		env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, v.Name+"=") })
		env = append(env, v.Name+"="+v.Value)
	}
	return env
}

// withGiven adds what the person gives this session, over all else. Unset are those that were
// to pass and that the person hasn't.
func withGiven(env []string, n Needs) (out, unset []string) {
	for _, v := range n.Vars {
		name, _, set := strings.Cut(v, "=")
		if !set {
			i := slices.IndexFunc(n.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
			if i < 0 {
				unset = append(unset, name)
				continue
			}
			v = n.Env[i]
		}
		env = append(slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") }), v)
	}
	return env, unset
}

// lacking are the variables that the agent would read, that the person has and that it
// doesn't get.
func lacking(env []string, n Needs) (out []string) {
	for _, name := range n.Profile.Wants() {
		has := slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		if !has && Variable(n.Env, name) != "" {
			out = append(out, name)
		}
	}
	return out
}
