package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/session/api"
)

// Commands are the rules that may be made of a simple command, from narrow to wide.
func Commands(words []string) (out []api.Proposal) {
	add := func(p api.Proposal) {
		if !slices.ContainsFunc(out, func(o api.Proposal) bool { return o.Pattern == p.Pattern }) {
			out = append(out, p)
		}
	}
	if exact, ok := Exactly(words); ok {
		add(api.Proposal{Pattern: exact, Means: "exactly this command"})
	}
	// What stands before the first option says what a program is to do: git push, go test.
	said := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-") })
	if said < 0 {
		said = len(words)
	}
	for n := min(said, len(words)-1, 3); n > 1; n-- {
		if head, ok := Exactly(words[:n]); ok {
			add(api.Proposal{Pattern: head + " *", Means: api.Escape(strings.Join(words[:n], " ")) + ", whatever comes after it"})
		}
	}
	if name, ok := Exactly(words[:1]); ok {
		add(api.Proposal{Pattern: name + " *", Means: "every " + api.Escape(words[0]) + " command, also those that other rules ask about"})
	}
	return out
}

// Hosts are the rules that may be made of a destination, from narrow to wide.
func Hosts(to policy.Destination) (out []api.Proposal) {
	rule := policy.HostRule{Name: to.Name, First: to.Port, Last: to.Port, Protocol: to.Protocol}
	what := api.Escape(to.Name)
	if to.Name == "" {
		a := to.Addr.Unmap().WithZone("")
		rule.Net, what = netip.PrefixFrom(a, a.BitLen()), a.String()
	}
	port := fmt.Sprintf(" at port %d", to.Port)
	if to.Port == 0 {
		port = ""
	}
	add := func(r policy.HostRule, means string) {
		out = append(out, api.Proposal{Pattern: r.String(), Means: means})
	}
	add(rule, what+port+" by "+string(to.Protocol))
	if to.Name == policy.HostService {
		return out
	}
	wide := rule
	if _, above, ok := strings.Cut(to.Name, "."); ok && strings.Contains(above, ".") {
		wide.Name = "*." + above
		add(wide, "every name below "+api.Escape(above)+port)
	}
	if to.Port != 0 {
		wide = rule
		wide.First, wide.Last = 0, 0
		add(wide, what+" at any port")
	}
	return slices.DeleteFunc(out, func(p api.Proposal) bool {
		r, err := policy.ParseHost(p.Pattern)
		return err != nil || !r.Match(to)
	})
}

// Shapes says whether a rule that [Commands] proposed is about a command word for word: exactly this one, or one that
// begins so.
func Shapes(pattern string, argv []string) bool {
	if exact, ok := Exactly(argv); ok && exact == pattern {
		return true
	}
	for n := range argv {
		if head, ok := Exactly(argv[:n+1]); ok && head+" *" == pattern {
			return true
		}
	}
	return false
}

// About says whether a rule on commands is about a line as a person would write it, as
// actions are called.
func About(pattern string) (func(line string) bool, error) {
	r, err := policy.ParseRule(policy.Allow, pattern)
	if err != nil {
		return nil, err
	}
	r.Verdict = policy.Deny // the strictest, so that nothing else in the line hides it
	none := &policy.Policy{}
	p := none.With(policy.Layer{Name: "proposed", Rules: []policy.Rule{r}})
	return func(line string) bool {
		if i := strings.LastIndex(line, " [runs "); i > 0 {
			line = line[:i]
		}
		return p.Command(policy.Command{Argv: []string{"sh", "-c", line}}).Verdict == policy.Deny
	}, nil
}
