package policy

import (
	"fmt"
	"net/netip"
	"path"
	"strings"
)

// Expectation is what somebody expects rules to say of one thing.
type Expectation struct {
	Run     string  // a line for a shell; or
	Connect string  // HOST:PORT[/PROTOCOL]; or
	Path    string  // a file, relative to the project
	Program string  // what connects, its path or its name; "": isn't known
	In      string  // the folder of Run, relative to the project; "": the project
	Want    Verdict // of Run and Connect
	Treated string  // of Path: shown, hidden, read-only or review
	Rule    string  // what the words of the rule that decides, or of one as strict, contain; "": any
	Line    int     // in its file
}

type expectationFile struct {
	place
	Run     *text `yaml:"run" doc:"A line for a shell, in the project's folder."`
	Connect *text `yaml:"connect" doc:"HOST:PORT[/PROTOCOL] that a program connects to."`
	File    *text `yaml:"file" doc:"A file, relative to the project."`
	Program *text `yaml:"program" doc:"With connect: the program, by its path or its name."`
	In      *text `yaml:"in" doc:"With run: the folder, relative to the project."`
	Want    *text `yaml:"want" doc:"allow, ask or deny; of a file shown, hidden, read-only or review." enum:"allow,ask,deny,shown,hidden,read-only,review"`
	Rule    *text `yaml:"rule" doc:"What the words of the rule that decides have in them."`
}

// ParseExpectations reads a file of them: a list. Errors are of type Problems.
func ParseExpectations(file string, data []byte) ([]Expectation, error) {
	var list []expectationFile
	if err := Decode(file, data, &list); err != nil {
		return nil, err
	}
	var out []Expectation
	var all Problems
	for i := range list {
		e, bad := list[i].expectation()
		all = append(all, bad...)
		out = append(out, e)
	}
	return out, all.in(file)
}

func (f *expectationFile) expectation() (e Expectation, bad Problems) {
	given := 0
	for _, s := range []struct {
		from *text
		to   *string
		what bool
	}{{f.Run, &e.Run, true}, {f.Connect, &e.Connect, true}, {f.File, &e.Path, true}, {f.Program, &e.Program, false}, {f.In, &e.In, false}, {f.Rule, &e.Rule, false}} {
		if s.from == nil {
			continue
		}
		if *s.to = s.from.s; s.what {
			given++
		}
		if s.from.s == "" {
			return e, s.from.bad("it is empty")
		}
	}
	e.Line = f.line
	switch {
	case given != 1:
		return e, f.bad("an expectation is of one thing: run, connect or file")
	case f.Want == nil:
		return e, f.bad("an expectation says what it wants")
	case f.Program != nil && f.Connect == nil || f.In != nil && f.Run == nil:
		return e, f.bad("program goes with connect, and in with run")
	}
	if f.Connect != nil {
		if _, err := ParseDestination(e.Connect); err != nil {
			return e, f.Connect.bad("%w", err)
		}
	}
	w := Verdict(f.Want.s)
	switch known := w == Allow || w == Ask || w == Deny; {
	case f.File == nil && known:
		e.Want = w
	case f.File == nil:
		return e, f.Want.bad("want is allow, ask or deny, not %q", f.Want.s)
	case w == Shown || w == Hidden || w == Protected || w == Reviewed:
		e.Treated = string(w)
	default:
		return e, f.Want.bad("of a file want is shown, hidden, read-only or review, not %q", f.Want.s)
	}
	return e, nil
}

// How a file is treated.
const (
	Shown     = "shown"
	Hidden    = "hidden"
	Protected = "read-only"
	Reviewed  = "review"
)

// ParseDestination reads HOST:PORT[/PROTOCOL], exactly one.
func ParseDestination(s string) (Destination, error) {
	h, err := ParseHost(s)
	if err != nil {
		return Destination{}, err
	}
	single := h.First == h.Last && (h.First != 0) == (h.Protocol != ICMP)
	if strings.HasPrefix(h.Name, "*") || h.Net.IsValid() && !h.Net.IsSingleIP() || !single || h.Protocol == Any {
		return Destination{}, fmt.Errorf("%q isn't one place: name a host and its port, as in example.org:443", s)
	}
	var addr netip.Addr
	if h.Net.IsValid() {
		addr = h.Net.Addr()
	}
	return Destination{Name: h.Name, Addr: addr, Port: h.First, Protocol: h.Protocol}, nil
}

// Treats says how a file of the project is treated, given by its relative path, and by
// which rule; nil where none is about it. What is hidden is nothing else besides.
func (p *Policy) Treats(rel string) (how string, by *FileRule) {
	for _, k := range []struct {
		how   string
		rules []FileRule
	}{{Hidden, p.Hide()}, {Protected, p.ReadOnly()}, {Reviewed, p.Review()}} {
		for i := range k.rules {
			if k.rules[i].Match(rel) {
				return k.how, &k.rules[i]
			}
		}
	}
	return Shown, nil
}

// Met says what the rules say of what is expected, in words, and whether that is it.
// Project and home are as the sandbox would have them.
func (p *Policy) Met(e Expectation, project, home string) (got string, ok bool) {
	if e.Path != "" {
		how, by := p.Treats(path.Clean(e.Path))
		rule := ""
		if by != nil {
			rule = by.Glob
		}
		return strings.TrimSpace(how + " " + rule), how == e.Treated && strings.Contains(rule, e.Rule)
	}
	var j Judgement
	if e.Connect != "" {
		d, err := ParseDestination(e.Connect)
		if err != nil {
			return err.Error(), false
		}
		j = p.Connect(d, e.Program)
	} else {
		j = p.Command(Command{Argv: []string{"sh", "-c", e.Run}, Cwd: path.Join(project, e.In), Project: project, Home: home})
	}
	said := strings.Contains(j.Rule, e.Rule)
	for _, p := range j.Parts {
		said = said || p.Verdict == j.Verdict && strings.Contains(p.Rule, e.Rule)
	}
	return string(j.Verdict) + " by: " + j.From(), j.Verdict == e.Want && said
}
