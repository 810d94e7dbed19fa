package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stepbox/session/api"
	"stepbox/session/e2e/standintest"
)

// object is a tool's input.
type object = map[string]any

// codexConfig leads Codex to the stand-in.
const codexConfig = `model_provider = "standin"
approval_policy = "never"
[model_providers.standin]
name = "stand-in"
base_url = "URL/v1"
env_key = "STANDIN_KEY"
wire_api = "responses"
[projects."PROJECT"]
trust_level = "trusted"
`

// opencodeConfig leads opencode to the stand-in.
const opencodeConfig = `{"model":"standin/stand-in","small_model":"standin/stand-in","provider":{"standin":{"npm":"@ai-sdk/openai-compatible",
			 "options":{"base\u0055RL":"URL/v1","apiKey":"fake"},"models":{"stand-in":{}}}}}`

// agents are the kinds of agents that are tried.
var agents = []*agent{
	{
		name: "claude",
		env:  map[string]string{"ANTHROPIC_BASE_URL": "URL", "ANTHROPIC_AUTH_TOKEN": "fake"},
		files: map[string]string{
			// It asks at its first start for colours, for trust in the folder and
			// whether it may do what it wants.
			".claude.json":          `{"hasCompletedOnboarding":true,"theme":"dark","bypassPermissionsModeAccepted":true,"projects":{"PROJECT":{"hasTrustDialogAccepted":true}}}`,
			".claude/settings.json": `{"skipDangerousModePermissionPrompt":true}`,
		},
		args:   []string{"--dangerously-skip-permissions"},
		ready:  "bypass permissions on",
		signIn: "`ANTHROPIC_API_KEY` or `ANTHROPIC_AUTH_TOKEN`",
		limits: "none seen",
		ask:    []string{"-p"},
		again:  []string{"--continue", "-p"},
		resume: []string{"--continue"},
		shell: func(command string) standintest.Call {
			return standintest.Call{Tool: "Bash", Input: object{"command": command, "description": "a test"}}
		},
		read: func(file string) standintest.Call {
			return standintest.Call{Tool: "Read", Input: object{"file_path": file}}
		},
		edit: func(file, old, text string) standintest.Call {
			return standintest.Call{Tool: "Edit", Input: object{"file_path": file, "old_string": old, "new_string": text}}
		},
		tool: func(name string, input object) standintest.Call {
			return standintest.Call{Tool: "mcp__stepbox__" + name, Input: input}
		},
		tells:  true,
		asking: &asking{ready: "for shortcuts"},
		own: map[string]string{
			".claude.json":          `{"mcpServers":{"mine":{"command":"PROJECT/server"}}}`,
			".claude/settings.json": `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"touch hooked"}]}]}}`,
		},
		paid: &paid{
			credential: "anthropic", variable: "ANTHROPIC_API_KEY", host: "api.anthropic.com",
			files: map[string]string{".claude.json": `{"hasCompletedOnboarding":true}`},
			args:  []string{"--dangerously-skip-permissions"},
		},
	},
	{
		name:   "codex",
		env:    map[string]string{"STANDIN_KEY": "fake"},
		files:  map[string]string{".codex/config.toml": codexConfig},
		ready:  "Ask Codex to do anything",
		signIn: "the variable that its `env_key` names",
		limits: "tells its model after 30 s that a held command runs; esc leaves a command running, `/stop` ends it",
		ask:    []string{"exec", "--skip-git-repo-check"},
		again:  []string{"exec", "--skip-git-repo-check", "resume", "--last"},
		resume: []string{"resume", "--last"},
		stop:   "/stop",
		shell: func(command string) standintest.Call {
			return standintest.Call{Tool: "exec", Input: "text(await tools.exec_command({cmd: " + quoted(command) + ", yield_time_ms: 30000}))"}
		},
		// It has no tool to read with: its model uses the shell.
		read: func(file string) standintest.Call {
			return standintest.Call{Tool: "exec", Input: "text(await tools.exec_command({cmd: " + quoted("cat "+file) + "}))"}
		},
		edit: func(file, old, text string) standintest.Call {
			patch := fmt.Sprintf("*** Begin Patch\n*** Update File: %s\n@@\n-%s\n+%s\n*** End Patch\n", file, old, text)
			return standintest.Call{Tool: "exec", Input: "text(await tools.apply_patch(" + quoted(patch) + "))"}
		},
		tool: func(name string, input object) standintest.Call {
			return standintest.Call{Tool: "exec", Input: "text(JSON.stringify(await tools.mcp__stepbox__" + name + "(" + quoted(input) + ")))"}
		},
		tells: true,
		asking: &asking{
			files: map[string]string{
				".codex/config.toml":         strings.Replace(codexConfig, `"never"`, `"on-request"`, 1),
				".codex/rules/default.rules": `prefix_rule(pattern=["touch"], decision="prompt")` + "\n",
			},
			ready: "Ask Codex to do anything",
		},
		own: map[string]string{".codex/config.toml": codexConfig + `
[mcp_servers.mine]
command = "PROJECT/server"
startup_timeout_sec = 1
[[hooks.PreToolUse]]
[[hooks.PreToolUse.hooks]]
type = "command"
command = "touch hooked"
`},
		paid: &paid{
			credential: "openai", variable: "OPENAI_API_KEY", host: "api.openai.com",
			files: map[string]string{
				".codex/config.toml": strings.NewReplacer("URL", "https://api.openai.com", "STANDIN_KEY", "OPENAI_API_KEY").Replace(codexConfig),
			},
		},
	},
	{
		name: "pi",
		files: map[string]string{
			".pi/agent/models.json": `{"providers":{"standin":{"baseUrl":"URL","api":"anthropic-messages","apiKey":"fake","models":[{"id":"stand-in"}]}}}`,
		},
		args:   []string{"--provider", "standin", "--model", "stand-in"},
		ready:  "0.0%/128k",
		signIn: "the variable of its provider, or `apiKey` in `models.json`",
		limits: "fetches no `fd` and `rg` of its own",
		ask:    []string{"-p"},
		again:  []string{"--continue", "-p"},
		resume: []string{"--continue"},
		shell: func(command string) standintest.Call {
			return standintest.Call{Tool: "bash", Input: object{"command": command}}
		},
		read: func(file string) standintest.Call {
			return standintest.Call{Tool: "read", Input: object{"path": file}}
		},
		edit: func(file, old, text string) standintest.Call {
			return standintest.Call{Tool: "edit", Input: object{"path": file, "edits": []object{{"oldText": old, "newText": text}}}}
		},
		paid: &paid{
			credential: "anthropic", variable: "ANTHROPIC_API_KEY", host: "api.anthropic.com",
			args: []string{"--provider", "anthropic", "--model", "claude-sonnet-4-5"},
		},
	},
	{
		name: "gemini",
		env:  map[string]string{"GOOGLE_GEMINI_BASE_URL": "URL", "GEMINI_API_KEY": "fake"},
		files: map[string]string{
			".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}}}`,
		},
		args:    []string{"--yolo"},
		ready:   "Type your message",
		ask:     []string{"-p"},
		signIn:  "`GEMINI_API_KEY`",
		limits:  "its commands' git reads no configuration of yours: a name for commits has to be in the repository's",
		again:   []string{"--resume", "latest", "-p"},
		resume:  []string{"--resume", "latest"},
		resumed: "Request cancelled",
		shell: func(command string) standintest.Call {
			return standintest.Call{Tool: "run_shell_command", Input: object{"command": command}}
		},
		read: func(file string) standintest.Call {
			return standintest.Call{Tool: "read_file", Input: object{"file_path": file}}
		},
		edit: func(file, old, text string) standintest.Call {
			return standintest.Call{Tool: "replace", Input: object{"file_path": file, "instruction": "a test", "old_string": old, "new_string": text}}
		},
		tool: func(name string, input object) standintest.Call {
			return standintest.Call{Tool: "mcp_stepbox_" + name, Input: input}
		},
		tells: true,
		own:   map[string]string{".gemini/settings.json": `{"mcpServers":{"mine":{"command":"PROJECT/server","timeout":1000}},"hooks":{"BeforeTool":[{"hooks":[{"type":"command","command":"touch hooked"}]}]}}`},
		paid: &paid{
			credential: "gemini", variable: "GEMINI_API_KEY", host: "generativelanguage.googleapis.com",
			files: map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}}}`},
			args:  []string{"--yolo"},
		},
	},
	{
		name:     "qwen",
		env:      map[string]string{"OPENAI_BASE_URL": "URL/v1", "OPENAI_API_KEY": "fake", "OPENAI_MODEL": "stand-in"},
		args:     []string{"--yolo", "--auth-type", "openai"},
		ready:    "Type your message",
		ask:      []string{"-p"},
		signIn:   "`OPENAI_API_KEY`",
		limits:   "adds itself to commits, with a git note that is asked about in step mode",
		again:    []string{"--continue", "-p"},
		resume:   []string{"--continue"},
		rewrites: strings.NewReplacer("'Add instead of subtracting'", "'Add instead of subtracting↵↵Co-authored-by: Qwen-Coder <qwen-coder@alibabacloud.com>'"),
		also:     []string{"git notes --ref=refs/notes/ai-attribution add"},
		shell: func(command string) standintest.Call {
			return standintest.Call{Tool: "run_shell_command", Input: object{"command": command, "is_background": false}}
		},
		read: func(file string) standintest.Call {
			return standintest.Call{Tool: "read_file", Input: object{"file_path": file}}
		},
		edit: func(file, old, text string) standintest.Call {
			return standintest.Call{Tool: "edit", Input: object{"file_path": file, "old_string": old, "new_string": text}}
		},
		tool: func(name string, input object) standintest.Call {
			return standintest.Call{Tool: "mcp__stepbox__" + name, Input: input}
		},
		tells:  true,
		asking: &asking{args: []string{"--auth-type", "openai"}, ready: "Type your message", after: true},
		own:    map[string]string{".qwen/settings.json": `{"mcpServers":{"mine":{"command":"PROJECT/server","timeout":1000}},"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"touch hooked"}]}]}}`},
	},
	{
		name: "opencode",
		files: map[string]string{
			".config/opencode/opencode.json": opencodeConfig,
		},
		denied: []string{"github.com:443"},
		ready:  "ctrl+p commands",
		ask:    []string{"run"},
		signIn: "the variable of its provider, or `apiKey` in `opencode.json`",
		limits: "writes `.git/opencode`, an edit; fetches `rg` from github.com where there is none, which is asked about; escape twice stops it",
		again:  []string{"run", "--continue"},
		resume: []string{"--continue"},
		twice:  "again to interrupt",
		// It keeps an id there.
		also: []string{"edit .git/opencode"},
		shell: func(command string) standintest.Call {
			return standintest.Call{Tool: "bash", Input: object{"command": command, "description": "a test"}}
		},
		read: func(file string) standintest.Call {
			return standintest.Call{Tool: "read", Input: object{"filePath": file}}
		},
		edit: func(file, old, text string) standintest.Call {
			return standintest.Call{Tool: "edit", Input: object{"filePath": file, "oldString": old, "newString": text}}
		},
		tool: func(name string, input object) standintest.Call {
			return standintest.Call{Tool: "stepbox_" + name, Input: input}
		},
		own: map[string]string{".config/opencode/opencode.json": strings.TrimSuffix(opencodeConfig, "}") + `,"plugin":["./mine.js"],"mcp":{"mine":{"type":"local","command":["PROJECT/server"],"timeout":1000}}}`},
	},
	{
		name: "copilot",
		env:  map[string]string{"COPILOT_PROVIDER_BASE_URL": "URL/v1", "COPILOT_MODEL": "stand-in"},
		files: map[string]string{
			".copilot/config.json": `{"trustedFolders":["PROJECT"]}`,
		},
		args:     []string{"--allow-all"},
		ready:    "Interactive · Allow All",
		twice:    "again to interrupt",
		signIn:   "none for a provider of your own (`COPILOT_PROVIDER_BASE_URL`), else `COPILOT_GITHUB_TOKEN`",
		limits:   "runs programs of the folder by their whole path",
		resume:   []string{"--continue"},
		ask:      []string{"-p"},
		again:    []string{"--continue", "-p"},
		rewrites: strings.NewReplacer("./check.sh", "command 'PROJECT/check.sh'"),
		shell: func(command string) standintest.Call {
			return standintest.Call{Tool: "bash", Input: object{"command": command, "description": "a test", "mode": "sync", "initial_wait": 120}}
		},
		read: func(file string) standintest.Call {
			return standintest.Call{Tool: "view", Input: object{"path": file}}
		},
		edit: func(file, old, text string) standintest.Call {
			return standintest.Call{Tool: "edit", Input: object{"path": file, "old_str": old, "new_str": text}}
		},
		tool: func(name string, input object) standintest.Call {
			return standintest.Call{Tool: "stepbox-" + name, Input: input}
		},
		own: map[string]string{
			".copilot/mcp-config.json": `{"mcpServers":{"mine":{"type":"local","command":"PROJECT/server","args":[],"tools":["*"]}}}`,
			".copilot/settings.json":   `{"hooks":{"preToolUse":[{"type":"command","bash":"touch hooked"}]}}`,
		},
	},
}

// quoted is a string or an object as JavaScript has it.
func quoted(what any) string {
	text, err := json.Marshal(what)
	if err != nil {
		panic(err) // these can be
	}
	return string(text)
}

// each runs a test with every one of the agents that is installed.
func each(t *testing.T, agents []*agent, test func(t *testing.T, a *agent, p *person, model *standintest.Server)) {
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			a.program(t)
			p := newPerson(t)
			p.repository()
			model := standintest.New()
			t.Cleanup(model.Close)
			a.prepare(p, model)
			test(t, a, p, model)
		})
	}
}

// calls makes a script of one call a turn, and words at its end.
func calls(calls ...standintest.Call) (steps []standintest.Step) {
	for _, c := range calls {
		steps = append(steps, standintest.Use(c.Tool, c.Input))
	}
	return append(steps, standintest.Say("The work is done."))
}

// results are what came of the calls, as the agent told the model last.
func results(t *testing.T, model *standintest.Server, want int) []string {
	t.Helper()
	turns := model.Turns()
	if len(turns) == 0 || len(turns[len(turns)-1].Results) != want {
		t.Fatalf("the model heard of %d turns, the last with %+v; want %d results", len(turns), turns, want)
	}
	return turns[len(turns)-1].Results
}

// titles looks for actions by what a person reads of them, in order. Those that a
// profile calls housekeeping are left out, and so is what reads a file by its whole path,
// and what this agent is known to do beside. What it rewrites is looked for as it runs.
func titles(t *testing.T, a *agent, p *person, s shown, want ...string) {
	t.Helper()
	for i := range want {
		if a.rewrites != nil {
			want[i] = strings.ReplaceAll(a.rewrites.Replace(want[i]), "PROJECT", p.project)
		}
	}
	also := func(title string) bool {
		return slices.ContainsFunc(a.also, func(s string) bool { return strings.HasPrefix(title, s) })
	}
	var got []string
	for _, x := range s.List {
		if !x.Housekeeping && !strings.HasPrefix(x.Title, "cat /") && !also(x.Title) {
			got = append(got, x.Title)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the actions are\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// An agent does its work in policy mode: it lists, reads, edits with its own
// tool, tests, commits, and leaves a process running. Nothing of it is asked.
func TestAgentsWork(t *testing.T) {
	each(t, agents, func(t *testing.T, a *agent, p *person, model *standintest.Server) {
		model.Add(calls(
			a.shell("ls -la"),
			a.read(p.project+"/calc.py"),
			a.edit(p.project+"/calc.py", "    return a - b", "    return a + b"),
			a.shell("./check.sh"),
			a.shell("git commit -qam 'Add instead of subtracting' && git log --oneline"),
			a.shell("sleep 300 >/dev/null 2>&1 & echo started"),
		)...)
		r := a.run(t, p, model, "policy", "work", append(a.ask, "make the test pass"), approving)
		if r.exit != 0 || !strings.Contains(r.output, "The work is done.") {
			t.Errorf("exit %d: %s", r.exit, r.output)
		}
		for _, q := range r.asked {
			if !slices.Contains(a.asks, q.Title) {
				t.Errorf("asked: %s: %s", q.Title, q.Rule)
			}
		}
		titles(t, a, p, p.show("work"), "ls -la", "edit calc.py", "./check.sh", "git commit -qam 'Add instead of subtracting' && git log --oneline", "sleep 300 >/dev/null 2>&1 & echo started")
		for i, want := range []string{"calc.py", "a - b", "", "all tests passed", "Add instead of subtracting", "started"} {
			if got := results(t, model, 6)[i]; !strings.Contains(got, want) {
				t.Errorf("call %d gave %q, want %q in it", i, got, want)
			}
		}
	})
}

// A denied command fails with the reason, which the agent's next request tells
// the model, and the agent goes on: with words, and with the next command.
func TestAgentsDenied(t *testing.T) {
	const reason = "old.txt is still needed by Kim"
	each(t, agents, func(t *testing.T, a *agent, p *person, model *standintest.Server) {
		model.Add(calls(a.shell("ls"), a.shell("rm old.txt"), a.shell("echo go''ing on"))...)
		r := a.run(t, p, model, "step", "denied", append(a.ask, "tidy up"), func(q api.Question) (api.Answer, string) {
			if strings.Contains(q.Title, "rm ") {
				return api.AnswerDeny, reason
			}
			return approving(q)
		})
		got := results(t, model, 3)
		if !strings.Contains(got[1], reason) || strings.Contains(got[0], reason) {
			t.Errorf("the model was told %q of the denied command", got[1])
		}
		if !strings.Contains(got[2], "going on") {
			t.Errorf("after it, a command gave %q", got[2])
		}
		titles(t, a, p, p.show("denied"), "ls", "rm old.txt", "echo go''ing on")
		for _, q := range r.asked { // nothing of its own
			if q.Subject != api.SubjectCommand && !slices.Contains(a.asks, q.Title) && !slices.Contains(a.also, q.Title) {
				t.Errorf("asked, too: %s %s: %s", q.Subject, q.Title, q.Rule)
			}
		}
		if r.exit != 0 || !strings.Contains(r.output, "The work is done.") {
			t.Errorf("exit %d: %s", r.exit, r.output)
		}
	})
}

// A rule's denial is like a person's: it reaches the model once, with why, wherever
// in the command the program is, and nothing is tried another way.
func TestAgentsDeniedByRule(t *testing.T) {
	each(t, agents, func(t *testing.T, a *agent, p *person, model *standintest.Server) {
		p.put(filepath.Join(p.project, ".stepbox.yaml"), "commands:\n  - deny: shred *\n    why: it can't be undone\n")
		model.Add(calls(
			a.shell("ls; shred old.txt"),
			a.shell("exec shred old.txt"),
			a.shell(`python3 -c 'import subprocess; print(subprocess.call(["shred", "old.txt"]))'`),
			a.shell("cat <>/dev/tcp/unknown.example/443; echo go''ing on"),
		)...)
		r := a.run(t, p, model, "policy", "ruled", append(a.ask, "tidy up"), func(q api.Question) (api.Answer, string) {
			if q.Subject == api.SubjectConnection {
				return api.AnswerDeny, "nobody knows it"
			}
			return approving(q)
		})
		got := results(t, model, 4)
		for i, want := range []string{"it can't be undone", "it can't be undone", "it can't be undone", "going on"} {
			if !strings.Contains(got[i], want) {
				t.Errorf("call %d gave %q, want %q in it", i, got[i], want)
			}
		}
		r.asked = slices.DeleteFunc(r.asked, func(q api.Question) bool { return slices.Contains(a.asks, q.Title) })
		if len(r.asked) != 1 || r.asked[0].Title != "connect to unknown.example:443" {
			t.Errorf("asked were %+v", r.asked)
		}
		titles(t, a, p, p.show("ruled"), "ls; shred old.txt", "exec shred old.txt",
			`python3 -c 'import subprocess; print(subprocess.call(["shred", "old.txt"]))'`, "cat <>/dev/tcp/unknown.example/443; echo go''ing on")
		if r.exit != 0 || !strings.Contains(r.output, "The work is done.") {
			t.Errorf("exit %d: %s", r.exit, r.output)
		}
	})
}

// An edit that is taken back while the agent waits is gone before its next command
// runs, which tells it so.
func TestAgentsTakenBack(t *testing.T) {
	each(t, agents, func(t *testing.T, a *agent, p *person, model *standintest.Server) {
		model.Add(calls(
			a.read(p.project+"/calc.py"),
			a.edit(p.project+"/calc.py", "    return a - b", "    return a + b"),
			a.shell("cat ./calc.py"),
		)...)
		r := a.run(t, p, model, "step", "back", append(a.ask, "make the test pass"), func(q api.Question) (api.Answer, string) {
			if q.Subject == api.SubjectEdit {
				return api.AnswerRollback, ""
			}
			return approving(q)
		})
		got := results(t, model, 3)[2]
		if !strings.Contains(got, "return a - b") || !strings.Contains(got, "calc.py restored by the person") && !strings.Contains(got, "rolled back by the person") {
			t.Errorf("after it, the file was %q", got)
		}
		if r.exit != 0 || !strings.Contains(r.output, "The work is done.") {
			t.Errorf("exit %d: %s", r.exit, r.output)
		}
	})
}

// A conversation goes on in a following session, by the agent's own way.
func TestAgentsContinue(t *testing.T) {
	each(t, agents, func(t *testing.T, a *agent, p *person, model *standintest.Server) {
		model.Add(calls(a.shell("echo the wor''d is heron"))...)
		a.run(t, p, model, "policy", "first", append(a.ask, "remember the word"), approving)
		model.Add(standintest.Say("It was heron."))
		r := a.run(t, p, model, "policy", "second", append(a.again, "which word was it?"), approving)
		if r.exit != 0 || !strings.Contains(r.output, "It was heron.") {
			t.Errorf("exit %d: %s", r.exit, r.output)
		}
		turns := model.Turns()
		if last := turns[len(turns)-1]; !last.Says("remember the word") || !last.Says("the word is heron") || !last.Says("which word was it?") {
			t.Errorf("the model was asked %s", last.Body)
		}
	})
}
