package api

import (
	"slices"
	"strings"
)

// Hidden stands for a secret in what is recorded and shown: NAME=•••.
const Hidden = "•••"

// programs end the names of variables that name a program, or a file that some run as one,
// from which a secret comes: what is run has to be seen.
var programs = []string{"COMMAND", "CMD", "PROGRAM", "HELPER", "FILE"}

// SecretName says whether the name of a variable tells that its value is a secret.
func SecretName(name string) bool {
	if strings.HasPrefix(name, "GIT_CONFIG_KEY_") { // which setting it is, git-config(1)
		return false
	}
	words := strings.FieldsFunc(strings.ToUpper(name), func(c rune) bool { return c == '_' || c == '-' })
	if n := len(words); n > 0 && slices.Contains(programs, words[n-1]) {
		return false
	}
	for _, w := range words {
		switch w {
		case "KEY", "PASS", "PAT", "COOKIE", "CREDENTIALS":
			return true
		case "PWD":
			return len(words) > 1
		}
		for _, end := range []string{"APIKEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"} {
			if strings.HasSuffix(w, end) {
				return true
			}
		}
	}
	return false
}
