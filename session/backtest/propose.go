package backtest

import (
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/rules"
)

// siblings is how many things alike must have been approved before a rule is about more
// than them.
const siblings = 3

const contradicted = "it was both approved and denied"

// learnHosts proposes rules on destinations: each with its port and protocol as it was
// asked about, and names below one name together once several of them were approved and
// none was denied.
func (l *lessons) learnHosts() {
	all := sorted(l.hosts)
	groups := make(map[string][]*lesson)
	var parents []string
	for _, x := range all {
		if p := parent(x); p != "" && x.approved > 0 && x.denied == 0 {
			if groups[p] == nil {
				parents = append(parents, p)
			}
			groups[p] = append(groups[p], x)
		}
	}
	in := make(map[*lesson]bool)
	for _, p := range parents {
		if len(groups[p]) < siblings || slices.ContainsFunc(all, func(x *lesson) bool { return x.denied > 0 && below(x, groups[p][0]) }) {
			continue
		}
		l.propose(api.Rule{Verdict: api.Allow, Host: p}, groups[p]...)
		for _, x := range groups[p] {
			in[x] = true
		}
	}
	for _, x := range all {
		switch {
		case in[x]:
		case x.approved > 0 && x.denied > 0:
			l.leave(x.pattern, contradicted)
		case x.approved >= l.times:
			l.propose(api.Rule{Verdict: api.Allow, Host: x.pattern}, x)
		case x.denied >= l.times:
			l.propose(api.Rule{Verdict: api.Deny, Host: x.pattern}, x)
		}
	}
}

// parent is the rule for all names beside a destination's; "" where these aren't one
// owner's: below a name such as co.uk or github.io anybody has a name.
func parent(x *lesson) string {
	_, above, ok := strings.Cut(x.to.Name, ".")
	if !ok {
		return ""
	}
	if _, err := publicsuffix.EffectiveTLDPlusOne(above); err != nil {
		return ""
	}
	to := x.to
	to.Name = above
	return "*." + to.String()
}

// below says whether a destination's name stands beside another's, or below it.
func below(x, sibling *lesson) bool {
	_, above, _ := strings.Cut(sibling.to.Name, ".")
	return x.to.Name == above || strings.HasSuffix(x.to.Name, "."+above)
}

// learnCommands proposes rules on commands: exactly as they were answered, and with any
// word in one place once several differed there alone.
func (l *lessons) learnCommands() {
	all := sorted(l.commands)
	in := make(map[*lesson]bool)
	for _, g := range l.alike(all) {
		r := api.Rule{Verdict: api.Allow, Command: g.pattern}
		if l.touches(l.denied, r) {
			continue
		}
		l.propose(r, g.of...)
		for _, x := range g.of {
			in[x] = true
		}
	}
	for _, x := range all {
		allow, deny := api.Rule{Verdict: api.Allow, Command: x.pattern}, api.Rule{Verdict: api.Deny, Command: x.pattern}
		switch {
		case in[x]:
		case x.approved > 0 && x.denied > 0:
			l.leave(x.pattern, contradicted)
		case x.approved >= l.times && l.touches(l.denied, allow):
			l.leave(x.pattern, "it was denied as a part of something else")
		case x.approved >= l.times:
			l.propose(allow, x)
		case x.denied >= l.times && !x.alone:
			l.leave(x.pattern, "it was denied together with something else, and which of them was meant isn't known")
		case x.denied >= l.times && l.touches(l.approved, deny):
			l.leave(x.pattern, "a rule that denies it would deny what was approved, too")
		case x.denied >= l.times:
			l.propose(deny, x)
		}
	}
}

// touches says whether a rule would be about any of some starts.
func (l *lessons) touches(starts []judgedStart, r api.Rule) bool {
	return slices.ContainsFunc(starts, func(s judgedStart) bool { return l.decides(s, r, "") })
}

// likeness is approved commands that differ in one word.
type likeness struct {
	pattern string
	of      []*lesson
}

// alike finds approved commands of which several differ in one word alone, that is no
// option and none that the rule which asks about them names.
func (l *lessons) alike(all []*lesson) (out []likeness) {
	in := make(map[*lesson]bool)
	for _, x := range all {
		for i := max(x.fixed, 1); i < len(x.words) && !in[x]; i++ {
			g := likeness{}
			for _, y := range all {
				if !in[y] && y.approved > 0 && y.denied == 0 && y.fixed == x.fixed && differ(x.words, y.words, i) {
					g.of = append(g.of, y)
				}
			}
			if x.denied > 0 || len(g.of) < siblings {
				continue
			}
			if g.pattern = anyAt(x.words, i); g.pattern == "" {
				continue
			}
			out = append(out, g)
			for _, y := range g.of {
				in[y] = true
			}
		}
	}
	return out
}

// differ says whether two commands are the same but for one word, which is no option in
// either.
func differ(a, b []string, at int) bool {
	return len(a) == len(b) && !strings.HasPrefix(a[at], "-") && !strings.HasPrefix(b[at], "-") && slices.Equal(a[:at], b[:at]) && slices.Equal(a[at+1:], b[at+1:])
}

// anyWord is any word but an option, and but those that turn a command into another for
// git: what is forced (+main) and what is deleted (:main).
const anyWord = "[!+:-]*"

// anyAt is the rule for a command with any word but an option in one place.
func anyAt(words []string, at int) string {
	head, ok := rules.Exactly(words[:at])
	if !ok {
		return ""
	}
	out := head + " " + anyWord
	if at+1 < len(words) {
		tail, ok := rules.Exactly(words[at+1:])
		if !ok {
			return ""
		}
		out += " " + tail
	}
	return out
}

// named is how many words of a command a rule names, by what the rule says: what it asks
// about is theirs, and what comes after them is the command's own.
func named(rule string) int {
	text, _, _ := strings.Cut(rule, ": ")
	n := 0
	for i, f := range policy.Words(text) {
		if i == 0 { // ask
			continue
		}
		if strings.ContainsAny(f[:1], "-<*") {
			break
		}
		n++
	}
	return max(n, 1)
}
