package explain

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/rules"
)

const own = `version: 1
commands: [{deny: terraform destroy, why: it is shared}, {ask: git push, why: it sends commits}, {ask: cat ** <secret>, why: it reads likely secrets}]
network: [{deny: 192.0.2.0/24}, {allow: example.org:443, programs: [/usr/bin/curl]}]
files: {hide: [private], read-only: [migrations], review: ["*.sql"]}
limits: {memory: 1G, action: {files: 10}}
environment: {pass: [MY_TOKEN], set: {CI: "1"}}
mounts: [{path: /srv/data}]
names: 100.64.0.0/10
ask: {timeout: 10m}
checks: [make lint]
`

// made is a service over a project with a file of the person's own, and its project.
func made(t *testing.T) (*Service, string) {
	t.Helper()
	dir := t.TempDir()
	project := filepath.Join(dir, "project")
	for name, text := range map[string]string{"policy.yaml": own, "project/.gitignore": "secrets.json\n", "project/.stepbox.yaml": "version: 1\nlimits: {memory: 2G}\nchecks: [make test]\n"} {
		must.OK(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	if out, err := exec.Command("git", "-C", project, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return &Service{
		Home: dir, User: filepath.Join(dir, "policy.yaml"), Trust: rules.TrustIn(dir),
		Session: func(_ context.Context, id string) (api.Session, error) {
			return api.Session{ID: id, Folder: project, HiddenPaths: []string{"keys/one", ".env"}, Hosts: []string{"example.net:443"}, Asking: api.Asking{On: api.OnAskDeny, By: "--on-ask deny"}}, nil
		},
	}, project
}

// Whatever holds is explained, with its file and line.
func TestExplain(t *testing.T) {
	s, project := made(t)
	for name, c := range map[string]struct {
		ask  api.ExplainRequest
		want string // verdict or treatment, layer, line and a part of the rule
	}{
		"command":          {api.ExplainRequest{Argv: []string{"terraform", "destroy"}}, "deny your policy 2 it is shared"},
		"line":             {api.ExplainRequest{Argv: []string{"cd x && terraform destroy"}}, "deny your policy 2 it is shared"},
		"spelled":          {api.ExplainRequest{Argv: []string{"git", "-C", "x", "push", "-f"}}, "ask your policy 2 it sends commits"},
		"built-in":         {api.ExplainRequest{Argv: []string{"rm", "-rf", "/"}}, "allow no rule asks about it"},
		"nothing":          {api.ExplainRequest{Argv: []string{"ls"}}, "allow no rule asks about it"},
		"secret":           {api.ExplainRequest{Argv: []string{"cat", ".env"}}, "ask your policy 2 reads likely secrets"},
		"secret, hidden":   {api.ExplainRequest{Argv: []string{"cat", ".env"}, PolicyOf: api.PolicyOf{Session: "1"}}, "allow no rule asks about it"},
		"address":          {api.ExplainRequest{Host: "192.0.2.7:22"}, "deny your policy 3"},
		"program":          {api.ExplainRequest{Host: "example.org:443", Program: "/usr/bin/curl"}, "allow your policy 3"},
		"another program":  {api.ExplainRequest{Host: "example.org:443", Program: "/usr/bin/wget"}, "ask no rule knows this host"},
		"--allow-host":     {api.ExplainRequest{Host: "example.net:443", PolicyOf: api.PolicyOf{Session: "1"}}, "allow --allow-host"},
		"hidden":           {api.ExplainRequest{Path: "private/x"}, "hidden your policy 4 hidden private"},
		"read-only":        {api.ExplainRequest{Path: project + "/migrations/1"}, "read-only your policy 4"},
		"review":           {api.ExplainRequest{Path: "x/a.sql"}, "review your policy 4"},
		"shown":            {api.ExplainRequest{Path: "main.go"}, "shown no rule is about it"},
		"by name":          {api.ExplainRequest{Path: ".env.local"}, "hidden built-in its name tells"},
		"ignored by git":   {api.ExplainRequest{Path: "sub/secrets.json"}, "hidden built-in git ignores it"},
		"not ignored":      {api.ExplainRequest{Path: "sub/tokens.json"}, "shown no rule is about it"},
		"as it was found":  {api.ExplainRequest{Path: "keys/one", PolicyOf: api.PolicyOf{Session: "1"}}, "hidden built-in as the session began"},
		"mount":            {api.ExplainRequest{Path: "/srv/data/x"}, "hidden your policy 7 the mount is refused: it isn't there"},
		"outside":          {api.ExplainRequest{Path: "/srv/other"}, "hidden nothing mounts it"},
		"passed":           {api.ExplainRequest{Variable: "MY_TOKEN"}, "passed your policy 6"},
		"set":              {api.ExplainRequest{Variable: "CI"}, "set your policy 6 set to 1"},
		"passed anyway":    {api.ExplainRequest{Variable: "TERM"}, "passed profile generic"},
		"kept out":         {api.ExplainRequest{Variable: "AWS_SECRET_ACCESS_KEY"}, "kept out no rule passes it"},
		"the sandbox's":    {api.ExplainRequest{Variable: "HOME"}, "set built-in the sandbox's own"},
		"limit":            {api.ExplainRequest{Limit: "memory"}, "limited your policy 5 memory 1G"},
		"limit of actions": {api.ExplainRequest{Limit: "action.files"}, "limited your policy 5 files 10 of one action"},
		"names":            {api.ExplainRequest{Section: "names"}, "set your policy 8 names have addresses of 100.64.0.0/10"},
		"ask":              {api.ExplainRequest{Section: "ask"}, "set your policy 9 for 10m0s, then it is denied"},
		"ask of a session": {api.ExplainRequest{Section: "ask", PolicyOf: api.PolicyOf{Session: "1"}}, "set nobody: what asks is denied (--on-ask deny)"},
		"checks":           {api.ExplainRequest{Section: "checks"}, "set the project's policy 3 each is run"},
		"a start's limit":  {api.ExplainRequest{Limit: "pids"}, "set at the start no rule limits it: limits.pids of stepbox config show does"},
		"no limit":         {api.ExplainRequest{Limit: "sent"}, "unlimited no rule limits it"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.ask.Session == "" {
				c.ask.Project = project
			}
			e, err := s.Explain(t.Context(), c.ask)
			must.OK(t, err)
			got := strings.Join([]string{string(e.Verdict) + e.Treated, e.Layer, lineOf(e.Line), e.Rule}, " ")
			at := 0
			for _, w := range strings.Fields(c.want) {
				i := strings.Index(got[at:], w)
				if i < 0 {
					t.Fatalf("got %q, want %q", got, c.want)
				}
				at += i
			}
			if e.Line > 0 && c.ask.Session == "" && e.Layer != "built-in" && e.Layer != "the project's policy" && e.File != s.User {
				t.Errorf("it is said to be in %q", e.File)
			}
		})
	}
}

func lineOf(n int) string {
	if n == 0 {
		return ""
	}
	return string(rune('0' + n%10))
}

// Of a file that can't be read it is said that a session which began before still follows
// what it said.
func TestExplainSaysWhatASessionStillFollows(t *testing.T) {
	s, project := made(t)
	must.OK(t, os.WriteFile(s.User, []byte("network: ["), 0o600))
	const told = "this session still follows"
	for name, c := range map[string]struct {
		session api.Session
		of      api.PolicyOf
		want    bool
	}{
		"live":       {api.Session{State: api.SessionRunning, Policy: []api.PolicyFile{{Path: s.User, Hash: "1"}}}, api.PolicyOf{Session: "1"}, true},
		"no such":    {api.Session{State: api.SessionRunning, Policy: []api.PolicyFile{{Path: s.User}}}, api.PolicyOf{Session: "1"}, false},
		"ended":      {api.Session{State: api.SessionEnded, Policy: []api.PolicyFile{{Path: s.User, Hash: "1"}}}, api.PolicyOf{Session: "1"}, false},
		"no session": {api.Session{}, api.PolicyOf{Project: project}, false},
	} {
		s.Session = func(_ context.Context, id string) (api.Session, error) {
			c.session.ID, c.session.Folder = id, project
			return c.session, nil
		}
		e, err := s.Explain(t.Context(), api.ExplainRequest{Host: "example.org:443", PolicyOf: c.of})
		if said := slices.ContainsFunc(e.Notes, func(n string) bool { return strings.HasPrefix(n, told) }); err != nil || said != c.want || !strings.Contains(e.Notes[0], "can't be read") {
			t.Errorf("%s: %q (%v)", name, e.Notes, err)
		}
	}
}

// That no rule which allows counts for a command is said, with why.
func TestExplainSaysWhyNoRuleCounts(t *testing.T) {
	s, project := made(t)
	for line, want := range map[string]int{"GOFLAGS=-x git push": 1, "git push": 0} { // beside that the project's policy isn't confirmed
		e, err := s.Explain(t.Context(), api.ExplainRequest{Argv: []string{line}, PolicyOf: api.PolicyOf{Project: project}})
		if err != nil || e.Verdict != api.Ask || len(e.Notes) != want+1 || want > 0 && !strings.Contains(e.Notes[0], "no rule that allows counts for it: it sets a variable") {
			t.Errorf("%s: %s, %q (%v)", line, e.Verdict, e.Notes, err)
		}
	}
}

// What can't be explained is refused with what can.
func TestExplainRefuses(t *testing.T) {
	s, project := made(t)
	for name, c := range map[string]struct {
		ask  api.ExplainRequest
		want string
	}{
		"nothing":    {api.ExplainRequest{}, "name one thing"},
		"two things": {api.ExplainRequest{Limit: "memory", Variable: "A"}, "name one thing"},
		"no limit":   {api.ExplainRequest{Limit: "lunch"}, "there are memory, cpus"},
		"no name":    {api.ExplainRequest{Variable: "A=b"}, "is no name of a variable"},
		"no section": {api.ExplainRequest{Section: "lunch"}, "there are names, ask, checks"},
		"no place":   {api.ExplainRequest{Host: "*.example.org:443"}, "isn't one place"},
	} {
		c.ask.Project = project
		if _, err := s.Explain(t.Context(), c.ask); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// All that layers say is shown, with where it stands.
func TestShow(t *testing.T) {
	s, project := made(t)
	p, err := s.Show(t.Context(), api.PolicyOf{Project: project})
	must.OK(t, err)
	sections := map[string]bool{}
	for _, l := range p.Layers {
		for _, e := range l.Entries {
			if sections[e.Section] = true; l.File != "" && (e.File == "" || e.Line == 0) {
				t.Errorf("%s: it isn't said where %q stands", l.Name, e.Text)
			}
		}
	}
	for _, want := range []string{"commands", "network", "hide", "read-only", "review", "limits", "pass", "set", "mounts"} {
		if !sections[want] {
			t.Errorf("nothing is shown of %s", want)
		}
	}
}

// What sessions wouldn't read is told when it is checked, too.
func TestCheckReadsAsSessionsDo(t *testing.T) {
	s, _ := made(t)
	must.OK(t, os.Chmod(s.User, 0o666))
	got, err := s.Check(t.Context(), []string{s.User})
	if err != nil || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].Message, "everybody can change it") {
		t.Errorf("%+v (%v)", got, err)
	}
	shown, err := s.Show(t.Context(), api.PolicyOf{})
	if err != nil || len(shown.Layers) < 2 || len(shown.Layers[1].Problems) != 1 || shown.Layers[1].Problems[0] != got.Problems[0] {
		t.Errorf("shown is %+v (%v)", shown, err)
	}
}

// A project without rules of its own has none to test, and is told what to do.
func TestTestNeedsRules(t *testing.T) {
	s, project := made(t)
	must.OK(t, os.Remove(filepath.Join(project, rules.Name)))
	_, err := s.Test(t.Context(), api.PolicyTest{PolicyOf: api.PolicyOf{Project: project}})
	if err == nil || !strings.Contains(err.Error(), "there is no .stepbox.yaml in ") || !strings.Contains(err.Error(), "--policy") {
		t.Errorf("it says %v", err)
	}
}
