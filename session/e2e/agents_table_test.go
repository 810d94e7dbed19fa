package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"stepbox/policy"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/e2e/standintest"
)

// rewrite has the table in agentsDoc made anew from runs of the agents that are
// installed; the rows of others stay as they are.
//
//	go test ./session/e2e -run TestAgentsTable -agents-table
var rewrite = flag.Bool("agents-table", false, "write docs/agents.md's table from runs of the installed agents")

const (
	agentsDoc  = "../../docs/agents.md"
	tableBegin = "<!-- begin: written by go test ./session/e2e -run TestAgentsTable -agents-table -->\n"
	tableEnd   = "<!-- end -->\n"
	tableHead  = "| agent | version | start: inside, outside | questions, policy mode | questions, step mode | actions | edits | network of its own | sign-in | limits |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
	untried = "| not run | | | | | | | | |"
)

// TestAgentsTable checks that the table has a row for each profile of an agent.
func TestAgentsTable(t *testing.T) {
	before, rows, after := table(t)
	if *rewrite {
		for _, a := range agents {
			t.Run(a.name, func(t *testing.T) { rows[a.name] = a.row(t) })
		}
	}
	var want []string
	var out strings.Builder
	for _, name := range strings.Split(policy.BuiltinProfiles().Names(), ", ") {
		if !policy.BuiltinProfiles().Named(name).Agent() {
			continue
		}
		want = append(want, name)
		if rows[name] == "" && *rewrite {
			rows[name] = untried
		}
		fmt.Fprintf(&out, "| %s %s\n", name, rows[name])
	}
	if *rewrite {
		must.OK(t, os.WriteFile(agentsDoc, []byte(before+tableBegin+tableHead+out.String()+tableEnd+after), 0o644))
	}
	for name := range rows {
		if !slices.Contains(want, name) {
			t.Errorf("%s has a row for %q, which no profile is for", agentsDoc, name)
		}
	}
	for _, name := range want {
		if rows[name] == "" {
			t.Errorf("%s has no row for %s: run this test with -agents-table", agentsDoc, name)
		}
	}
}

// table reads the rows of the table, by the agent's name, and what is around it.
func table(t *testing.T) (before string, rows map[string]string, after string) {
	t.Helper()
	doc, err := os.ReadFile(agentsDoc)
	must.OK(t, err)
	before, in, ok := strings.Cut(string(doc), tableBegin)
	in, after, found := strings.Cut(in, tableEnd)
	if !ok || !found {
		t.Fatalf("%s has no table", agentsDoc)
	}
	rows = map[string]string{}
	for line := range strings.Lines(strings.TrimPrefix(in, tableHead)) {
		name, row, _ := strings.Cut(strings.TrimPrefix(line, "| "), " ")
		rows[name] = strings.TrimSpace(row)
	}
	return before, rows, after
}

// row runs the agent and tells what came of it. A row begins behind the agent's name.
func (a *agent) row(t *testing.T) string {
	version, err := exec.CommandContext(t.Context(), a.program(t), "--version").CombinedOutput()
	must.OK(t, err)
	number := regexp.MustCompile(`\d+(\.\d+)+`).FindString(string(version))
	p := newPerson(t)
	p.repository()
	model := standintest.New()
	defer model.Close()
	a.prepare(p, model)
	// Each call of its tools is for one thing, the edit with its own.
	work := []standintest.Call{
		a.shell("ls -la"), a.read(p.project + "/calc.py"), a.edit(p.project+"/calc.py", "    return a - b", "    return a + b"),
		a.shell("./check.sh"), a.shell("git commit -qam 'Add instead of subtracting'"), a.shell("rm old.txt"),
	}
	asked := map[string]string{}
	for _, mode := range []string{"policy", "step"} {
		model.Add(calls(work...)...)
		r := a.run(t, p, model, mode, mode, append(a.ask, "make the test pass"), approving)
		asked[mode] = fmt.Sprintf("%d in %d calls", len(r.asked), len(work))
	}
	s := p.show("policy")
	own, folded, edits := 0, 0, 0
	for _, x := range s.List {
		switch {
		case x.Kind == api.KindEdit:
			edits++
		case x.Housekeeping:
			folded++
		default:
			own++
		}
	}
	edit := "an edit of its own"
	if edits != 1 {
		edit = fmt.Sprintf("%d", edits)
	}
	starts, reached := "not measured", "policy" // nothing here drives its screen
	if a.ready != "" {
		starts, reached = a.starts(t, p, model), "begin"
	}
	cells := []string{
		number, starts, asked["policy"], asked["step"],
		fmt.Sprintf("%d, and %d of housekeeping", own, folded), edit, a.network(t, p, reached), a.signIn, a.limits,
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// starts is how long the agent takes until it shows that it takes a prompt, inside
// and outside by turns, medians.
func (a *agent) starts(t *testing.T, p *person, model *standintest.Server) string {
	const rounds = 5
	in, out := make([]time.Duration, rounds), make([]time.Duration, rounds)
	until := func(command func(context.Context) *exec.Cmd) (*terminal, time.Duration) {
		began := time.Now()
		tm := p.start(120, 35, command)
		tm.shows(a.ready)
		return tm, time.Since(began)
	}
	for i := -1; i < rounds; i++ { // the first fills caches
		bare, took := until(func(ctx context.Context) *exec.Cmd { return a.outside(ctx, t, p, model, nil) })
		if err := syscall.Kill(-bare.cmd.Process.Pid, syscall.SIGKILL); err != nil { // with what it started
			t.Fatal(err)
		}
		<-bare.done
		boxed, inside := until(func(ctx context.Context) *exec.Cmd {
			return a.command(ctx, t, p, []string{"--name", "begin", "--allow-host", "host.stepbox.internal:" + model.Port()}, nil)
		})
		if i == rounds-1 {
			boxed.tick() // for what it reaches for once it has started
		}
		p.do("kill", "begin")
		boxed.hangUp()
		if i >= 0 {
			in[i], out[i] = inside, took
		}
	}
	slices.Sort(in)
	slices.Sort(out)
	i, o := in[rounds/2].Seconds(), out[rounds/2].Seconds()
	t.Logf("inside %v, outside %v", in, out)
	return fmt.Sprintf("%.1f s, %.1f s: %.1f×", i, o, i/o)
}

// network is what the agent's own program tried to reach in a session without being told to.
func (a *agent) network(t *testing.T, p *person, session string) string {
	var out []string
	for lines := json.NewDecoder(strings.NewReader(p.do("net", "--json", session))); lines.More(); {
		var n api.Attempt
		must.OK(t, lines.Decode(&n))
		if what := fmt.Sprintf("%s: %s", n.Name, n.Verdict); n.Name != policy.HostService && !slices.Contains(out, what) {
			out = append(out, what)
		}
	}
	if len(out) == 0 {
		return "none"
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}
