package policy

import (
	"slices"
	"strings"
	"testing"
)

func TestCurbs(t *testing.T) {
	const git = "GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=core.hooksPath GIT_CONFIG_VALUE_0= GIT_CONFIG_KEY_1=core.pager GIT_CONFIG_VALUE_1=cat"
	for name, test := range map[string]struct{ env, want string }{
		"none":                 {"A=1", ""},
		"by their values":      {"GIT_ASKPASS= SSH_ASKPASS=/x GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/x", "GIT_ASKPASS= GIT_CONFIG_GLOBAL=/dev/null"},
		"settings":             {git, git},
		"among others":         {"GIT_TRACE=0 GIT_SSH_COMMAND=false GIT_PROXY_COMMAND= GIT_NO_LAZY_FETCH=1 GIT_LFS_SKIP_SMUDGE=1 GIT_ALLOW_PROTOCOL=/ " + git, "GIT_TRACE=0 GIT_SSH_COMMAND=false GIT_PROXY_COMMAND= GIT_NO_LAZY_FETCH=1 GIT_LFS_SKIP_SMUDGE=1 GIT_ALLOW_PROTOCOL=/ " + git},
		"not off":              {"GIT_TRACE=/p/x GIT_SSH_COMMAND=./x GIT_SSH_COMMAND=never GIT_ALLOW_PROTOCOL=ext GIT_SSL_NO_VERIFY=0 GIT_NO_LAZY_FETCH=0 GIT_DIR= GIT_EXEC_PATH=", ""},
		"one runs something":   {strings.Replace(git, "VALUE_1=cat", "VALUE_1=less", 1), ""},
		"a name unknown":       {strings.Replace(git, "core.pager", "core.x", 1), ""},
		"a value lacks":        {strings.TrimSuffix(git, " GIT_CONFIG_VALUE_1=cat"), ""},
		"a name lacks":         {git + " GIT_CONFIG_VALUE_2=x", ""},
		"a value twice":        {"GIT_CONFIG_VALUE_0=/x " + git, ""},
		"a name twice":         {git + " GIT_CONFIG_KEY_0=core.hooksPath", ""},
		"how many isn't said":  {strings.TrimPrefix(git, "GIT_CONFIG_COUNT=2 "), ""},
		"a value of their own": {"GIT_ASKPASS=/x GIT_CONFIG_NOSYSTEM=0", ""},
	} {
		env := strings.Fields(test.env)
		got := Curbs(env)
		env = slices.DeleteFunc(env, func(v string) bool { return !got[v] })
		if !slices.Equal(env, strings.Fields(test.want)) {
			t.Errorf("%s: %q, want %q", name, env, test.want)
		}
	}
}

// A setting is judged by whether it has git run or send something, and not by its name.
func TestGitSettings(t *testing.T) {
	const script = `core.alternateRefsCommand=f() { git --git-dir="$1" for-each-ref --format='%(objectname)'; }; f`
	for text, want := range map[string]bool{
		"core.askPass=": true, "core.sshCommand=": true, "credential.helper=": true, "protocol.ext.allow=never": true, "gc.auto=0": true,
		"hook.pre-push.enabled=false": true, "core.hooksPath=/dev/null": true, "core.fsmonitor=false": true, "format.pretty=medium": true,
		"safe.bareRepository=explicit": true, "core.pager=cat": true, "core.editor=true": true, "CORE.ASKPASS=": true, script: true,
		"alias.x=version": true, "gc.reflogExpire=never": true, "fetch.bundleURI=": true,

		"core.askPass": false, "core.askPass=./x": false, "core.sshCommand=ssh": false, "core.sshCommand=never": false, "core.sshCommand=0": false,
		"credential.helper=store": false, "protocol.ext.allow=always": false, "hook.pre-push.enabled": false, "core.hooksPath=false": false,
		"core.hooksPath=x": false, "core.fsmonitor=./x": false, "safe.bareRepository=all": false, "core.pager=less": false, "alias.x=push": false,
		"alias.x=!sh": false, "gc.reflogExpire=0": false, "gc.pruneExpire=now": false, "core.x=y": false,
		// What is off isn't always less.
		"http.sslVerify=false": false, "url.https://example.org/.insteadOf=": false, "remote.origin.url=": false, "fetch.fsckObjects=0": false,
		"receive.denyDeletes=false": false, "core.protectNTFS=false": false, "core.logAllRefUpdates=false": false, "http.proxy=": false,
		// A script that more than looks.
		"core.alternateRefsCommand=f() { ./x; }; f": false, "core.alternateRefsCommand=git push": false, "core.alternateRefsCommand=git() { ./x; }; git version": false,
		"core.alternateRefsCommand=git -c alias.x=!sh x": false, "core.alternateRefsCommand=git for-each-ref >x": false, "core.alternateRefsCommand=git for-each-ref `x`": false,
		"core.alternateRefsCommand=git for-each-ref; x=1 f": false, "core.alternateRefsCommand=GIT_DIR=x git version": false, "core.alternateRefsCommand=\"$1\"": false,
	} {
		if got := settingCurbs(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	for value, want := range map[string]bool{
		"'alias.a=version' 'fetch.bundleURI=' 'help.autocorrect=0'": true, "'core.askPass'=''": true, "": true,
		"'alias.a=!sh'": false, "'core.askPass=' 'core.pager=less'": false, "core.askPass=": false, "'core.askPass=": false, "'core.pager'='less'": false,
	} {
		if got := Curbs([]string{"GIT_CONFIG_PARAMETERS=" + value})["GIT_CONFIG_PARAMETERS="+value]; got != want {
			t.Errorf("%s: %v", value, got)
		}
	}
}
