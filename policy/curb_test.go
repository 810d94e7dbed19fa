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
