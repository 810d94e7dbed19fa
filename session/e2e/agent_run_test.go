package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/e2e/standintest"
)

// agentsAt names the folder that real agents are installed in, with their
// programs in its bin; `make agents` fills it.
const agentsAt = "STEPBOX_AGENTS"

// agentsDir is that folder.
func agentsDir() string {
	if dir := os.Getenv(agentsAt); dir != "" {
		return dir
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "" // nothing is there
	}
	return filepath.Join(cache, "stepbox-agents")
}

// agent is a kind of real agent, and how it is told to do what a test wants.
// The address of the stand-in is put in for URL.
type agent struct {
	name    string            // of its profile and of its program
	env     map[string]string // variables that lead it to the stand-in
	files   map[string]string // in its home
	denied  []string          // hosts that it would ask for at any time, by a rule of the person\'s
	args    []string          // what it is always given
	ready   string            // what its screen shows when it takes a prompt
	ask     []string          // and for one prompt, without a screen
	again   []string          // and for one more prompt in the conversation before
	resume  []string          // goes on with the conversation before, in its screen
	resumed string            // what that shows; "": the last prompt
	twice   string            // what it shows when it takes a second escape to stop it, for a moment; "": the first does
	stop    string            // stops what it leaves running when it was told to stop; "" when that is nothing

	asks           []string          // titles of what it is known to ask for that nobody told it
	also           []string          // how titles begin of what it does beside what it is told
	rewrites       *strings.Replacer // what it makes of a command, with PROJECT for the project
	signIn, limits string            // for docs/agents.md

	shell func(command string) standintest.Call // its tool for commands
	read  func(file string) standintest.Call
	edit  func(file, old, text string) standintest.Call
	tool  func(name string, input object) standintest.Call // one of stepbox mcp; nil where its profile doesn't set those up

	tells  bool              // its profile has it tell of its calls
	own    map[string]string // settings of the person's own, which are brought; they name a server of the project
	asking *asking           // nil: no hook tells of its own prompts
	paid   *paid             // nil: not tried with a key
	flags  []string          // for Stepbox
	vars   []string          // of the person's, beside what each has
}

// program is where the agent is, if it is installed.
func (a *agent) program(t testing.TB) string {
	t.Helper()
	file := filepath.Join(agentsDir(), "bin", a.name)
	if _, err := os.Stat(file); err != nil {
		t.Skipf("%s isn't installed: `make agents` does that, or %s names the folder that it is in", a.name, agentsAt)
	}
	return file
}

// errand is one session of an agent without a screen.
type errand struct {
	a     *agent
	p     *person
	model *standintest.Server
	name  string // the session's

	asked  []api.Question // what was held, in order
	exit   int
	output string // the agent's, and what went wrong
}

// prepare leads the agent to the stand-in: variables by the person's own
// policy, files in the agent's home.
func (a *agent) prepare(p *person, model *standintest.Server) {
	p.t.Helper()
	url := "http://host.stepbox.internal:" + model.Port()
	set := map[string]string{}
	for name, value := range a.env {
		set[name] = strings.ReplaceAll(value, "URL", url)
	}
	network := []map[string]string{}
	for _, host := range a.denied {
		network = append(network, map[string]string{"deny": host, "why": "a test"})
	}
	rules, err := json.Marshal(map[string]any{"environment": map[string]any{"set": set}, "network": network}) // JSON is YAML
	must.OK(p.t, err)
	p.put(filepath.Join(p.home, ".config", "stepbox", "policy.yaml"), string(rules))
	for name, text := range a.files {
		p.put(filepath.Join(p.dir, "data", "homes", a.name, name), strings.NewReplacer("URL", url, "PROJECT", p.project).Replace(text))
	}
}

// put writes a file in a folder that may not be there yet.
func (p *person) put(file, text string) {
	p.t.Helper()
	must.OK(p.t, os.MkdirAll(filepath.Dir(file), 0o700))
	must.OK(p.t, os.WriteFile(file, []byte(text), 0o600))
}

// repository makes the project a small repository with a test in it.
func (p *person) repository() {
	p.t.Helper()
	p.write("calc.py", "def add(a, b):\n    return a - b\n")
	p.write("check.sh", "#!/bin/sh\ngrep -q 'a + b' calc.py && echo all tests passed || { echo 1 test failed; exit 1; }\n")
	p.write("old.txt", "no longer needed\n")
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "user.name", "Kim"}, {"config", "user.email", "kim@example.org"}, {"add", "."}, {"commit", "-qm", "begin"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = p.project
		if out, err := cmd.CombinedOutput(); err != nil {
			p.t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
}

// command is how the agent is started in a sandbox, from PATH as a person does.
func (a *agent) command(ctx context.Context, t testing.TB, p *person, flags, args []string) *exec.Cmd {
	bin := filepath.Dir(a.program(t))
	line := append(append(append([]string{"run"}, flags...), a.flags...), "--", a.name)
	cmd := p.command(ctx, append(append(line, a.args...), args...)...)
	cmd.Env = append(append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH")), a.vars...)
	return cmd
}

// reply is what a person says to a question; "" leaves it open.
type reply func(q api.Question) (answer api.Answer, reason string)

// approving answers all with yes, edits too.
func approving(q api.Question) (api.Answer, string) {
	if q.Subject == api.SubjectEdit {
		return api.AnswerKeep, ""
	}
	return api.AnswerApprove, ""
}

// run runs the agent until it ends. Questions are answered by reply as they
// come.
func (a *agent) run(t *testing.T, p *person, model *standintest.Server, mode, name string, args []string, says reply) *errand {
	t.Helper()
	r := &errand{a: a, p: p, model: model, name: name}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	flags := []string{"--json", "--mode", mode, "--name", name, "--allow-host", "host.stepbox.internal:" + model.Port()}
	cmd := a.command(ctx, t, p, flags, args)
	var words bytes.Buffer
	cmd.Stderr = &words
	events, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	if err := r.answer(ctx, events, says); err != nil {
		t.Errorf("%s: %v", a.name, err)
		cancel()
	}
	err = cmd.Wait()
	r.exit, r.output = cmd.ProcessState.ExitCode(), words.String()
	if ctx.Err() != nil {
		t.Fatalf("%s didn't end (%v); held were %+v\n%s", a.name, err, r.asked, r.output)
	}
	return r
}

// answer reads what happens until the session ends, and answers what is asked.
func (r *errand) answer(ctx context.Context, events interface{ Read([]byte) (int, error) }, says reply) error {
	var client *api.Client
	var id string
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 16<<20)
	answered := map[int64]bool{}
	for lines.Scan() {
		var e struct {
			api.Event
			Socket string `json:"socket"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%w: %s", err, lines.Bytes())
		}
		if e.Socket != "" {
			client = api.NewClientFunc(func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", e.Socket) })
			defer client.Close()
			id = e.Session.ID
		}
		q := e.Question
		if q == nil || !q.Open() || answered[q.ID] {
			continue
		}
		answered[q.ID] = true
		r.asked = append(r.asked, *q)
		answer, reason := says(*q)
		if answer == "" {
			continue
		}
		if _, err := client.Decide(ctx, id, api.Decision{Question: q.ID, Hash: q.Hash, Answer: answer, Reason: reason, By: "test"}); err != nil {
			return fmt.Errorf("cannot answer %q: %w", q.Title, err)
		}
	}
	return lines.Err()
}

// outside is the agent as it is started without Stepbox, with all else the same:
// what its profile says counts too.
func (a *agent) outside(ctx context.Context, t testing.TB, p *person, model *standintest.Server, args []string) *exec.Cmd {
	t.Helper()
	home := filepath.Join(p.dir, "bare")
	must.OK(t, os.MkdirAll(home, 0o700))
	put := strings.NewReplacer("URL", model.URL(), "PROJECT", p.project)
	for name, text := range a.files {
		p.put(filepath.Join(home, name), put.Replace(text))
	}
	profile := policy.BuiltinProfiles().Named(a.name)
	line := profile.Args(append(append([]string{a.program(t)}, a.args...), args...))
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = p.project
	cmd.Env = append(policy.Environment(nil, profile),
		"PATH="+filepath.Dir(line[0])+":"+os.Getenv("PATH"), "HOME="+home, "TERM=xterm-256color", "LANG=C.UTF-8", "SHELL=/bin/bash")
	for name, value := range a.env {
		cmd.Env = append(cmd.Env, name+"="+put.Replace(value))
	}
	return cmd
}
