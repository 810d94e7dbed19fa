package judge

import (
	"slices"
	"strings"
	"testing"

	"stepbox/policy"
	"stepbox/runner"
	"stepbox/runner/gate"
)

// What a person has approved a command with isn't shown again, unless it can have something run, leads
// to what the agent made, or can't be read; what loads code is shown first.
func TestMet(t *testing.T) {
	j := made(t, "tmp/sh", "tmp/dir/")
	step := func(name, env, shown, same string) *Exec {
		t.Helper()
		e := starts("/usr/bin/ls", "/usr/bin/ls", "ls")
		e.Env = append(e.Env, strings.Fields(env)...)
		x := j.Exec(e, claude)
		if !slices.Equal(x.Command.Env, strings.Fields(shown)) || !slices.Equal(x.Command.EnvUsual, strings.Fields(same)) {
			t.Errorf("%s: shown %q, met %q", name, x.Command.Env, x.Command.EnvUsual)
		}
		return x
	}
	long := "LC_ALL=" + strings.Repeat("x", maxAlike)
	const loads = "LD_PRELOAD=x PATH=/x PAGER=less"
	rest := "NO_COLOR=1 PAGER=cat A=1 TOOL=/tmp/sh DIR=/tmp/dir:/usr " + long
	x := step("the first", rest+" "+loads, loads+" "+rest, "")
	step("not approved", "A=1", "A=1", "")
	j.Approved(x)
	step("approved", rest+" "+loads, loads+" TOOL=/tmp/sh "+long, "NO_COLOR=1 PAGER=cat A=1 DIR=/tmp/dir:/usr")
	step("another value", "A=2", "A=2", "")
	const git = "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0="
	j.Approved(step("git's settings that take from it", git, git, ""))
	step("as approved", git, "", git)
	j.Approved(step("a value that runs something", git+"/x", git+"/x", ""))
	step("is shown with its name", git+"/x", git+"/x", "")
	unclear := starts("/usr/bin/ls", "/usr/bin/ls", "ls")
	unclear.Env = append(unclear.Env, "LC_ALL=a\x1bb")
	j.Approved(j.Exec(unclear, claude))
	if c := j.Exec(unclear, claude).Command; len(c.Env) != 1 {
		t.Errorf("what can't be read isn't shown: %q", c.EnvUsual)
	}
}

// Variables that say where a program runs are shown when they lie.
func TestOfItsPlace(t *testing.T) {
	j := made(t, "tmp/bash")
	for v, folded := range map[string]bool{
		"PWD=/p": true, "PWD=/p/src": false, "_=/usr/bin/ls": true, "_=/tmp/x": false, "SHLVL=2": true, "COLUMNS=80": true, "COLUMNS=a[$(x)]": false, "LINES=": false, "LINES=-1": false,
		"SHELL=/bin/bash": true, "SHELL=/tmp/bash": false, "SHELL=/usr/bin/python3": false, "OLDPWD=/p": false,
	} {
		e := starts("/usr/bin/ls", "/usr/bin/ls", "ls")
		e.Env = append(e.Env, v)
		c := j.Exec(e, claude).Command
		if folded != slices.Equal(c.EnvUsual, []string{v}) || folded == slices.Equal(c.Env, []string{v}) {
			t.Errorf("%s: shown %q, folded %q", v, c.Env, c.EnvUsual)
		}
	}
}

// A shell that the agent runs its hooks in is known by its line, which is nothing else, and by what it reads first.
func TestHooks(t *testing.T) {
	const line = runner.SelfPath + " hook codex PreToolUse"
	for name, test := range map[string]struct {
		argv  []string
		env   string
		files []string
		want  bool
	}{
		"plain":              {argv: []string{"bash", "-c", line}, want: true},
		"a login shell":      {argv: []string{"bash", "-lc", line}, want: true},
		"one that reads":     {argv: []string{"bash", "-lc", line}, files: []string{"home/.profile"}},
		"one that doesn't":   {argv: []string{"bash", "-c", line}, files: []string{"home/.profile"}, want: true},
		"more":               {argv: []string{"bash", "-c", line + "; rm -rf ."}},
		"a further line":     {argv: []string{"bash", "-c", line + "\nrm -rf ."}},
		"a substitution":     {argv: []string{"bash", "-c", runner.SelfPath + " hook codex $(rm)"}},
		"another path":       {argv: []string{"bash", "-c", "/run/stepbox/bin/../bin/stepbox hook codex PreToolUse"}},
		"another program":    {argv: []string{"bash", "-c", "/p/stepbox hook codex PreToolUse"}},
		"another command":    {argv: []string{"bash", "-c", runner.SelfPath + " run -- sh"}},
		"in the background":  {argv: []string{"bash", "-c", line + "&"}},
		"an option":          {argv: []string{"bash", "-x", "-c", line}},
		"a variable":         {argv: []string{"bash", "-c", line}, env: "BASH_ENV=/p/x"},
		"another home":       {argv: []string{"bash", "-lc", line}, env: "HOME=/p"},
		"what is no command": {argv: []string{"bash", "-c", "-c " + line}},
	} {
		j := made(t, test.files...)
		j.Know(gate.File{Path: runner.SelfPath})
		e := starts("/usr/bin/bash", "/usr/bin/bash", test.argv...)
		if test.env != "" {
			e.Env = append(e.Env, test.env)
		}
		if got := j.Exec(e, policy.BuiltinProfiles().Named("codex")).Hook; got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	j := made(t)
	j.Know(gate.File{Path: runner.SelfPath})
	if j.Exec(starts("/p/bash", "/p/bash", "bash", "-c", line), policy.BuiltinProfiles().Named("codex")).Hook {
		t.Error("any program that is called bash is taken for a shell")
	}
}

// What Codex runs for itself is told from what sets its model's commands up.
func TestCodexsOwn(t *testing.T) {
	j, codex := made(t), policy.BuiltinProfiles().Named("codex")
	const native = "/usr/lib/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
	starter := starts("/proc/self/exe", native, "/proc/self/exe", "--codex-run-as-process-setup", "47", "136", "pipe", "", "/p", "/bin/bash", "/bin/bash", "-lc", "pwd")
	if x := j.Exec(starter, codex); !x.Becomes() {
		t.Error("what sets a command up isn't known")
	}
}

// A wrapper's line breaks aren't in the command that is shown, and its own are marked.
func TestWrappersLineBreaks(t *testing.T) {
	const (
		before = "shopt -u promptvars nullglob extglob nocaseglob dotglob; _bgpids_file=/tmp/gemini-shell-a1/bgpids.tmp\n(\n  trap 'jobs -p > \"$_bgpids_file\"' EXIT\n"
		after  = "\n)\n__code=$?\nexit $__code"
	)
	j, gemini := made(t), policy.BuiltinProfiles().Named("gemini")
	for script, want := range map[string]string{"ls": "", "printf 'a\\n'": `printf 'a\n'`, "echo a\necho b": "echo a↵echo b", "echo a\techo b": "unclear"} {
		x := j.Exec(starts("/usr/bin/bash", "/usr/bin/bash", "bash", "-c", before+script+after), gemini)
		if c := x.Command; !x.peeled.Wrapped || !c.Unclear || c.Clear != (want != "unclear") || c.Clear && c.Script != want {
			t.Errorf("%q: %+v", script, x.Command)
		}
	}
}
