package backtest

import (
	"fmt"
	"strings"
	"testing"

	"stepbox/session/api"
)

// learned says proposals in a few words.
func (w *writer) learned(times int) string {
	w.t.Helper()
	got, err := w.tester("").Learn(w.t.Context(), api.PolicyLearn{Times: times}, func(api.PastSeen) {})
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, p := range got.Proposals {
		out = append(out, fmt.Sprintf("%s %s%s %d/%d", p.Verdict, p.Host, p.Command, p.Times, p.Sessions))
	}
	for _, l := range got.Left {
		out = append(out, "left "+l.What)
	}
	return strings.Join(out, "; ")
}

func TestLearn(t *testing.T) {
	yes, no := api.AnswerApprove, api.AnswerDeny
	push := func(to string, a api.Answer) step { return step{line: argv("git", "push", "origin", to), say: a} }
	ssh := func(a api.Answer, more ...string) step { return step{line: append(argv("ssh"), more...), say: a} }
	to := func(host string, a api.Answer) step { return step{to: host, say: a} }
	for name, c := range map[string]struct {
		steps []step
		want  string
	}{
		"twice":                      {[]step{push("main", yes), push("main", yes)}, "allow git push origin main 2/1"},
		"once":                       {[]step{push("main", yes)}, ""},
		"one answer to several":      {[]step{push("main", yes), {line: argv("git", "push", "origin", "main"), say: yes, with: 1}}, ""},
		"several twice":              {[]step{push("main", yes), {line: argv("git", "push", "origin", "main"), say: yes, with: 1}, push("main", yes)}, "allow git push origin main 2/1"},
		"one answer for a host":      {[]step{to("example.org:443", no), {to: "example.org:443", say: no, with: 1}}, ""},
		"twice denied":               {[]step{push("main", no), push("main", no)}, "deny git push origin main 2/1"},
		"both":                       {[]step{push("main", yes), push("main", yes), push("main", no)}, "left git push origin main"},
		"by nobody":                  {[]step{{line: argv("git", "push"), say: no, by: api.Nobody}, {line: argv("git", "push"), say: no, by: api.Nobody}}, ""},
		"by a rule":                  {[]step{{line: argv("git", "push")}, {line: argv("git", "push")}}, ""},
		"denied by a rule":           {[]step{{line: argv("git", "push"), result: api.Deny}, {line: argv("git", "push"), result: api.Deny}}, ""},
		"went away":                  {[]step{{line: argv("git", "push"), gone: true}, {line: argv("git", "push"), gone: true}}, ""},
		"what isn't asked about":     {[]step{{line: argv("make"), say: yes}, {line: argv("make"), say: yes}}, ""},
		"several alike":              {[]step{push("a", yes), push("b", yes), push("c", yes)}, "allow git push origin [!+:-]* 3/1"},
		"two alike":                  {[]step{push("a", yes), push("b", yes)}, ""},
		"alike, one denied":          {[]step{push("a", yes), push("b", yes), push("c", yes), push("d", no)}, ""},
		"alike, denied elsewhere":    {[]step{push("a", yes), push("b", yes), push("c", yes), {line: argv("sh", "-c", "git push origin x; true"), say: no}}, ""},
		"alike but forced":           {[]step{push("a", yes), push("b", yes), push("--force", yes)}, ""},
		"not beyond what rules name": {[]step{{line: argv("git", "push"), say: yes}, {line: argv("git", "svn", "dcommit"), say: yes}, {line: argv("git", "gc", "--prune=now"), say: yes}}, ""},
		"hosts of one program":       {[]step{ssh(yes, "a", "ls"), ssh(yes, "b", "ls"), ssh(yes, "c", "ls")}, "allow ssh [!+:-]* ls 3/1"},
		"part of a line":             {[]step{{line: argv("sh", "-c", "cd x && git push a"), say: yes}, {line: argv("git", "push", "a"), say: yes}}, "allow git push a 2/1"},
		"denied with others":         {[]step{{line: argv("sh", "-c", "ssh x; git push a"), say: no}, {line: argv("sh", "-c", "ssh x; git push a"), say: no}}, "left git push a; left ssh x"},
		"a denial too wide":          {[]step{{line: argv("git", "push"), say: no}, {line: argv("git", "push"), say: no}, push("main", yes)}, "left git push"},
		"known when it runs only":    {[]step{{line: argv("sh", "-c", "git push $X"), say: yes}, {line: argv("sh", "-c", "git push $X"), say: yes}}, ""},
		"a host":                     {[]step{to("example.org:443", yes), to("example.org:443", yes)}, "allow example.org:443 2/1"},
		"ports apart":                {[]step{to("example.org:443", yes), to("example.org:80", yes)}, ""},
		"protocols apart":            {[]step{to("example.org:443", yes), to("example.org:443/udp", yes)}, ""},
		"a host denied":              {[]step{to("example.org:443", no), to("example.org:443", no)}, "deny example.org:443 2/1"},
		"names below one":            {[]step{to("a.example.org:443", yes), to("b.example.org:443", yes), to("c.example.org:443", yes)}, "allow *.example.org:443 3/1"},
		"two names below one":        {[]step{to("a.example.org:443", yes), to("b.example.org:443", yes)}, ""},
		"one below denied": {[]step{to("a.example.org:443", yes), to("a.example.org:443", yes), to("b.example.org:443", yes), to("c.example.org:443", yes), to("d.example.org:80", no)},
			"allow a.example.org:443 2/1"},
		"names of many owners": {[]step{to("a.github.io:443", yes), to("b.github.io:443", yes), to("c.github.io:443", yes)}, ""},
		"second-level domains": {[]step{to("a.co.uk:443", yes), to("b.co.uk:443", yes), to("c.co.uk:443", yes)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := record(t)
			w.do(c.steps...)
			if got := w.learned(0); got != c.want {
				t.Errorf("learned %q, want %q", got, c.want)
			}
		})
	}
}

// Watch mode teaches nothing, whatever its record says, and answers in several sessions
// count together.
func TestLearnAcrossSessions(t *testing.T) {
	w := record(t)
	push := step{line: argv("git", "push"), say: api.AnswerApprove}
	w.do(push)
	w.begin("watched", api.ModeWatch)
	w.do(push, push)
	if got := w.learned(2); got != "" {
		t.Errorf("learned %q from watch mode", got)
	}
	w.begin("two", api.ModeStep)
	w.do(push)
	if got, want := w.learned(2), "allow git push 2/2"; got != want {
		t.Errorf("learned %q, want %q", got, want)
	}
	if got := w.learned(3); got != "" {
		t.Errorf("learned %q from too little", got)
	}
}

// What is proposed lets through nothing that was denied, and saves the questions that it
// is made of.
func TestProposalsHoldTheirPromise(t *testing.T) {
	w := record(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.do(step{line: argv("git", "push", "origin", name), say: api.AnswerApprove}, step{to: name + ".example.org:443", say: api.AnswerApprove})
	}
	w.do(step{line: argv("git", "push", "--force", "origin", "a"), say: api.AnswerDeny}, step{to: "x.example.com:443", say: api.AnswerDeny})
	got, err := w.tester("").Learn(t.Context(), api.PolicyLearn{}, func(api.PastSeen) {})
	if err != nil || len(got.Proposals) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	text := fmt.Sprintf("network: [{allow: '%s'}]\ncommands: [{allow: '%s'}]", got.Proposals[0].Host, got.Proposals[1].Command)
	tried := w.try(text)
	if tried.Denied != 0 || len(tried.LetThrough) != 0 || tried.Now.Total()-tried.With.Total() != 8 {
		t.Errorf("%s\nmakes it %+v", text, tried)
	}
}
