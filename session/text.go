package session

import (
	"fmt"
	"strconv"
	"strings"

	"stepbox/session/api"
)

// What of a hostile argument list is kept in the record and shown, at most.
const (
	maxArgs = 256
	maxArg  = 4096 // bytes each
)

// bounded cuts an argument list to what the record keeps of it.
func bounded(argv []string) []string {
	more := len(argv) - maxArgs
	if more > 0 {
		argv = append(argv[:maxArgs:maxArgs], fmt.Sprintf("… and %d more", more))
	}
	out := make([]string, len(argv))
	for i, a := range argv {
		if out[i] = api.Trim(a, maxArg); len(a) > maxArg {
			out[i] += fmt.Sprintf("… and %d bytes more", len(a)-len(out[i]))
		}
	}
	return out
}

func exitWords(e *api.Exit) string {
	if e == nil {
		return "ended"
	}
	if e.Signal != "" {
		return e.Signal
	}
	return "exit " + strconv.Itoa(e.Code)
}

// listed joins the first few of a number of names.
func listed(names []string, total, most int) string {
	if total <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), total-most+1)
}

// usual variables differ for every program and say nothing.
var usual = map[string]bool{"_": true, "SHLVL": true, "PWD": true, "OLDPWD": true, "COLUMNS": true, "LINES": true}

// Of one program's variables, at most maxEnv are shown, of each maxValue bytes.
const (
	maxEnv   = 256
	maxValue = 4 << 10
)

// differing lists the variables of a program that differ from the agent's own,
// and says whether these are all of them, whole.
func differing(own, env []string) (list []string, whole bool) {
	have := make(map[string]bool, len(own))
	for _, e := range own {
		have[e] = true
	}
	var out []string
	more := 0
	whole = true
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if have[e] || usual[name] {
			continue
		}
		if len(out) == maxEnv {
			more++
			continue
		}
		v := api.Trim(e, maxValue)
		if len(v) < len(e) {
			v += "…"
			whole = false
		}
		out = append(out, v)
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("… and %d more", more))
	}
	return out, whole && more == 0
}
