package policy

import "strings"

// curbing are variables, with their values, by which agents have programs ask nobody and
// leave alone what a person has configured.
var curbing = map[string]bool{
	"GIT_CONFIG_GLOBAL=/dev/null": true, "GIT_CONFIG_SYSTEM=/dev/null": true, "GIT_CONFIG_NOSYSTEM=1": true,
	"GIT_ASKPASS=": true, "SSH_ASKPASS=": true, "DISPLAY=": true, "DBUS_SESSION_BUS_ADDRESS=": true,
	"GH_PROMPT_DISABLED=1": true, "GCM_INTERACTIVE=never": true, "GCM_INTERACTIVE=Never": true,
}

// curbingGit are settings of git, with their values, that do the same.
var curbingGit = map[string]bool{
	"credential.helper=": true, "credential.interactive=never": true, "core.fsmonitor=": true, "core.fsmonitor=false": true,
	"core.hooksPath=": true, "core.sshCommand=": true, "core.pager=cat": true, "core.editor=": true, "sequence.editor=": true,
	"diff.external=": true, "safe.bareRepository=explicit": true,
}

// Curbs are those of a program's variables that only take from it what it could run or
// whom it could ask. Settings that git gets in GIT_CONFIG_COUNT are among them if all of
// them are of that kind: a name says nothing without its value.
func Curbs(env []string) map[string]bool {
	const key, value = "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"
	out, values := make(map[string]bool), make(map[string]string)
	for _, v := range env {
		if curbing[v] {
			out[v] = true
		}
		if n, ok := strings.CutPrefix(v, value); ok {
			n, set, _ := strings.Cut(n, "=")
			values[n] = set
		}
	}
	var git []string
	pairs := 0
	for _, v := range env {
		if strings.HasPrefix(v, key) || strings.HasPrefix(v, value) || strings.HasPrefix(v, "GIT_CONFIG_COUNT=") {
			git = append(git, v)
		}
		if n, ok := strings.CutPrefix(v, key); ok {
			n, name, _ := strings.Cut(n, "=")
			set, has := values[n]
			if !has || !curbingGit[name+"="+set] {
				return out
			}
			pairs++
		}
	}
	if pairs == 0 || pairs != len(values) || len(git) != 2*pairs+1 {
		return out // some are twice, or one lacks the other
	}
	for _, v := range git {
		out[v] = true
	}
	return out
}
