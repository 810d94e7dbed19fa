package session

import (
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/session/api"
)

// hide puts something in the place of secrets in what is recorded.
func (s *Session) hide(doc []byte) (out []byte, same bool) { return s.secrets.JSON(doc, "") }

// held are variables without those that have a placeholder, which is no secret.
func (s *Session) held(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		_, value, _ := strings.Cut(e, "=")
		return slices.ContainsFunc(s.credentials, func(c policy.Credential) bool { return c.Placeholder() == value })
	})
}

// variables are those that the person gave the session, without secrets.
func (s *Session) variables() (out []string) {
	for _, v := range s.cfg.Vars {
		name, _, _ := strings.Cut(v, "=")
		i := slices.IndexFunc(s.outfit.Spec.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		switch {
		case i < 0 || slices.Contains(s.outfit.Unset, name):
		case api.SecretName(name) || slices.Contains(s.profile.Secret(), name):
			out = append(out, name+"="+api.Hidden)
		default:
			out = append(out, s.secrets.Text(api.Escape(s.outfit.Spec.Env[i]), ""))
		}
	}
	return out
}

// tellVariables says which variables the agent lacks.
func (s *Session) tellVariables() {
	if names := s.outfit.Unset; len(names) > 0 {
		s.note(true, "%s to be passed to the agent and %s set here; --env NAME=VALUE gives a value", joined(names, "was", "were"), be(names, "isn't", "aren't"))
	}
	if names := s.outfit.Lacking; len(names) > 0 {
		s.note(true, "%s passed to the agent; --env %s %s", joined(names, "isn't", "aren't"), strings.Join(names, " --env "), be(names, "does", "do"))
	}
}

// joined is a few names and a verb.
func joined(names []string, one, many string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0] + " " + one
	}
	return strings.Join(names[:last], ", ") + " and " + names[last] + " " + many
}

func be(names []string, one, many string) string {
	if len(names) == 1 {
		return one
	}
	return many
}
