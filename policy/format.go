package policy

import (
	"cmp"
	"errors"
	"strings"
)

// layerFile is a file of rules as it is written. What is said of its keys is in the
// schema, too.
type layerFile struct {
	Version     *setting         `yaml:"version" doc:"The version of this format." only:"1"`
	Include     textList         `yaml:"include" doc:"Further files of this format, relative to this one. Their rules come after this file's own."`
	Commands    []ruleFile       `yaml:"commands" doc:"Rules on commands. Of those that match, the first decides."`
	Network     []netFile        `yaml:"network" doc:"Rules on connections. Of those that match, the first decides."`
	Files       filesFile        `yaml:"files" doc:"Files of the project that are treated in ways of their own, as globs relative to it."`
	Limits      limitsFile       `yaml:"limits" doc:"What a session may use at most. The smallest of all layers counts."`
	Environment variablesFile    `yaml:"environment" doc:"Variables that programs get."`
	Credentials []credentialFile `yaml:"credentials" doc:"Keys and tokens that the agent never holds: requests to the host that each is for get it on their way out. Only in your own policy."`
	Names       *setting         `yaml:"names" doc:"An IPv4 network of 8 to 24 bits for the addresses that host names have inside, for programs that take the usual 198.18.0.0/15 for private."`
	Mounts      []mountFile      `yaml:"mounts" doc:"Folders and files outside of the project that programs see."`
	Ask         askFile          `yaml:"ask" doc:"What becomes of questions when nobody is there."`
	Checks      textList         `yaml:"checks" doc:"Shell commands that say whether the project is sound, offered where changes are looked at."`
}

type ruleFile struct {
	place
	Ask      textList `yaml:"ask" doc:"Commands that wait for an answer."`
	Allow    textList `yaml:"allow" doc:"Commands that run. They are matched argument for argument."`
	Deny     textList `yaml:"deny" doc:"Commands that don't run. No rule of another layer allows them."`
	Why      string   `yaml:"why" doc:"Completes: it asks because …"`
	Spelled  *text    `yaml:"spelled" doc:"exactly: match argument for argument." enum:"exactly"`
	Children *text    `yaml:"children" doc:"allow: what the command starts is allowed, too." enum:"allow"`
	In       textList `yaml:"in" doc:"Folders in which the rule holds, with all below them: relative to the project, absolute, or from ~/ on. Globs with **."`
}

type netFile struct {
	place
	Ask      textList    `yaml:"ask" doc:"Destinations, as HOST[:PORT[-PORT]][/PROTOCOL], for which connections wait for an answer."`
	Allow    textList    `yaml:"allow" doc:"Destinations that may be reached, as HOST[:PORT[-PORT]][/PROTOCOL]."`
	Deny     textList    `yaml:"deny" doc:"Destinations that can't be reached. No rule of another layer allows them."`
	Why      string      `yaml:"why" doc:"Completes: it asks because …"`
	Programs textList    `yaml:"programs" doc:"Globs for the program that connects: its path, or its name alone. None: any program."`
	Limit    *budgetFile `yaml:"limit" doc:"What all its connections together may carry. Each destination has its own."`
}

type filesFile struct {
	Hide     textList `yaml:"hide" doc:"Not there for programs, as secrets are."`
	ReadOnly textList `yaml:"read-only" doc:"Can be read, not changed, removed or replaced."`
	Review   textList `yaml:"review" doc:"Changes aren't applied before a person has seen them."`
}

type variablesFile struct {
	Pass textList  `yaml:"pass" doc:"Names of variables that pass from your own environment."`
	Set  variables `yaml:"set" doc:"Variables and their values. Secrets don't belong here: programs can read them."`
}

type mountFile struct {
	place
	Path  text `yaml:"path" doc:"A folder or a file, absolute or from ~/ on."`
	Write bool `yaml:"write" doc:"true: programs can change it, at once and without review."`
}

type askFile struct {
	place
	On      *text `yaml:"on" doc:"wait: questions wait for a person. deny: what would be asked is denied." enum:"wait,deny"`
	Timeout *text `yaml:"timeout" doc:"How long a question waits before it counts as denied, as 90s, 5m or 1h."`
}

// Bounds on what a layer holds.
const (
	maxRules  = 5000 // of each kind
	maxChecks = 100
)

// parseLayer reads rules from YAML. file names it in errors, which are of type
// Problems: all that is wrong, each with line and column. What it includes is named.
func parseLayer(name, file string, data []byte) (Layer, textList, error) {
	var f layerFile
	if err := Decode(file, data, &f); err != nil {
		return Layer{}, nil, err
	}
	l := Layer{Name: name, File: file}
	var all Problems
	if v := f.Version; v != nil && v.s != "1" {
		all = v.bad("this Stepbox reads version 1 of the format, not %q", v.s)
	}
	for i := range f.Commands {
		rules, bad := f.Commands[i].rules(file)
		all = append(all, bad...)
		l.Rules = append(l.Rules, rules...)
	}
	for i := range f.Network {
		rules, bad := f.Network[i].rules(&l)
		all = append(all, bad...)
		l.Network = append(l.Network, rules...)
	}
	all = append(all, f.sections(&l)...)
	if n := max(len(l.Rules), len(l.Network), len(l.Hide)+len(l.ReadOnly)+len(l.Review)); n > maxRules {
		all = append(all, wrong(1, 1, "it has %d rules of one kind: at most %d are read", n, maxRules)...)
	}
	return l, f.Include, all[:min(len(all), maxProblems)].in(file)
}

// verdicts are the texts of a rule by what they say.
func verdicts(ask, allow, deny textList) [3]struct {
	verdict Verdict
	texts   textList
} {
	return [3]struct {
		verdict Verdict
		texts   textList
	}{{Ask, ask}, {Allow, allow}, {Deny, deny}}
}

func (f *netFile) rules(l *Layer) (out []NetRule, all Problems) {
	switch {
	case len(f.Ask)+len(f.Allow)+len(f.Deny) == 0:
		return nil, f.bad("a network rule says ask, allow or deny, and of which hosts")
	case f.Limit != nil && len(f.Deny) > 0:
		return nil, f.bad("a rule that denies has no limit: nothing gets through")
	}
	if all = f.why(f.Why); all != nil {
		return nil, all
	}
	var limits []Limit
	if f.Limit != nil {
		limits, all = f.Limit.limits(l)
	}
	var programs []glob
	for _, t := range f.Programs {
		if err := checkGlob(t.s); err != nil || t.s == "" {
			all = append(all, t.bad("bad pattern %q: %w", t.s, cmp.Or(err, errors.New("it is empty")))...)
		}
		programs = append(programs, glob(t.s))
	}
	for _, v := range verdicts(f.Ask, f.Allow, f.Deny) {
		for _, t := range v.texts {
			h, err := ParseHost(t.s)
			if err != nil {
				all = append(all, t.bad("%w", err)...)
				continue
			}
			out = append(out, NetRule{Verdict: v.verdict, Host: h, Why: f.Why, File: l.File, Line: t.line, Limits: limits, programs: programs})
		}
	}
	return out, all
}

// MaxWhy is how many bytes what is said of a rule has at most.
const MaxWhy = 300

// why checks what is said of a rule.
func (p *place) why(s string) Problems {
	if len(s) > MaxWhy || strings.ContainsAny(strings.TrimSpace(s), "\n\t") {
		return p.bad("why is one line of at most %d bytes", MaxWhy)
	}
	return nil
}

func (f *ruleFile) rules(file string) (out []Rule, all Problems) {
	s, c := f.Spelled, f.Children
	switch {
	case s != nil && s.s != "exactly":
		return nil, s.bad(`only "exactly" can be said of how a rule is spelled`)
	case c != nil && (c.s != "allow" || len(f.Ask)+len(f.Deny) > 0):
		return nil, c.bad(`only "allow" can be said of children, and only in a rule that allows`)
	case len(f.Ask)+len(f.Allow)+len(f.Deny) == 0:
		return nil, f.bad("a command rule says ask, allow or deny, and of which commands")
	}
	if all = f.why(f.Why); all != nil {
		return nil, all
	}
	var in []folder
	for _, t := range f.In {
		w, err := parseFolder(t.s)
		if err != nil {
			all = append(all, t.bad("%w", err)...)
		}
		in = append(in, w)
	}
	for _, v := range verdicts(f.Ask, f.Allow, f.Deny) {
		for _, t := range v.texts {
			r, offset, err := parseRule(v.verdict, t.s, s != nil)
			if err != nil {
				all = append(all, wrong(t.line, t.column+offset, "%w", err)...)
				continue
			}
			r.Why, r.Nested, r.File, r.Line, r.in = f.Why, c != nil, file, t.line, in
			out = append(out, r)
		}
	}
	return out, all
}

// allowing makes rules of what a profile's agent needs.
func (l textList) allowing(file string) ([]NetRule, Problems) {
	if len(l) == 0 {
		return nil, nil
	}
	return (&netFile{Allow: l}).rules(&Layer{File: file})
}
