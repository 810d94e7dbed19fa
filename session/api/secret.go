package api

import "strings"

// Hidden stands for a secret in what is recorded and shown: NAME=•••.
const Hidden = "•••"

// SecretName says whether the name of a variable tells that its value is a secret.
func SecretName(name string) bool {
	if strings.HasPrefix(name, "GIT_CONFIG_KEY_") { // which setting it is, git-config(1)
		return false
	}
	words := strings.FieldsFunc(strings.ToUpper(name), func(c rune) bool { return c == '_' || c == '-' })
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
