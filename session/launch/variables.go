package launch

import (
	"fmt"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/redact"
)

// Given checks variables that a person gives an agent, each NAME or NAME=VALUE, of an
// environment that has the former.
func Given(vars, env []string) error {
	for _, v := range vars {
		if err := policy.CheckGiven(v); err != nil {
			return fmt.Errorf("--env: %w", err)
		}
		has := func(e string) bool { return strings.HasPrefix(e, v+"=") }
		if !strings.Contains(v, "=") && !slices.ContainsFunc(env, has) {
			return fmt.Errorf("--env %s: it isn't set here: set it, or give it a value as --env %s=VALUE", api.Escape(v), api.Escape(v))
		}
	}
	return nil
}

// Beware says what a person may not expect of variables that they give.
func Beware(vars []string) (out []string) {
	for _, v := range vars {
		if name, _, _ := strings.Cut(v, "="); policy.LoadsCode(v) {
			out = append(out, fmt.Sprintf("--env %s: programs run what it names beside what they are", name))
		}
	}
	return out
}

// latest leaves out what is said of a variable before it is said otherwise.
func latest(vars []string) (out []string) {
	for _, v := range vars {
		name, _, _ := strings.Cut(v, "=")
		out = append(slices.DeleteFunc(out, func(o string) bool {
			of, _, _ := strings.Cut(o, "=")
			return of == name
		}), v)
	}
	return out
}

// keepable are variables as they may be kept on the disk: a secret one is its name alone,
// and passes from the environment of whoever goes on with the session.
func keepable(vars, environ []string) (out []string) {
	secrets := redact.Recording(environ, nil)
	for _, v := range vars {
		name, _, _ := strings.Cut(v, "=")
		if api.SecretName(name) || secrets.Hides([]string{v}) {
			v = name
		}
		out = append(out, v)
	}
	return out
}
