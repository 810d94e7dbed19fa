package rules

import (
	"errors"
	"fmt"
	"strings"

	"stepbox/policy"
	"stepbox/session/api"
)

// Layer makes rules that a person made in a session a layer, the first of which
// decides.
func Layer(name string, made []api.Rule) (policy.Layer, error) {
	l := policy.Layer{Name: name}
	for _, r := range made {
		if r.Command != "" {
			rule, err := policy.ParseRule(policy.Verdict(r.Verdict), r.Command)
			if err != nil {
				return l, err
			}
			rule.Why = r.Why
			l.Rules = append(l.Rules, rule)
			continue
		}
		host, err := policy.ParseHost(r.Host)
		if err != nil {
			return l, err
		}
		l.Network = append(l.Network, policy.NetRule{Verdict: policy.Verdict(r.Verdict), Host: host, Why: r.Why})
	}
	return l, nil
}

// Named is the layer of the hosts that a session was started with; what can't be read of
// them isn't in it.
func Named(hosts []string) (policy.Layer, error) {
	l := policy.Layer{Name: "--allow-host", Origin: policy.Given}
	var failed error
	for _, h := range hosts {
		host, err := policy.ParseHost(h)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		l.Network = append(l.Network, policy.NetRule{Verdict: policy.Allow, Host: host})
	}
	return l, failed
}

// Checked is a rule as it is kept, or what is wrong with it.
func Checked(r api.Rule) (api.Rule, error) {
	if r.Verdict != api.Allow && r.Verdict != api.Deny && r.Verdict != api.Ask {
		return r, api.Problemf(api.CodeUsage, "a rule says allow, deny or ask, not %q", api.Escape(string(r.Verdict)))
	}
	if (r.Command == "") == (r.Host == "") {
		return r, api.Problemf(api.CodeUsage, "a rule is about a command, or about a host")
	}
	switch r.For {
	case "":
		r.For = api.ExtentSession
	case api.ExtentSession, api.ExtentProject, api.ExtentAlways:
	default:
		return r, api.Problemf(api.CodeUsage, "a rule holds for a session, a project or always, not for %q", api.Escape(string(r.For)))
	}
	r.Command = strings.Join(policy.Words(r.Command), " ")
	err := CheckText(r.Command + r.Host + r.Why)
	if err == nil && len(r.Why) > policy.MaxWhy {
		err = fmt.Errorf("why is one line of at most %d bytes", policy.MaxWhy)
	}
	if err == nil {
		_, err = Layer("", []api.Rule{r})
	}
	if err != nil {
		return r, api.Problemf(api.CodeUsage, "%s", api.Escape(err.Error()))
	}
	if h, err := policy.ParseHost(r.Host); err == nil {
		r.Host = h.String()
	}
	return r, nil
}
