package session

import (
	"io/fs"
	"path/filepath"
	"strings"
)

// Looking for secrets must not cost more than a glance at a large project.
const (
	secretDepth   = 4
	secretEntries = 20000
)

// samples end names of files that show what a secret file would hold.
var samples = []string{".example", ".sample", ".template", ".dist", ".defaults", ".test", ".schema"}

// bulky folders hold other people's code; their keys are test data.
var bulky = map[string]bool{".git": true, "node_modules": true, "vendor": true, "target": true, ".venv": true, "venv": true,
	"__pycache__": true, "dist": true, "build": true}

// secretFile says whether a file's name tells that it holds a secret.
func secretFile(name string) bool {
	n := strings.ToLower(name)
	for _, s := range samples {
		if strings.HasSuffix(n, s) {
			return false
		}
	}
	switch {
	case n == ".env" || strings.HasPrefix(n, ".env."):
		return true
	case strings.HasPrefix(n, "id_rsa"), strings.HasPrefix(n, "id_ed25519"), strings.HasPrefix(n, "id_ecdsa"), strings.HasPrefix(n, "id_dsa"):
		return !strings.HasSuffix(n, ".pub")
	case n == ".netrc", n == ".git-credentials", n == ".pypirc", n == "credentials.json", n == "service-account.json":
		return true
	}
	switch filepath.Ext(n) {
	case ".key", ".p12", ".pfx", ".jks", ".keystore", ".ppk":
		return true
	}
	return false
}

// secrets lists the project's files that the agent doesn't get to see, relative
// to it, and says whether the whole project was looked at.
func secrets(workspace string) (found []string, whole bool) {
	whole = true
	seen := 0
	err := filepath.WalkDir(workspace, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what the person can't read the agent can't either
		}
		if seen++; seen > secretEntries {
			whole = false
			return fs.SkipAll
		}
		rel, rerr := filepath.Rel(workspace, p)
		if rerr != nil || rel == "." {
			return nil
		}
		if d.IsDir() {
			if bulky[d.Name()] || strings.Count(rel, "/") >= secretDepth {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() && secretFile(d.Name()) {
			found = append(found, rel)
		}
		return nil
	})
	if err != nil {
		whole = false
	}
	return found, whole
}
