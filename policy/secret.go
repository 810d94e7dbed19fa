package policy

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// samples end names of files that show what a secret file would hold, or begin
// them: example.env.
var samples = []string{"example", "sample", "template", "dist", "defaults", "test", "schema"}

// secretNames are files that hold secrets wherever they are.
var secretNames = map[string]bool{
	".env": true, ".envrc": true, ".netrc": true, "_netrc": true, ".git-credentials": true, ".pypirc": true, ".npmrc": true,
	".pgpass": true, ".htpasswd": true, ".vault-token": true, ".dockercfg": true, "kubeconfig": true,
	"credentials.json": true, "service-account.json": true, "terraform.tfstate": true, "terraform.tfstate.backup": true,
}

// secretEnds are ends of such names.
var secretEnds = []string{
	".env", ".key", ".pem", ".p12", ".pfx", ".jks", ".keystore", ".ppk", ".ovpn", ".kubeconfig", ".tfstate", ".tfstate.backup",
	"service-account-key.json", "adminsdk.json",
}

// copies end the names of what editors and people keep of a file.
var copies = []string{"~", "#", ".bak", ".old", ".orig", ".save", ".swp", ".swo"}

// original is the name of the file that one is an editor's copy of.
func original(name string) string {
	for _, end := range copies {
		if cut, ok := strings.CutSuffix(name, end); ok {
			return strings.TrimPrefix(strings.Replace(cut, "..", ".", 1), "#") // vi's is ..env.swp
		}
	}
	return name
}

// SecretFile says whether a file's name alone tells that it holds a secret.
func SecretFile(name string) bool {
	n := original(strings.ToLower(name))
	if sample(n) {
		return false
	}
	for _, kind := range []string{"id_rsa", "id_ed25519", "id_ecdsa", "id_dsa"} {
		if strings.HasPrefix(n, kind) {
			return !strings.HasSuffix(n, ".pub")
		}
	}
	return secretNames[n] || strings.HasPrefix(n, ".env.") ||
		slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(n, end) })
}

// SecretsToCome are the names of secrets that a project may get while its session
// runs: those with names that tell, in its folder.
func SecretsToCome() []string {
	return append(slices.Sorted(maps.Keys(secretNames)), ".env.local", ".env.development", ".env.production", ".aws", ".ssh")
}

// SampleOf is the secret that a file is the sample of, "" for none: .env for
// .env.example.
func SampleOf(name string) string {
	for _, s := range samples {
		if of, ok := strings.CutSuffix(name, "."+s); ok && SecretFile(of) {
			return of
		}
	}
	return ""
}

func sample(name string) bool {
	return slices.ContainsFunc(samples, func(s string) bool {
		return strings.HasSuffix(name, "."+s) || strings.HasPrefix(name, s+".")
	})
}

// SecretFolder says whether all in a folder of this name is secret.
func SecretFolder(name string) bool {
	switch strings.ToLower(name) {
	case ".aws", ".ssh", ".gnupg", ".azure":
		return true
	}
	return false
}

// SecretPath says whether a file is secret because of the folder it is in.
func SecretPath(rel string) bool {
	rel = strings.ToLower(rel)
	switch path.Join(path.Base(path.Dir(rel)), path.Base(rel)) {
	case ".docker/config.json", ".kube/config", ".cargo/credentials", ".cargo/credentials.toml", "gh/hosts.yml":
		return true
	}
	return false
}

// SecretIfIgnored says whether a file that git ignores, so that it is this
// machine's own, tells by its name that it holds settings one doesn't share.
func SecretIfIgnored(name string) bool {
	n := strings.ToLower(name)
	if sample(n) {
		return false
	}
	switch filepath.Ext(n) {
	case ".tfvars":
		return true
	case "", ".json", ".yaml", ".yml", ".toml", ".ini", ".txt", ".cfg", ".conf", ".properties", ".xml":
	default:
		return false // code that deals with secrets holds none
	}
	if n == ".yarnrc.yml" || n == "auth.json" || n == "local.settings.json" {
		return true
	}
	return slices.ContainsFunc(strings.FieldsFunc(n, func(r rune) bool { return strings.ContainsRune("._- ", r) }), func(word string) bool {
		switch strings.TrimSuffix(word, "s") {
		case "secret", "credential", "password", "passwd", "token", "apikey":
			return true
		}
		return false
	})
}
