package policy

import (
	"path"
	"strings"
)

// public are folders of the system's, whose keys and certificates are everybody's.
var public = []string{"/usr/", "/etc/ssl/", "/etc/pki/", "/etc/ca-certificates/", "/nix/"}

// examples are folders in which keys and settings are made up.
var examples = []string{"node_modules", "testdata", "fixtures", "vendor", "examples", "test", "tests", "__tests__"}

// holdsSecrets says whether an argument is, or ends with, the path of a file that by its
// name holds secrets, and is there to be read: curl has name=@FILE and @FILE.
func holdsSecrets(w word, at *site) bool {
	if w.glob || strings.Contains(w.text, "://") {
		return false
	}
	name := w.text
	if i := strings.LastIndexByte(name, '@'); i >= 0 {
		name = name[i+1:]
	}
	name = strings.ReplaceAll(name, unknown, "")
	if name = path.Clean(name); !SecretFile(path.Base(name)) && !SecretPath(name) && !inSecretFolder(name) {
		return false
	}
	if path.IsAbs(name) {
		return at.readable(name)
	}
	for _, d := range at.dirs {
		if at.readable(path.Join(d, name)) {
			return true
		}
	}
	return len(at.dirs) == 0 && at.readable(name)
}

func inSecretFolder(name string) bool {
	switch base := path.Base(name); {
	case strings.HasSuffix(base, ".pub"), base == "known_hosts", base == "config":
		return false
	}
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		if SecretFolder(path.Base(dir)) {
			return true
		}
	}
	return false
}

// readable says whether a secret can be read where the command runs, and is one.
func (at *site) readable(file string) bool {
	for _, dir := range public {
		if strings.HasPrefix(file, dir) {
			return false
		}
	}
	for _, part := range strings.Split(path.Dir(file), "/") {
		for _, e := range examples {
			if part == e {
				return false
			}
		}
	}
	return at.hidden == nil || !at.hidden(file)
}

// secretNamed says whether one of a rule's elements is a file that holds secrets. Such a
// rule is about what is read from standard input, and what options name, too.
func (r *Rule) secretNamed() bool {
	for _, e := range r.elements {
		if e.class == classes["secret"] && e.class != nil {
			return true
		}
	}
	return false
}

// read adds to operands what a command reads besides: files that its input comes from,
// and those that an option's value names, as -d@FILE.
func (v *invocation) read(operands []word) []word {
	out := append(operands[:len(operands):len(operands)], v.at.input...)
	for _, o := range v.options {
		if strings.Contains(o.text, "@") {
			out = append(out, o)
		}
	}
	return out
}
