package rules

import (
	"strings"

	"stepbox/policy"
	"stepbox/session/api"
)

// Beaten is the rule that decides wherever one that was just made would, in words and
// with where it stands; "" if that one decides, or only some of what it is about is
// decided by another. Words may need escaping. Project and home are the sandbox's folders.
func Beaten(p *policy.Policy, r api.Rule, project, home string) string {
	var j policy.Judgement
	if r.Command != "" {
		argv := example(r.Command)
		if argv == nil {
			return ""
		}
		j = p.Command(policy.Command{Argv: argv, Cwd: project, Project: project, Home: home})
	} else {
		h, err := policy.ParseHost(r.Host)
		if err != nil {
			return ""
		}
		j = p.Connect(exampleOf(h), policy.Nobody)
	}
	if j.Layer == "" || j.Verdict == policy.Verdict(r.Verdict) {
		return ""
	}
	return j.From()
}

// exampleOf is a destination that a rule is about, and as few narrower ones as can be.
func exampleOf(h policy.HostRule) policy.Destination {
	d := policy.Destination{Name: h.Name, Port: h.Last, Protocol: h.Protocol}
	if above, ok := strings.CutPrefix(h.Name, "*"); ok {
		if d.Name = "any-other-name" + above; above == "" {
			d.Name = "any-other-name.invalid"
		}
	}
	if h.Net.IsValid() {
		d.Addr = h.Net.Addr()
	}
	if d.Port == 0 {
		d.Port = 65535
	}
	if d.Protocol != policy.UDP && d.Protocol != policy.ICMP {
		d.Protocol = policy.TCP
	}
	return d
}

// example is a command that a rule is about; nil where none can be told.
func example(text string) (argv []string) {
	words := policy.Words(text)
	for i, w := range words {
		if w == "**" || w == "*" && i == len(words)-1 {
			continue // any number of arguments, and so none
		}
		arg, ok := exampleWord(w)
		if !ok {
			return nil
		}
		argv = append(argv, arg)
	}
	return argv
}

// exampleWord is an argument that a word of a rule is about, of alternatives the first.
func exampleWord(w string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(w) && w[i] != '|'; i++ {
		switch c := w[i]; {
		case c == '<' && i == 0, c == '[':
			return "", false
		case c == '\\' && i+1 < len(w):
			i++
			b.WriteByte(w[i])
		case c == '?':
			b.WriteByte('x')
		case c != '*':
			b.WriteByte(c)
		}
	}
	if b.Len() == 0 {
		return "x", true
	}
	return b.String(), true
}
