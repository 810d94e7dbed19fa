package policy

import (
	"path"
	"slices"
	"strings"
)

// Origin is whose word a layer is, as far as that matters beyond its place.
type Origin int

const (
	Standing Origin = iota // it was there before: built in, or a file
	Needs                  // what an agent itself needs, by its profile
	Given                  // the person gave it for this very session
)

// Layer is one source of rules. It is immutable once made.
type Layer struct {
	Name   string // said in explanations: "built-in", "profile claude", …
	Origin Origin
	File   string // where it was read; "" is nowhere that a person can edit
	// Sources are all files that it was made of, File first, and those that couldn't
	// be read. Whoever waits for changes looks at them.
	Sources []string
	// Texts are what each of them says, as it was read: what Sum is of.
	Texts [][]byte
	// Sum names what the sources hold: another byte in one of them, or another file,
	// is another sum. "" without sources.
	Sum string

	Rules   []Rule    // on commands; of those that match the first decides
	Network []NetRule // on connections; likewise

	Hide     []FileRule // files that aren't shown
	ReadOnly []FileRule // files that can't be changed
	Review   []FileRule // files whose changes aren't applied unseen

	Limits []Limit
	Pass   []Variable // of the person's environment, let in
	Set    []Variable // set, whatever the person's environment says
	Names  []Names
	Mounts []Mount
	// Credentials are only a person's own: see rules.
	Credentials []Credential
	Asking      []Asking // what becomes of questions: the strictest
	Checks      []Check
}

// Tightening is what of a layer can only take away: its rules that deny or ask, the
// files that it hides, protects or wants reviewed, its limits, and what becomes of
// questions. It is what holds of a layer that nobody has confirmed.
func (l Layer) Tightening() Layer {
	out := Layer{Name: l.Name, File: l.File, Sources: l.Sources, Sum: l.Sum, Hide: l.Hide, ReadOnly: l.ReadOnly, Review: l.Review, Limits: l.Limits, Asking: l.Asking}
	for _, r := range l.Rules {
		if r.Verdict != Allow {
			out.Rules = append(out.Rules, r)
		}
	}
	for _, r := range l.Network {
		if r.Verdict != Allow {
			out.Network = append(out.Network, r)
		}
	}
	return out
}

// Loosens says whether a layer has anything beside its Tightening, and so something
// to confirm.
func (l Layer) Loosens() bool {
	t := l.Tightening()
	return len(t.Rules) != len(l.Rules) || len(t.Network) != len(l.Network) ||
		len(l.Pass)+len(l.Set)+len(l.Names)+len(l.Mounts)+len(l.Checks)+len(l.Credentials) > 0
}

// NetRule says what to do with connections to some destinations.
type NetRule struct {
	Verdict Verdict
	Host    HostRule
	Why     string // completes "it asks because …"
	File    string // where it stands; "": nowhere
	Line    int    // in its file, from 1; 0: nowhere
	// Limits are what its connections may carry in one session, all together.
	Limits []Limit

	programs []glob // for the path of what connects; none: whatever it is
}

// match says whether a rule is about a connection of a program, to a proper destination. One that allows isn't
// about a program that isn't known; others may be, and so are.
func (r *NetRule) match(d Destination, program string) bool {
	if !r.Host.match(d) {
		return false
	}
	if len(r.programs) == 0 || program == "" {
		return len(r.programs) == 0 || r.Verdict != Allow
	}
	return slices.ContainsFunc(r.programs, func(g glob) bool {
		return g.match(program) || !strings.Contains(string(g), "/") && g.match(path.Base(program))
	})
}

// String is the rule in words.
func (r *NetRule) String() string {
	s := r.subject()
	for i, l := range r.Limits {
		s += [2]string{", at most ", " and "}[min(i, 1)] + l.String()
	}
	if r.Why != "" {
		s += ": " + r.Why
	}
	return s
}

// subject is what the rule says of which connections, whatever they may carry.
func (r *NetRule) subject() string {
	s := string(r.Verdict) + " " + r.Host.String()
	if len(r.programs) > 0 {
		s += " for"
		for _, g := range r.programs {
			s += " " + string(g)
		}
	}
	return s
}
