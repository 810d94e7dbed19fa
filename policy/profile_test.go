package policy

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"stepbox/session/e2e/must"
)

// anywhere is a match without where in its file it stands.
func anywhere(m matchFile) matchFile {
	for _, l := range []*textList{&m.Paths, &m.Modes} {
		*l = slices.Clone(*l)
		for i := range *l {
			(*l)[i].place = place{}
		}
	}
	return m
}

// TestGrammar: what is read of each program by itself is what the whole file says.
func TestGrammar(t *testing.T) {
	var f struct {
		Programs []struct {
			Names   []string `yaml:"names"`
			Program program  `yaml:",inline"`
		} `yaml:"programs"`
	}
	must.OK(t, Decode("grammar.yaml", []byte(grammarYAML), &f))
	known := 0
	for _, p := range f.Programs {
		for _, n := range p.Names {
			if known++; !reflect.DeepEqual(grammar()[n](), &p.Program) {
				t.Errorf("%s: %+v, want %+v", n, grammar()[n](), p.Program)
			}
		}
	}
	if len(grammar()) != known {
		t.Errorf("%d names, and %d of them are different", known, len(grammar()))
	}
}

func TestProfilesParse(t *testing.T) {
	var got []string
	for _, p := range BuiltinProfiles().All() {
		got = append(got, p.Name)
	}
	if !slices.Equal(got, []string{"aider", "claude", "cline", "cn", "codex", "copilot", "crush", "gemini", "opencode", "pi", "qwen", "generic"}) {
		t.Errorf("profiles: %v", got)
	}
	if len(passing()) == 0 || len(grammar()) == 0 {
		t.Error("the other files are empty")
	}
	for _, k := range BuiltinProfiles().list {
		if p := k.whole(); k.name != p.Name || !reflect.DeepEqual(anywhere(*k.match), anywhere(p.file.Match)) {
			t.Errorf("%s is looked for as %s, %+v", p.Name, k.name, *k.match)
		}
	}
	for _, p := range BuiltinProfiles().All() {
		if p.Title == "" || p.file.Agent && p.Title == p.Name {
			t.Errorf("%s has no title", p.Name)
		}
		for flag, does := range p.Prompts {
			if !strings.HasPrefix(flag, "--") || does == "" || strings.Contains(does, "\n") {
				t.Errorf("%s: %q: %q", p.Name, flag, does)
			}
		}
	}
	for in, want := range map[string]string{
		"name: x\nwrappers:\n  - {shells: [sh], flags: [-c], script: '«commands»'}\n":             "fixed text behind them",
		"name: x\nwrappers:\n  - {shells: [sh], flags: [-c], script: '«commands x»;«path /x»'}\n": "fixed text behind them",
		"name: x\nshel: y\n":                `f.yaml:2:1: there is no key "shel"`,
		"agent: true\n":                     "needs a name",
		"name: x\nhosts:\n  - a.com:0\n":    "f.yaml:3:5",
		"name: x\nmatch:\n  paths: ['[']\n": "f.yaml:3:12",
		"name: x\nwrappers:\n  - {shells: [sh], flags: [-c], script: 'eval «payload!'}\n":     "a hole isn't closed",
		"name: x\nwrappers:\n  - {shells: [sh], flags: [-c], script: 'ls'}\n":                 "one payload",
		"name: x\nwrappers:\n  - {shells: [sh], flags: [-c], script: '«path x»«payload!»'}\n": "absolute paths",
		"name: x\nwrappers:\n  - {shells: [sh], flags: [-c], script: '«payload!» x'}\n":       "nothing can follow",
	} {
		var fe *FileError
		if _, err := ParseProfile("f.yaml", []byte(in)); !errors.As(err, &fe) || fe.File != "f.yaml" || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", in, err, want)
		}
	}
}

const (
	claudeFile = "/usr/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe"
	geminiFile = "/usr/lib/node_modules/@google/gemini-cli/bundle/gemini.js"
	qwenFile   = "/usr/lib/node_modules/@qwen-code/qwen-code/cli.js"
	qwenRg     = "/usr/lib/node_modules/@qwen-code/qwen-code/vendor/ripgrep/x64-linux/rg"
	copilot    = "/usr/lib/node_modules/@github/copilot/node_modules/@github/copilot-linux-x64/copilot"
	codexFile  = "/usr/lib/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
)

func TestProfileFor(t *testing.T) {
	for _, c := range []struct {
		want, file string
		argv       []string
	}{
		{"claude", claudeFile, []string{"claude"}},
		{"claude", claudeFile, []string{"/usr/bin/claude", "-p", "x"}},
		{"claude", "", []string{"claude"}},
		{"claude", "/home/me/.local/share/claude/versions/2.1.197", []string{"claude"}},
		{"claude", "/usr/bin/node", []string{"node", "--no-warnings", "/x/@anthropic-ai/claude-code/cli.js"}},
		{"generic", claudeFile, []string{"rg", "x"}}, // the same file, called to search
		{"generic", claudeFile, []string{"bfs", "."}},
		{"codex", "/x/@openai/codex/bin/codex.js", []string{"codex"}},
		{"codex", "/usr/bin/node", []string{"node", "/usr/bin/codex"}},
		{"codex", codexFile, []string{codexFile}},
		{"generic", codexFile, []string{"/proc/self/exe", "--codex-run-as-process-setup", "1"}},
		{"generic", codexFile, []string{"apply_patch", "x"}},
		{"codex", strings.TrimSuffix(codexFile, "codex") + "codex-code-mode-host", []string{"codex-code-mode-host", "--listen", "grpc+stdio://"}},
		{"pi", "/x/bin/pi", []string{"pi"}},
		{"pi", "/usr/bin/node", []string{"node", "/x/bin/pi"}},
		{"pi", "/usr/bin/node", []string{"node", "/x/@earendil-works/pi-coding-agent/dist/cli.js", "-p", "x"}},
		{"generic", "/usr/bin/node", []string{"node", "/x/dist/cli.js"}},
		{"opencode", "/x/opencode-ai/bin/opencode.exe", []string{"opencode"}},
		{"gemini", geminiFile, []string{"gemini"}}, // a link to the script, which names node itself
		{"gemini", "/usr/bin/node", []string{"node", "/usr/bin/gemini", "-p", "x"}},
		{"gemini", "/usr/bin/node", []string{"/usr/bin/node", "--max-old-space-size=12052", geminiFile}},
		{"generic", "/usr/bin/node", []string{"node", "/p/bundle/gemini.js"}},
		{"qwen", qwenFile, []string{"qwen"}},
		{"qwen", "/usr/bin/node", []string{"node", "--max-old-space-size=8192", "/usr/bin/qwen"}},
		{"generic", "/usr/bin/node", []string{"node", "/p/cli.js"}},
		{"generic", qwenRg, []string{qwenRg, "--json", "x"}}, // its own program, to search
		{"copilot", "/usr/lib/node_modules/@github/copilot/npm-loader.js", []string{"copilot"}},
		{"copilot", "/usr/bin/node", []string{"node", "/usr/bin/copilot"}},
		{"copilot", copilot, []string{copilot, "-p", "x"}},
		{"crush", "/usr/lib/node_modules/@charmland/crush/bin/crush", []string{"crush"}},
		{"crush", "/home/me/go/bin/crush", []string{"crush", "run", "x"}},
		{"aider", "/usr/bin/python3", []string{"python3", "/home/me/.local/bin/aider"}},
		{"generic", "/usr/bin/bash", []string{"bash"}},
		{"generic", "/usr/bin/ls", []string{"claude"}}, // called so, but isn't
		{"generic", "/usr/bin/node", []string{"node", "claude-x.js"}},
		{"generic", "", nil},
	} {
		if got := BuiltinProfiles().For(c.argv, c.file).Name; got != c.want {
			t.Errorf("%q %s: %s, want %s", c.argv, c.file, got, c.want)
		}
	}
}

// Agents for node start themselves again, and are then still the agent.
func TestSelfAgain(t *testing.T) {
	for _, c := range []struct {
		profile string
		argv    []string
		want    bool
	}{
		{"gemini", []string{"/usr/bin/node", "--max-old-space-size=12052", "/usr/bin/gemini", "--yolo", "-p", "fix it"}, true},
		{"gemini", []string{"/usr/bin/node", "--require=/p/evil.js", "/usr/bin/gemini"}, false},
		{"gemini", []string{"/usr/bin/node", "/p/gemini.js"}, false},
		{"qwen", []string{"/usr/bin/node", "/usr/bin/qwen", "--yolo"}, true},
		{"qwen", []string{"/usr/bin/node", "/usr/bin/gemini"}, false},
	} {
		resolve := func(file string) string {
			return map[string]string{"/usr/bin/gemini": geminiFile, "/usr/bin/qwen": qwenFile}[file]
		}
		if got := BuiltinProfiles().Named(c.profile).Self(Command{Argv: c.argv, Program: "/usr/bin/node", Resolve: resolve}); got != c.want {
			t.Errorf("%s %q: %v", c.profile, c.argv, got)
		}
	}
	native := Command{Argv: []string{copilot, "-p", "x"}, Program: copilot}
	if p := BuiltinProfiles().Named("copilot"); !p.Self(native) || p.Self(Command{Argv: native.Argv, Program: "/p/copilot-x"}) {
		t.Error("copilot's native program is its own, another isn't")
	}
}

// What an agent only reports to is refused, and what it needs is allowed.
func TestProfileRefuses(t *testing.T) {
	p := asking().With(BuiltinProfiles().Named("gemini").Layer())
	for host, want := range map[string]Verdict{"play.googleapis.com": Deny, "generativelanguage.googleapis.com": Allow, "example.com": Ask} {
		if got := p.Connect(Destination{Name: host, Port: 443, Protocol: "tcp"}, ""); got.Verdict != want {
			t.Errorf("%s: %+v", host, got)
		}
	}
}

// A launcher's native program is the agent; what only claims to be isn't.
func TestSelf(t *testing.T) {
	p := BuiltinProfiles().Named("codex")
	for _, c := range []struct {
		c    Command
		want bool
	}{
		{Command{Argv: []string{codexFile, "exec"}, Program: codexFile}, true},
		{Command{Argv: []string{"node", "/x/@openai/codex/bin/codex.js"}, Program: "/usr/bin/node"}, true},
		{Command{Argv: []string{"node", "--max-old-space-size=8", "/x/@openai/codex/bin/codex.js"}, Program: "/usr/bin/node"}, true},
		{Command{Argv: []string{"node", "--eval=1", "/x/@openai/codex/bin/codex.js"}, Program: "/usr/bin/node"}, false},
		{Command{Argv: []string{"node", "-pe1", "/x/@openai/codex/bin/codex.js"}, Program: "/usr/bin/node"}, false},
		{Command{Argv: []string{codexFile}, Program: "/usr/bin/rm"}, false},
		{Command{Argv: []string{codexFile}, Program: codexFile, Written: true}, false},
		{Command{Argv: []string{codexFile}, Program: codexFile, Wrote: func(string) bool { return true }}, false},
		// It becomes the command behind, which is judged when it does.
		{Command{Argv: []string{"/proc/self/exe", "--codex-run-as-process-setup"}, Program: codexFile}, true},
		{Command{Argv: []string{"/proc/self/exe", "--codex-run-as-process-setup"}, Program: "/p/exe"}, false},
		{Command{Argv: []string{"/proc/self/exe", "--codex-run-as-process-setup"}, Program: codexFile, Written: true}, false},
		{Command{Argv: []string{"/proc/self/exe", "--codex-run-as-apply-patch"}, Program: codexFile}, false},
		{Command{Argv: []string{"apply_patch", "--codex-run-as-process-setup"}, Program: codexFile}, false},
		{Command{Argv: []string{codexFile}}, false},
	} {
		if got := p.Self(c.c); got != c.want {
			t.Errorf("%q: %v", c.c.Argv, got)
		}
	}
}

func TestRoot(t *testing.T) {
	p := BuiltinProfiles().Named("claude")
	for s, want := range map[string]bool{
		"bash": true, "-bash": true, "/bin/bash -l": true, "bash -i": true, "sh": true, "zsh -il": true, "fish": true, "bash --norc": true, "bash --rcfile x": true, "bash -s a": true, "bash -o vi": true, "bash +x": true, "bash -": true, "bash /dev/stdin": true,
		"tmux": true, "tmux new -s x": true, "screen": true, "screen -S x": true,
		"bash -c ls": false, "bash -lc ls": false, "bash x.sh": false, "sh -x x.sh": false, "bash -o vi x.sh": false, "bash -O extglob -c ls": false, "zsh -o nomatch x": false, "fish -c ls": false, "bash -- x.sh": false,
		"ls": false, "tmux send-keys x": false, "tmux ls": false, "env bash": false, "node": false,
	} {
		if got := p.Root(strings.Fields(s)); got != want {
			t.Errorf("%s: %v", s, got)
		}
	}
	if p.Root(nil) {
		t.Error("nothing is no shell")
	}
}

func claudeWrapped(payload string) string {
	return "source /home/me/.claude/shell-snapshots/snapshot-bash-1-a.sh 2>/dev/null || true && shopt -u extglob 2>/dev/null || true && eval " + payload + " < /dev/null && pwd -P >| /tmp/claude-1a2b-cwd"
}

// geminiWrapped is a command as gemini 0.61.0 runs it.
func geminiWrapped(commands string) string {
	return "shopt -u promptvars nullglob extglob nocaseglob dotglob; _bgpids_file=/tmp/gemini-shell-QGWJyU/bgpids.tmp\n(\n  trap 'jobs -p > \"$_bgpids_file\"' EXIT\n" + commands + "\n)\n__code=$?\nexit $__code"
}

// What stands between a wrapper's own commands is what is shown, when it can be
// nothing but commands of its own.
func TestPeelCommands(t *testing.T) {
	gemini := BuiltinProfiles().Named("gemini")
	for _, line := range []string{"ls", "git add -A && git commit -q -m 'fix'", "cat <<E\n)\nE", "ls # here", "a\n\nb", "(a)", "sleep 9 &"} {
		got := gemini.Peel([]string{"/usr/bin/bash", "-c", geminiWrapped(line)})
		if !got.Wrapped || got.Line != line || !slices.Equal(got.Argv, []string{"/usr/bin/bash", "-c", line}) {
			t.Errorf("%q: %+v", line, got)
		}
	}
	for _, script := range []string{
		geminiWrapped(""), geminiWrapped(" "), geminiWrapped("-x"), geminiWrapped("ls") + "; rm -rf .", "rm -rf .; " + geminiWrapped("ls"),
		geminiWrapped("ls\n)\nrm -rf .\n("), // out of the wrapper's parentheses, and in again
		geminiWrapped("ls\n)"), geminiWrapped("ls '"), geminiWrapped("cat <<E\nx"), geminiWrapped(`ls \`),
		geminiWrapped("jobs() { rm -rf .; }"), // which the wrapper would call
		geminiWrapped("_bgpids_file=/p/.bashrc"),
		strings.Replace(geminiWrapped("ls"), "/tmp/gemini-shell-QGWJyU", "/tmp/gemini-shell-x/../../p", 1),
		strings.Replace(geminiWrapped("ls"), "/tmp/gemini-shell-QGWJyU/bgpids.tmp", "$(rm -rf .)", 1),
	} {
		if got := gemini.Peel([]string{"/usr/bin/bash", "-c", script}); got.Wrapped && got.Line != script {
			t.Errorf("%q: peeled to %q", script, got.Line)
		}
	}
}

// Whatever stands in gemini's wrapper, what is shown is all commands that aren't
// the wrapper's own.
func FuzzPeelCommands(f *testing.F) {
	for _, s := range []string{"ls", "ls\n)\nrm\n(", "cat <<E\n)\nE", "a() { b; }", "x='\n'", "$(", "ls \\", "case x in a) ;; esac", "ls #"} {
		f.Add(s)
	}
	p := BuiltinProfiles().Named("gemini")
	f.Fuzz(func(t *testing.T, commands string) {
		script := geminiWrapped(commands)
		got := p.Peel([]string{"/bin/bash", "-c", script})
		if !got.Wrapped || got.Line == script {
			return
		}
		if got.Line != commands {
			t.Fatalf("%q is shown as %q", commands, got.Line)
		}
		file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
		if err != nil {
			return // then nothing of it runs
		}
		if n := len(file.Stmts); n != 5 {
			t.Fatalf("%q leaves %d statements, want the wrapper's five", script, n)
		}
		if _, ok := file.Stmts[2].Cmd.(*syntax.Subshell); !ok {
			t.Fatalf("%q leaves its parentheses", script)
		}
	})
}

func TestPeel(t *testing.T) {
	claude, codex := BuiltinProfiles().Named("claude"), BuiltinProfiles().Named("codex")
	snapshot := []string{"/home/me/.claude/shell-snapshots/snapshot-bash-1-a.sh"}
	for _, c := range []struct {
		p    *Profile
		argv []string
		line string // "" is not peeled, or to the whole script
		src  []string
	}{
		{claude, []string{"/bin/bash", "-c", claudeWrapped("ls")}, "ls", snapshot},
		{claude, []string{"/bin/bash", "-c", claudeWrapped("'rm -rf . && echo done'")}, "rm -rf . && echo done", snapshot},
		{claude, []string{"/bin/bash", "-c", claudeWrapped(`'it'"'"'s'`)}, "it's", snapshot},
		{claude, []string{"/bin/bash", "-c", claudeWrapped("'a\nb'")}, "a\nb", snapshot},
		{claude, []string{"/bin/bash", "-c", strings.Replace(claudeWrapped("'cat <<E\nE'"), " < /dev/null", "", 1)}, "cat <<E\nE", snapshot},
		{claude, []string{"/bin/bash", "-c", "-l", "shopt -u extglob 2>/dev/null || true && eval ls < /dev/null && pwd -P >| /tmp/claude-1-cwd"}, "ls", nil},
		{codex, []string{"/bin/bash", "-lc", "ls | wc"}, "ls | wc", nil},
		{BuiltinProfiles().Named("qwen"), []string{"bash", "-c", "ls | wc"}, "ls | wc", nil},                                  // 0.15.10
		{BuiltinProfiles().Named("copilot"), []string{"/bin/bash", "--norc", "--noprofile", "-c", "ls | wc"}, "ls | wc", nil}, // 1.0.102
		{BuiltinProfiles().Named("copilot"), []string{"/bin/bash", "--rcfile", "x", "-c", "ls | wc"}, "", nil},
		{BuiltinProfiles().Named("opencode"), []string{"/bin/bash", "-c", "ls | wc"}, "ls | wc", nil}, // 1.18.33
		{BuiltinProfiles().Named("aider"), []string{"/bin/bash", "-i", "-c", "ls | wc"}, "ls | wc", nil},
		{BuiltinProfiles().Named("pi"), []string{"/bin/bash", "-c", "ls | wc"}, "ls | wc", nil},
		{codex, []string{"/proc/self/exe", "--codex-run-as-process-setup", "47", "136", "pipe", "", "/p", "/bin/bash", "/bin/bash", "-lc", "ls"}, "ls", nil},
		// Not exactly that: more runs than would be shown.
		{claude, []string{"/bin/bash", "-c", claudeWrapped("ls") + "; rm -rf ."}, "", nil},
		{claude, []string{"/bin/bash", "-c", "rm -rf .; " + claudeWrapped("ls")}, "", nil},
		{claude, []string{"/bin/bash", "-c", claudeWrapped("'ls' 'rm'")}, "", nil},
		{claude, []string{"/bin/bash", "-c", claudeWrapped("ls;rm")}, "", nil},
		{claude, []string{"/bin/bash", "-c", claudeWrapped("$X")}, "", nil},
		{claude, []string{"/bin/bash", "-c", claudeWrapped(`"$(rm -rf .)"`)}, "", nil},
		{claude, []string{"/bin/bash", "-c", claudeWrapped("`rm`")}, "", nil},
		{claude, []string{"/bin/bash", "-c", claudeWrapped(`l\s`)}, "", nil},
		{claude, []string{"/bin/bash", "-c", claudeWrapped(`'ls`)}, "", nil},
		{claude, []string{"/bin/bash", "-c", claudeWrapped(`*`)}, "", nil},
		{claude, []string{"/bin/bash", "-c", claudeWrapped(`~`)}, "", nil},
		{claude, []string{"/bin/bash", "-c", claudeWrapped(`''`)}, "", nil},
		{claude, []string{"/bin/bash", "-c", claudeWrapped(`-- rm`)}, "", nil},
		{claude, []string{"/bin/bash", "-c", claudeWrapped("-x")}, "", nil},
		{claude, []string{"/bin/bash", "-c", claudeWrapped("ls"), "x"}, "", nil},
		{claude, []string{"/bin/bash", "-i", "-c", claudeWrapped("ls")}, "ls", snapshot},
		{claude, []string{"/p/notbash", "-c", claudeWrapped("ls")}, "", nil},
		{claude, []string{"/bin/bash", "-c", strings.Replace(claudeWrapped("ls"), "/home/me/.claude/shell-snapshots/snapshot-bash-1-a.sh", "/p/evil.sh", 1)}, "ls", []string{"/p/evil.sh"}}, // named
		{claude, []string{"/bin/bash", "-c", strings.Replace(claudeWrapped("ls"), "shell-snapshots/", "shell-snapshots/../../p/snapshot-bash-", 1)}, "", nil},
		{claude, []string{"/bin/bash", "-c", strings.Replace(claudeWrapped("ls"), "/tmp/claude-1a2b-cwd", "/p/.bashrc", 1)}, "", nil},
		{claude, []string{"/bin/bash", "-c", strings.Replace(claudeWrapped("ls"), "/tmp/claude-1a2b-cwd", "/tmp/claude-1a/../../p/x-cwd", 1)}, "", nil},
		{codex, []string{"/bin/bash", "-lc", "ls", "x"}, "", nil},
		{codex, []string{"/bin/bash", "-lc", "-x"}, "", nil},
		{codex, []string{"/bin/bash", "-ic", "ls"}, "", nil},
		{codex, []string{"/bin/bash", "-lc", " "}, "", nil},
		{codex, []string{"/proc/self/exe", "--codex-run-as-process-setup", "47", "136", "pipe", "", "/p", "/bin/sh", "/bin/bash", "-lc", "ls"}, "", nil}, // another program by that name
		{codex, []string{"/proc/self/exe", "--codex-run-as-process-setup", "47", "136", "pipe", "", "/p", "/p/evil", "/p/evil", "-lc", "ls"}, "", nil},
		{BuiltinProfiles().Named("generic"), []string{"/bin/bash", "-c", "ls"}, "ls", nil},
		{claude, nil, "", nil},
	} {
		got := c.p.Peel(c.argv)
		peeled := got.Wrapped && (c.line != "" || got.Line != c.argv[len(c.argv)-1])
		if peeled != (c.line != "") || peeled && got.Line != c.line || !slices.Equal(got.Sources, c.src) {
			t.Errorf("%q: %+v", c.argv, got)
		}
		if !got.Wrapped && (got.Line != Line(c.argv) || !slices.Equal(got.Argv, c.argv)) {
			t.Errorf("%q: not peeled, but changed: %+v", c.argv, got)
		}
		if got.Wrapped && got.Argv[len(got.Argv)-1] != got.Line {
			t.Errorf("%q: shown %q but judged %q", c.argv, got.Line, got.Argv)
		}
	}
	if got := codex.Peel([]string{"bash", "-lc", "ls"}); !slices.Contains(got.Startup, ".bash_profile") {
		t.Errorf("a login shell reads files: %+v", got)
	}
	if got := BuiltinProfiles().Named("aider").Peel([]string{"bash", "-i", "-c", "ls"}); !slices.Contains(got.Startup, ".bashrc") {
		t.Errorf("an interactive shell reads files: %+v", got)
	}
	if got := BuiltinProfiles().Named("copilot").Peel([]string{"bash", "--norc", "--noprofile", "-c", "ls"}); !got.Wrapped || got.Startup != nil {
		t.Errorf("this one reads none: %+v", got)
	}
}

// A wrapper is known by what it does, whoever wrote it: what does anything else stays as
// it is.
func TestPeelEvaluated(t *testing.T) {
	const (
		files  = "source /home/me/.claude/s.sh 2>/dev/null || true && "
		unsets = "\\builtin shopt -u extglob 2>/dev/null || true && { \\builtin unalias -- 'which'; \\builtin unset -f -- 'which'; } >/dev/null 2>&1 || true && "
		note   = " && pwd -P >| /tmp/claude-710f-cwd"
	)
	p := BuiltinProfiles().Named("claude")
	for script, want := range map[string]bool{
		files + unsets + "eval 'ls' < /dev/null" + note:                                               true,  // 2.1.332
		"setopt NO_EXTENDED_GLOB NO_BARE_GLOB_QUAL 2>/dev/null || true && eval ls < /dev/null" + note: false, // of bash it is no builtin
		"eval ls":                              true,
		files + "source /etc/profile; eval ls": false,
		files + unsets + "eval 'ls' < /dev/null" + note + "; ./x":       false,
		files + unsets + "eval 'ls' < /dev/null" + note + " && ./x":     false,
		files + unsets + "eval 'ls' < /dev/null" + note + "\n./x":       false,
		files + unsets + "eval 'ls' < /dev/null" + note + " &":          false,
		"./x && " + files + "eval ls" + note:                            false,
		files + "eval ls && eval rm" + note:                             false,
		files + "eval 'ls' rm" + note:                                   false,
		files + "eval \"$(./x)\"" + note:                                false,
		files + "eval \"ls $X\"" + note:                                 false,
		files + "eval $'l\\x73'" + note:                                 false,
		files + "eval ls < <(./x)" + note:                               false,
		files + "eval ls > x" + note:                                    false,
		files + "X=1 eval ls" + note:                                    false,
		files + "! eval ls" + note:                                      false,
		files + "command eval ls" + note:                                false,
		"source /home/me/../p/x && eval ls" + note:                      false,
		"source x && eval ls" + note:                                    false,
		"source \"$X\" && eval ls" + note:                               false,
		"source /home/me/x y && eval ls" + note:                         false,
		"source /dev/null < /home/me/x && eval ls" + note:               false,
		"source /home/me/x > /home/me/y && eval ls" + note:              false,
		"shopt -s extdebug && eval ls" + note:                           false,
		"shopt -u -o posix && eval ls" + note:                           false,
		"shopt -u interactive_comments && eval ls" + note:               false,
		"setopt DEBUG && eval ls" + note:                                false,
		"{ ./x; } && eval ls" + note:                                    false,
		"{ unset -f -- ls; eval rm; } && eval ls" + note:                false,
		"{ source /home/me/x; } && eval ls" + note:                      false,
		"(unset -f -- ls) && eval ls" + note:                            false,
		"ls() { rm; } && eval ls" + note:                                false,
		"alias ls=rm && eval ls" + note:                                 false,
		"trap rm EXIT && eval ls" + note:                                false,
		"unset -f -- ls $(rm) && eval ls" + note:                        false,
		"true `rm` && eval ls" + note:                                   false,
		"eval ls && pwd -P >| /p/x":                                     false,
		"eval ls && pwd -P >| /tmp/claude-/../../p/x":                   false,
		"eval ls && pwd -P >| /tmp/x":                                   false,
		"eval ls && pwd -P >> /tmp/claude-1":                            false,
		"eval ls && pwd -P 2>| /tmp/claude-1":                           false,
		"eval ls && pwd -P >| \"/tmp/claude-$(rm)\"":                    false,
		"eval ls && pwd -P >| /tmp/claude-1 && pwd -P >| /tmp/claude-2": false,
		"pwd -P >| /tmp/claude-1 && eval ls":                            false,
		"eval ls | ./x":                                                 false,
		"eval ls <<E\nE":                                                false,
		"true":                                                          false,
	} {
		got := p.Peel([]string{"/bin/bash", "-c", script})
		if line := map[bool]string{true: "ls", false: script}[want]; !got.Wrapped || got.Line != line {
			t.Errorf("%s: %v, %q", script, got.Wrapped, got.Line)
		}
	}
	for script, line := range map[string]string{
		"setopt NO_EXTENDED_GLOB NO_BARE_GLOB_QUAL 2>/dev/null || true && eval ls < /dev/null" + note: "ls",
		"shopt -u extglob && eval ls" + note: "shopt -u extglob && eval ls" + note, // nor this of zsh
	} {
		if got := p.Peel([]string{"/bin/zsh", "-c", script}); got.Line != line {
			t.Errorf("%s: %q", script, got.Line)
		}
	}
	if got := p.Peel([]string{"/bin/bash", "-c", "-l", "eval ls"}); !slices.Contains(got.Startup, ".bash_profile") {
		t.Errorf("a login shell reads files: %+v", got)
	}
}

// What is peeled off Claude's wrapper is all that is left to run: an
// independent reading of the script finds the wrapper's own commands and one
// eval, whose text is the line.
func FuzzPeel(f *testing.F) {
	for _, s := range []string{"ls", "'a b'", `'it'"'"'s'`, "'x' < /dev/null; rm", "$(x)", "a;b", "'a\nb'", "\"a\"", "=a", "{a,b}", "#"} {
		f.Add(claudeWrapped(s))
	}
	p := BuiltinProfiles().Named("claude")
	f.Fuzz(func(t *testing.T, script string) {
		got := p.Peel([]string{"/bin/bash", "-c", script})
		if !got.Wrapped {
			if got.Line != Line([]string{"/bin/bash", "-c", script}) {
				t.Fatalf("%q shown as %q", script, got.Line)
			}
			return
		}
		if got.Line == script {
			return
		}
		file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
		if err != nil {
			t.Fatalf("%q was peeled but can't be parsed: %v", script, err)
		}
		evals := 0
		syntax.Walk(file, func(n syntax.Node) bool {
			c, ok := n.(*syntax.CallExpr)
			if !ok {
				return true
			}
			switch name := strings.TrimPrefix(c.Args[0].Lit(), `\`); name {
			case "source", "true", "shopt", "pwd", "unset", "unalias", "setopt":
			case "builtin":
				if !slices.Contains([]string{"source", "true", "shopt", "pwd", "unset", "unalias", "setopt"}, c.Args[1].Lit()) {
					t.Fatalf("%q has a builtin %q", script, c.Args[1].Lit())
				}
			case "eval":
				evals++
				if len(c.Args) != 2 {
					t.Fatalf("%q: eval with %d arguments", script, len(c.Args))
				}
				text, err := expand.Literal(&expand.Config{}, c.Args[1])
				if err != nil || text != got.Line {
					t.Fatalf("%q evaluates %q but shows %q", script, text, got.Line)
				}
			default:
				t.Fatalf("%q also runs %q", script, name)
			}
			return true
		})
		if evals != 1 {
			t.Fatalf("%q: %d evals", script, evals)
		}
	})
}

func TestArgs(t *testing.T) {
	codex := BuiltinProfiles().Named("codex")
	got := codex.Args([]string{"codex", "exec", "x"})
	if got[0] != "codex" || got[1] != "-c" || !slices.Equal(got[len(got)-2:], []string{"exec", "x"}) || !slices.Contains(got, "sandbox_mode=danger-full-access") {
		t.Errorf("%q", got)
	}
	got = codex.Args([]string{"node", "/x/codex.js", "exec"})
	if !slices.Equal(got[:3], []string{"node", "/x/codex.js", "-c"}) || got[len(got)-1] != "exec" {
		t.Errorf("%q", got)
	}
	for _, p := range BuiltinProfiles().All() {
		in := []string{"x", "y"}
		p.Args(in)[0] = "z"
		if in[0] != "x" || p.Args(nil) != nil {
			t.Errorf("%s changes what it is given", p.Name)
		}
	}
}

// Of a person's environment only what is known passes, and never a token.
func TestEnvironment(t *testing.T) {
	host := []string{
		"TERM=xterm", "LANG=C.UTF-8", "LC_ALL=C", "EDITOR=vi", "NO_COLOR=1", "TZ=UTC", "COLORTERM=truecolor", "TERM=dumb", "PAGER=" + strings.Repeat("x", 5000),
		"ANTHROPIC_API_KEY=secret", "OPENAI_API_KEY=secret", "GITHUB_TOKEN=secret", "AWS_SECRET_ACCESS_KEY=secret", "LC_TOKEN=secret", "LC_=secret", "TERM_TOKEN=secret", "SSH_AUTH_SOCK=secret", "DBUS_SESSION_BUS_ADDRESS=secret", "XAUTHORITY=secret",
		"HTTP_PROXY=http://u:secret@h", "LD_PRELOAD=secret", "BASH_ENV=secret", "NODE_OPTIONS=secret", "HOME=secret", "PATH=secret", "BASH_FUNC_ls%%=() { secret; }", "=secret", "secret", "IS_SANDBOX=0", "ANTHROPIC_MODEL=m",
	}
	got := Environment(host, BuiltinProfiles().Named("claude"))
	for _, e := range got {
		if strings.Contains(e, "secret") {
			t.Errorf("%s passes", e)
		}
	}
	for _, want := range []string{"TERM=xterm", "LC_ALL=C", "IS_SANDBOX=1", "DISABLE_AUTOUPDATER=1", "ANTHROPIC_MODEL=m"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s doesn't pass: %v", want, got)
		}
	}
	for _, no := range []string{"TERM=dumb", "IS_SANDBOX=0"} {
		if slices.Contains(got, no) {
			t.Errorf("%s passes, too", no)
		}
	}
	if got := Environment(host, BuiltinProfiles().Named("generic")); slices.Contains(got, "ANTHROPIC_MODEL=m") || slices.Contains(got, "IS_SANDBOX=0") {
		t.Errorf("generic: %v", got)
	}
}

// What an agent's profile says of questions counts as what policies do.
func TestProfileAsks(t *testing.T) {
	p, err := ParseProfile("f.yaml", []byte("name: x\nask: {on: deny, timeout: 5m}\n"))
	must.OK(t, err)
	a := asking().With(p.Layer()).Asking()
	if len(a) != 1 || a[0].On != "deny" || a[0].Timeout != 5*time.Minute || a[0].Layer != "profile x" || a[0].Line != 2 {
		t.Errorf("got %+v", a)
	}
	if _, err := ParseProfile("f.yaml", []byte("name: x\nask: {on: later}\n")); err == nil || !strings.Contains(err.Error(), `2:11: questions wait or are denied`) {
		t.Errorf("got %v", err)
	}
}

// What an agent asks for without being told to is denied to its own program alone.
func TestProfileNetwork(t *testing.T) {
	rules := asking().With(BuiltinProfiles().Named("codex").Layer())
	news := Destination{Name: "raw.githubusercontent.com", Port: 443, Protocol: TCP}
	for program, want := range map[string]Verdict{codexFile: Deny, "/usr/bin/curl": Ask, "/p/codex": Ask} {
		if got := rules.Connect(news, program); got.Verdict != want {
			t.Errorf("%s: %s", program, got.Verdict)
		}
	}
	if _, err := ParseProfile("f.yaml", []byte("name: x\nnetwork: [{deny: 'a.com:0'}]\n")); err == nil || !strings.Contains(err.Error(), "f.yaml:2:") {
		t.Errorf("got %v", err)
	}
}
