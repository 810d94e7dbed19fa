package policy

import (
	"errors"
	"fmt"
)

// Layer is one source of rules.
type Layer struct {
	Name  string // said in explanations: "built-in", "profile claude", …
	Rules []Rule // of those that match the first decides
	Allow []HostRule
	Deny  []HostRule
}

type layerFile struct {
	Rules []ruleFile `yaml:"rules"`
	Hosts struct {
		Allow textList `yaml:"allow"`
		Deny  textList `yaml:"deny"`
	} `yaml:"hosts"`
}

type ruleFile struct {
	Ask      textList `yaml:"ask"`
	Allow    textList `yaml:"allow"`
	Deny     textList `yaml:"deny"`
	Why      string   `yaml:"why"`
	Spelled  *text    `yaml:"spelled"`  // exactly
	Children *text    `yaml:"children"` // allow
}

// ParseLayer reads rules from YAML. file names it in errors, which are of type
// *FileError and say line and column.
func ParseLayer(name, file string, data []byte) (Layer, error) {
	var f layerFile
	if err := Decode(file, data, &f); err != nil {
		return Layer{}, err
	}
	l := Layer{Name: name}
	for i := range f.Rules {
		rules, err := f.Rules[i].rules()
		if err != nil {
			return Layer{}, inFile(file, err)
		}
		if len(rules) == 0 {
			return Layer{}, &FileError{File: file, Err: fmt.Errorf("rule %d neither asks, allows nor denies", i+1)}
		}
		l.Rules = append(l.Rules, rules...)
	}
	for _, part := range []struct {
		from textList
		to   *[]HostRule
	}{{f.Hosts.Allow, &l.Allow}, {f.Hosts.Deny, &l.Deny}} {
		hosts, err := part.from.hosts()
		if err != nil {
			return Layer{}, inFile(file, err)
		}
		*part.to = hosts
	}
	return l, nil
}

func (f *ruleFile) rules() ([]Rule, error) {
	exactly, nested := false, false
	if s := f.Spelled; s != nil {
		if s.s != "exactly" {
			return nil, s.bad(0, errors.New(`only "exactly" can be said of how a rule is spelled`))
		}
		exactly = true
	}
	if c := f.Children; c != nil {
		if c.s != "allow" || len(f.Ask)+len(f.Deny) > 0 {
			return nil, c.bad(0, errors.New(`only "allow" can be said of children, and only in a rule that allows`))
		}
		nested = true
	}
	var out []Rule
	for _, v := range []struct {
		verdict Verdict
		texts   textList
	}{{Ask, f.Ask}, {Allow, f.Allow}, {Deny, f.Deny}} {
		for _, t := range v.texts {
			r, offset, err := parseRule(v.verdict, t.s, exactly)
			if err != nil {
				return nil, t.bad(offset, err)
			}
			r.Why, r.Nested, r.Line = f.Why, nested, t.line
			out = append(out, r)
		}
	}
	return out, nil
}

func (l textList) hosts() ([]HostRule, error) {
	var out []HostRule
	for _, t := range l {
		h, err := ParseHost(t.s)
		if err != nil {
			return nil, t.bad(0, err)
		}
		out = append(out, h)
	}
	return out, nil
}
