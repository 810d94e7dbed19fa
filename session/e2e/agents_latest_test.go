package e2e

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/session/e2e/standintest"
)

// latest has the newest versions of agents counted, into agentsDoc: see `make agents-latest`.
var latest = flag.Bool("agents-latest", false, "write what the installed agents are asked about into docs/agents.md")

const (
	latestBegin = "<!-- begin: written by make agents-latest -->\n"
	latestHead  = "| agent | version | before the first prompt | in 15 calls | useful |\n| --- | --- | --- | --- | --- |\n"
	elsewhere   = "code.example"
)

// fifteen are calls as an agent makes them. One of them sends something.
func fifteen(a *agent, p *person) []standintest.Call {
	return []standintest.Call{
		a.shell("ls -la"),
		a.shell("git status --short && git log --oneline -n 3"),
		a.read(p.project + "/calc.py"),
		a.shell("grep -rn 'def ' --include='*.py' . | head -n 20"),
		a.edit(p.project+"/calc.py", "    return a - b", "    return a + b"),
		a.shell("./check.sh"),
		a.shell("python3 -c 'import calc; print(calc.add(1, 2))'"),
		a.shell("git diff --stat"),
		a.shell("mkdir -p notes && printf '%s\\n' done > notes/done.txt"),
		a.shell("find . -name '*.txt' -not -path './.git/*' | sort"),
		a.shell("rm old.txt"),
		a.shell("git add -A && git commit -qm 'Add instead of subtracting'"),
		a.shell("git log --oneline && git show --stat HEAD"),
		a.shell("git push https://" + elsewhere + "/kim/calc main"),
		a.shell("cat notes/done.txt; wc -l *.py"),
	}
}

// without are agents that no profile is for: they run with the generic one.
var without = []*agent{
	{
		name: "cline",
		files: map[string]string{".cline/data/settings/providers.json": `{"version":1,"lastUsedProvider":"openai-compatible","modes":{},"providers":{"openai-compatible":
			{"settings":{"provider":"openai-compatible","apiKey":"fake","model":"stand-in","baseUrl":"URL/v1"},"updatedAt":"2026-01-01T00:00:00.000Z","tokenSource":"manual"}}}`},
		shell: func(command string) standintest.Call {
			return standintest.Call{Tool: "run_commands", Input: object{"commands": []string{command}}}
		},
		read: func(file string) standintest.Call {
			return standintest.Call{Tool: "read_files", Input: object{"files": []object{{"path": file}}}}
		},
		edit: func(file, old, text string) standintest.Call {
			return standintest.Call{Tool: "editor", Input: object{"path": file, "old_text": old, "new_text": text}}
		},
	},
	{
		name: "cn",
		files: map[string]string{".continue/config.yaml": "name: test\nversion: 1.0.0\nschema: v1\nmodels:\n" +
			"  - {name: stand-in, provider: openai, model: stand-in, apiKey: fake, apiBase: URL/v1, roles: [chat], capabilities: [tool_use]}\n"},
		args: []string{"--auto"},
		ask:  []string{"-p"},
		shell: func(command string) standintest.Call {
			return standintest.Call{Tool: "Bash", Input: object{"command": command}}
		},
		read: func(file string) standintest.Call {
			return standintest.Call{Tool: "Read", Input: object{"filepath": file}}
		},
		edit: func(file, old, text string) standintest.Call {
			return standintest.Call{Tool: "Edit", Input: object{"file_path": file, "old_string": old, "new_string": text}}
		},
	},
}

// Whatever version is installed, an agent is asked about in policy mode for what it would
// send, and for nothing else: not at its start, and not in ordinary calls.
func TestAgentsLatest(t *testing.T) {
	if !*latest {
		t.Skip("`make agents-latest` installs the newest agents and runs them")
	}
	doc, err := os.ReadFile(agentsDoc)
	must.OK(t, err)
	before, in, ok := strings.Cut(string(doc), latestBegin)
	in, after, found := strings.Cut(in, tableEnd)
	if !ok || !found {
		t.Fatalf("%s has no table of the newest", agentsDoc)
	}
	var mu sync.Mutex
	rows := map[string]string{} // those of agents that aren't run stay
	for line := range strings.Lines(strings.TrimPrefix(in, latestHead)) {
		rows[strings.Fields(line)[1]] = line
	}
	t.Run("each", func(t *testing.T) {
		each(t, slices.Concat(agents, without), func(t *testing.T, a *agent, p *person, model *standintest.Server) {
			row := a.counted(t, p, model)
			mu.Lock()
			defer mu.Unlock()
			rows[a.name] = row
		})
	})
	var table strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		table.WriteString(rows[name])
	}
	must.OK(t, os.WriteFile(agentsDoc, []byte(before+latestBegin+latestHead+table.String()+tableEnd+after), 0o644))
}

// counted runs the calls and gives the agent's row.
func (a *agent) counted(t *testing.T, p *person, model *standintest.Server) string {
	version, err := exec.CommandContext(t.Context(), a.program(t), "--version").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, version)
	}
	work := fifteen(a, p)
	model.Add(calls(work...)...)
	before, useful := 0, 0
	r := a.run(t, p, model, "policy", "latest", append(a.ask, "make the test pass"), func(q api.Question) (api.Answer, string) {
		switch {
		case strings.Contains(q.Title, elsewhere):
			useful++
		default:
			t.Errorf("asked: %s: %s", q.Title, q.Rule)
		}
		if len(model.Turns()) == 0 {
			before++
		}
		return approving(q)
	})
	if results(t, model, len(work)); r.exit != 0 || useful == 0 {
		t.Errorf("exit %d, %d useful questions: %s", r.exit, useful, r.output)
	}
	number := regexp.MustCompile(`\d+(\.\d+)+`).FindString(string(version))
	return fmt.Sprintf("| %s | %s | %d | %d | %d |\n", a.name, number, before, len(r.asked)-before, useful)
}
