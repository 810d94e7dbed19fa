package judge

import (
	"slices"
	"strings"
	"testing"

	"stepbox/policy"
)

// What the agent sets for all of its commands isn't shown with each, unless it can have
// something run, differs between them, or can't be read.
func TestAlike(t *testing.T) {
	long := "LC_ALL=" + strings.Repeat("x", maxAlike)
	var a alike
	step := func(name string, wrapped bool, env, shown, same string) {
		t.Helper()
		gotShown, gotSame := a.split(strings.Fields(env), wrapped)
		if !slices.Equal(gotShown, strings.Fields(shown)) || !slices.Equal(gotSame, strings.Fields(same)) {
			t.Errorf("%s: shown %q, alike %q", name, gotShown, gotSame)
		}
	}
	step("before any", false, "NO_COLOR=1 A=1", "NO_COLOR=1 A=1", "")
	step("the first", true, "NO_COLOR=1 PAGER=cat CODEX_X=1 LD_PRELOAD=x PATH=/x PAGER=less PWD=/a "+long, "LD_PRELOAD=x PATH=/x PAGER=less "+long, "NO_COLOR=1 PAGER=cat CODEX_X=1")
	step("what it starts", false, "NO_COLOR=1 PAGER=cat A=1", "A=1", "NO_COLOR=1 PAGER=cat")
	step("one that another lacks", true, "NO_COLOR=1 CODEX_X=2", "CODEX_X=2", "NO_COLOR=1")
	step("is shown from then on", true, "NO_COLOR=1 CODEX_X=1 PAGER=cat", "CODEX_X=1 PAGER=cat", "NO_COLOR=1")
	step("no value is another's", false, "NO_COLOR=0", "NO_COLOR=0", "")
	step("none", true, "", "", "")
	step("and none alike any more", true, "NO_COLOR=1", "NO_COLOR=1", "")
	a = alike{}
	const git = "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0="
	step("git's settings that take from it", true, git, "", git)
	step("a value that runs something is shown with its name", false, git+"/x", git+"/x", "")
	a = alike{}
	if shown, same := a.split([]string{"LC_ALL=a\x1bb"}, true); len(shown) != 1 || len(same) != 0 {
		t.Error("what can't be read isn't shown")
	}
}

// What Codex runs for itself, in the same wrapper, has none of the variables of its
// model's commands.
func TestUpkeepIsNoneAlike(t *testing.T) {
	j, codex := made(t), policy.BuiltinProfiles().Named("codex")
	in := func(script string, env ...string) *Exec {
		e := starts("/usr/bin/bash", "/usr/bin/bash", "bash", "-lc", script)
		e.Env = append(e.Env, env...)
		return j.Exec(e, codex)
	}
	in("ls", "NO_COLOR=1")
	if x := in("/run/stepbox/bin/stepbox hook codex PreToolUse"); x.Upkeep == nil || !x.peeled.Wrapped {
		t.Fatal("it isn't known")
	}
	const native = "/usr/lib/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
	starter := starts("/proc/self/exe", native, "/proc/self/exe", "--codex-run-as-process-setup", "47", "136", "pipe", "", "/p", "/bin/bash", "/bin/bash", "-lc", "pwd")
	if x := j.Exec(starter, codex); !x.Becomes() {
		t.Fatal("what sets a command up isn't known")
	}
	if x := in("pwd", "NO_COLOR=1"); len(x.Command.Env) != 0 || !slices.Equal(x.Command.EnvUsual, []string{"NO_COLOR=1"}) {
		t.Errorf("shown %q, alike %q", x.Command.Env, x.Command.EnvUsual)
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
