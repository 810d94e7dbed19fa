package explain

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/rules"
)

// How a variable of the environment is treated.
const (
	varSet    = "set"      // by rules or the profile, whatever the person's own is
	varPassed = "passed"   // as it is in the person's environment
	varKept   = "kept out" // the agent doesn't get it
)

// valueOf is what a variable is set to, as it is shown.
func valueOf(v policy.Variable) string {
	if api.SecretName(v.Name) {
		return api.Hidden
	}
	return v.Value
}

// variable says how a variable of the environment is treated.
func variable(r holding, name string) (api.Explained, error) {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return api.Explained{}, api.Problemf(api.CodeUsage, "%q is no name of a variable", api.Escape(name))
	}
	out := api.Explained{What: api.Escape(name), Treated: varKept, Ruling: api.Ruling{Rule: "no rule passes it, and it may hold a secret"}}
	pass, set := r.policy.Variables()
	named := func(v policy.Variable) bool { return v.Name == name }
	if i := slices.IndexFunc(set, named); i >= 0 {
		v := set[i]
		out.Treated, out.Ruling = varSet, ruling("set to "+valueOf(v), v.Where)
		return out, nil
	}
	value, how := r.profile.Gets(name)
	if i := slices.IndexFunc(pass, named); i >= 0 && how != policy.VariableSet {
		v := pass[i]
		out.Treated, out.Ruling = varPassed, ruling("passed on", v.Where)
		return out, nil
	}
	switch {
	case slices.Contains([]string{"HOME", "PATH", "PWD"}, name):
		out.Treated, out.Ruling = varSet, api.Ruling{Rule: "it is the sandbox's own", Layer: "built-in"}
	case how == policy.VariableSet:
		out.Treated, out.Ruling = varSet, ruling("set to "+value, policy.Where{Layer: "profile " + r.profile.Name})
	case how == policy.VariablePassed:
		out.Treated, out.Ruling = varPassed, ruling("passed on, since it is known to carry no secret or the agent needs it", policy.Where{Layer: "profile " + r.profile.Name})
	}
	return out, nil
}

// started are the limits that a session has from its start, whatever policies say.
var started = []string{"memory", "cpus", "pids", "disk", "wall-time"}

// limit says what bounds something, and what happens there.
func limit(r holding, name string) (api.Explained, error) {
	if !slices.Contains(policy.LimitNames(), name) {
		return api.Explained{}, api.Problemf(api.CodeUsage, "there is no limit %q: there are %s", api.Escape(name), strings.Join(policy.LimitNames(), ", "))
	}
	out := api.Explained{What: api.Escape(name), Treated: "unlimited", Ruling: api.Ruling{Rule: "no rule limits it"}}
	l, ok := r.policy.Limit(name)
	if !ok && slices.Contains(started, name) {
		out.Treated = "set at the start"
		out.Ruling.Rule += ": limits." + name + " of stepbox config show does, as a session starts, or a flag"
	}
	if !ok {
		if r.session.ID != "" {
			out.Notes = append(out.Notes, "flags of this session's start may limit it all the same; stepbox show tells")
		}
		return out, nil
	}
	out.Treated, out.Ruling = "limited", ruling(l.String(), l.Where)
	for _, layer := range r.policy.Layers() {
		for _, o := range layer.Limits {
			if o.Name == name && o != l {
				out.Notes = append(out.Notes, api.Escape(fmt.Sprintf("%s isn't as small, or comes later", o.From())))
			}
		}
	}
	return out, nil
}

// sections are those that say one thing of a whole session.
var sections = []string{"names", "ask", "checks"}

const checked = "each is run on a session's files before they are applied"

// section says what holds of one of the sections, and which file says so.
func section(r holding, name string) (api.Explained, error) {
	out := api.Explained{What: api.Escape(name), Treated: "usual"}
	switch name {
	case "names":
		out.Ruling = api.Ruling{Rule: "no rule chooses the network that names have addresses of"}
		if n := r.policy.Names(); n.Range.IsValid() {
			out.Treated, out.Ruling = varSet, ruling("names have addresses of "+n.Range.String(), n.Where)
		}
	case "ask":
		out.Ruling = api.Ruling{Rule: "questions wait until they are answered"}
		held := r.session.Asking // by its flags and policies
		for _, a := range r.policy.Asking() {
			was := held
			if held = held.Stricter(api.Asking{On: api.OnAsk(a.On), Timeout: a.Timeout}); r.session.ID == "" && (was.On != held.On || was.Timeout != held.Timeout) {
				out.Ruling = ruling("", a.Where)
			}
		}
		if words := held.Words(); words != "" {
			out.Treated, out.Rule = varSet, words
		}
	case "checks":
		out.Ruling = api.Ruling{Rule: "nothing is run on a session's files before they are applied, but by --check"}
		for _, l := range r.layers {
			for _, c := range l.Whole.Checks {
				where := fmt.Sprintf("%s (%s:%d)", c.Command, c.File, c.Line)
				if l.Path != filepath.Join(r.project, rules.Name) {
					where += " isn't run: the project's own file says what is"
				} else if out.Treated = varSet; out.Layer == "" {
					out.Ruling = ruling(checked, c.Where)
				}
				out.Notes = append(out.Notes, api.Escape(where))
			}
		}
	default:
		return out, api.Problemf(api.CodeUsage, "there is no such section to explain, %q: there are %s", api.Escape(name), strings.Join(sections, ", "))
	}
	return out, nil
}
