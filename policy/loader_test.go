package policy

import (
	"slices"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// An answer for a command reaches no further than its words: not to what a variable
// makes of it, however that is set.
func TestAllowedWithoutLoaders(t *testing.T) {
	l, err := ParseLayer("user", "policy.yaml", []byte("version: 1\ncommands:\n  - allow: git push origin main\n  - allow: npm publish\n"))
	must.OK(t, err)
	p := asking().With(l)
	c := func(argv ...string) Command {
		return Command{Argv: argv, Cwd: "/p", Project: "/p", Home: "/home/me"}
	}
	scripts := map[Verdict][]string{
		Allow: {
			"git push origin main", "GIT_TERMINAL_PROMPT=0 git push origin main", "GIT_PAGER=cat PAGER=cat git push origin main", "CI=1 npm publish",
			"export FOO=1; git push origin main", "env CI=1 git push origin main", "export -n FOO; npm publish", "GIT_AUTHOR_NAME=x git push origin main",
			// Variables that only switch something off, or say how it looks.
			"GIT_TRACE=0 git push origin main", "GIT_ASKPASS= SSH_ASKPASS= git push origin main", "GIT_SEQUENCE_EDITOR=: VISUAL=true git push origin main", "MANPAGER=cat SYSTEMD_PAGER= git push origin main",
			"export GIT_SSH_COMMAND=false; git push origin main", "env LD_PRELOAD= NODE_OPTIONS= npm publish", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0=/dev/null git push origin main",
			"env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0=cat git push origin main", "GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 git push origin main",
			"X=$(date) git push origin main", "cd /p && git push origin main", "PYTHONUNBUFFERED=1 npm publish",
		},
		Ask: {
			"GIT_SSH_COMMAND=./x git push origin main", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.pushurl GIT_CONFIG_VALUE_0=https://example.org git push origin main",
			"LD_PRELOAD=./x.so git push origin main", "NODE_OPTIONS=--require=./x npm publish", "npm_config_registry=https://example.org npm publish", "NPM_CONFIG_REGISTRY=https://example.org npm publish",
			"PAGER=./x git push origin main", "HOME=/p git push origin main", "PATH=/p:$PATH git push origin main",
			"export GIT_SSH_COMMAND=./x; git push origin main", "export GIT_SSH_COMMAND=./x && true && git push origin main", `export "GIT_SSH_COMMAND=./x"; git push origin main`,
			`export "$X"; git push origin main`, "declare -x LD_PRELOAD=./x; git push origin main", "builtin export LD_PRELOAD=./x; git push origin main",
			"set -a; : ${GIT_SSH_COMMAND:=./x}; git push origin main", "set -a; for GIT_SSH_COMMAND in ./x; do git push origin main; done",
			"read GIT_SSH_COMMAND; export GIT_SSH_COMMAND; git push origin main", "printf -v LD_PRELOAD ./x; git push origin main",
			"eval 'export LD_PRELOAD=./x'; git push origin main", "env LD_PRELOAD=./x git push origin main", `env "$X" git push origin main`, "env -S 'LD_PRELOAD=./x git push origin main'",
			"sudo GIT_SSH_COMMAND=./x git push origin main", "sh -c 'GIT_SSH_COMMAND=./x git push origin main'", "LD_PRELOAD=./x sh -c 'git push origin main'",
			"GIT_PAGER=./x git push origin main", "timeout 5 env GIT_DIR=/p/x git push origin main", "GIT_SSH_COMMAND+=x git push origin main",
			// Off by its words, and on by what it is added to, what else is set, or what only the run will tell.
			"GIT_TRACE+=0 git push origin main", "GIT_TRACE=0 GIT_TRACE=/p/x git push origin main", "GIT_ASKPASS= GIT_SSH_COMMAND=./x git push origin main", "GIT_TRACE=$X git push origin main", `env GIT_SSH_COMMAND="$X" git push origin main`,
			"GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0=./x git push origin main", "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0=cat; GIT_CONFIG_VALUE_0=./x git push origin main",
			"NODE_OPTIONS=-r./x npm publish", "EDITOR= git push origin main", "PAGER=less git push origin main",
		},
	}
	for want, list := range scripts {
		for _, s := range list {
			if j := p.Command(c("bash", "-c", s)); j.Verdict != want {
				t.Errorf("%s: %s, want %s\n%s", s, j.Verdict, want, j.Explain())
			}
		}
	}
	for v, want := range map[string]Verdict{
		"LD_PRELOAD=./x": Ask, "GIT_SSH_COMMAND=./x": Ask, "GIT_EXEC_PATH=./x": Ask, "GIT_EXEC_PATH=/usr/lib/git-core": Allow, "GIT_DIR=.git": Allow, "GIT_DIR=x": Ask, "GIT_PROTOCOL=version=2": Allow, "GIT_CONFIG_COUNT=1": Ask, "BASH_FUNC_git%%=() { ./x; }": Ask, "npm_config_script_shell=./x": Ask,
		"CURL_HOME=./x": Ask, "WGETRC=./x": Ask, "MAKEFILES=./x": Ask, "TAR_OPTIONS=-x": Ask, "TF_CLI_ARGS_apply=-destroy": Ask, "TF_IN_AUTOMATION=1": Allow, "ANSIBLE_CONFIG=./x": Ask, "SVN_SSH=./x": Ask, "RIPGREP_CONFIG_PATH=./x": Ask, "PSQL_PAGER=./x": Ask, "AWKPATH=.": Ask, "GNUPGHOME=.": Ask,
		"GIT_CONFIG_COUNT=1\nGIT_CONFIG_KEY_0=core.pager\nGIT_CONFIG_VALUE_0=cat": Allow, "GIT_CONFIG_COUNT=1\nGIT_CONFIG_KEY_0=core.pager\nGIT_CONFIG_VALUE_0=./x": Ask, "GIT_ASKPASS=": Allow, "GIT_ASKPASS=./x": Ask,
		"PATH=/usr/bin": Allow, "GIT_EDITOR=true": Allow, "CI=1": Allow, "npm_config_user_agent=npm": Allow, "npm_config_userconfig=/home/me/.npmrc": Allow,
	} {
		k := c("git", "push", "origin", "main")
		if k.Env = strings.Split(v, "\n"); p.Command(k).Verdict != want {
			t.Errorf("with %s: want %s", v, want)
		}
	}
	k := c("./git", "push", "origin", "main")
	k.Program, k.Written = "/p/git", true
	if j := p.Command(k); j.Verdict != Ask {
		t.Errorf("a git that this session wrote: %s", j.Verdict)
	}
	deny := p.With(Layer{Name: "session", Rules: []Rule{must.Get(ParseRule(Deny, "git push"))}})
	if j := deny.Command(c("bash", "-c", slices.Concat(scripts[Ask][:1])[0])); j.Verdict != Deny {
		t.Errorf("denied with a variable: %s", j.Verdict)
	}
}

// Where no rule that allows counts it is said why, bounded, and only of what is asked about.
func TestSaysWhyNoRuleCounts(t *testing.T) {
	p := asking().With(Layer{Name: "yours", Rules: []Rule{must.Get(ParseRule(Allow, "git push *"))}})
	of := func(argv ...string) Command { return Command{Argv: argv} }
	given, made, posing := of("git", "push"), of("git", "push"), of("git", "push")
	given.Env = []string{"GOFLAGS=-x", "A=1", "npm_config_registry=x", "GOFLAGS=-y", "LD_" + strings.Repeat("x", 80) + "=", "PAGER=./x", "CC=x", "CXX=x"}
	made.Written, posing.Posing = true, true
	free := of("ls")
	free.Env = given.Env
	for name, c := range map[string]struct {
		of   Command
		want string
	}{
		"variables":    {given, "it is given CC, CXX, GOFLAGS, LD_" + strings.Repeat("x", 37) + " and 2 more, which may have it do more than it shows"},
		"made":         {made, "what runs may be this session's own"},
		"posing":       {posing, "it goes by a name that the agent may have chosen"},
		"a script":     {of("sh", "-c", "export GOFLAGS=-x; git push"), setsMore},
		"a wrapper":    {of("env", "GOFLAGS=-x", "git", "push"), setsMore},
		"it counts":    {of("git", "push"), ""},
		"nobody asked": {free, ""},
	} {
		if got := p.Command(c.of); got.Uncounted != c.want {
			t.Errorf("%s: %s, since %q; want %q", name, got.Verdict, got.Uncounted, c.want)
		}
	}
}

// What loads code is among what makes a command do more than its words show, and apart from
// what only says how to talk, or whom a program works for.
func TestLoadsCode(t *testing.T) {
	for v, want := range map[string]bool{
		"LD_PRELOAD=x": true, "LD_LIBRARY_PATH=x": true, "BASH_ENV=x": true, "ENV=x": true, "NODE_OPTIONS=-r x": true, "PYTHONPATH=x": true, "PERL5OPT=-Mx": true, "RUBYOPT=-rx": true, "RUBYLIB=x": true,
		"LUA_INIT=x": true, "LUA_PATH_5_4=x": true, "PHPRC=x": true, "PHP_INI_SCAN_DIR=x": true, "DOTNET_STARTUP_HOOKS=x": true,
		"GCONV_PATH=x": true, "BASH_FUNC_env%%=() { x; }": true, "SHELLOPTS=xtrace": true, "PS4=$(x)": true, "ZDOTDIR=x": true,
		"PYTHONUNBUFFERED=1": false, "ENVIRONMENT=x": false, "PAGER=x": false, "GIT_SSH_COMMAND=x": false, "HOME=/x": false, "PATH=/x": false, "": false,
	} {
		if LoadsCode(v) != want || want && !Loads(v) {
			t.Errorf("%s: loads code %v, loads %v", v, LoadsCode(v), Loads(v))
		}
	}
}
