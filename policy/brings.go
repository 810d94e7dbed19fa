package policy

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Brings is what comes along of the person's home to an agent's: its instructions and
// its settings. Paths are below the home folder.
type Brings struct {
	Texts    []string          // files, and folders with all that is in them, which end in a slash
	Settings []BroughtSettings // files whose secrets and programs are left out
	At       map[string]string // folders that a variable of the person's may name another of
}

// BroughtSettings is a file of settings: JSON, which may have comments, TOML or YAML.
// Keys are written with dots, and * stands for any.
type BroughtSettings struct {
	File     string   `yaml:"file"`
	Only     []string `yaml:"only"`     // outermost keys that come along, put in the file that is there; none: all, in its place
	Own      []string `yaml:"own"`      // outermost keys that stay as the agent has them, once it has
	Hooks    []string `yaml:"hooks"`    // keys of programs that the agent starts by itself: left out
	Programs []string `yaml:"programs"` // keys of other programs of the host's, which get a token as a rule: left out
}

// Brings is what the profile says of it.
func (p *Profile) Brings() Brings {
	b := Brings{Settings: p.file.Brings.Settings, At: p.file.Brings.At}
	for _, t := range p.file.Brings.Texts {
		b.Texts = append(b.Texts, t.s)
	}
	return b
}

type bringsFile struct {
	Texts    textList          `yaml:"texts"`
	Settings []BroughtSettings `yaml:"settings"`
	At       map[string]string `yaml:"at"`
}

// check says what of it can't be brought.
func (b *bringsFile) check() Problems {
	for _, t := range b.Texts {
		if why := notBrought(strings.TrimSuffix(t.s, "/")); why != "" {
			return t.bad("%q isn't brought: %s", t.s, why)
		}
	}
	for _, s := range b.Settings {
		why := notBrought(s.File)
		if why == "" && !slices.Contains([]string{".json", ".jsonc", ".toml", ".yml", ".yaml"}, path.Ext(s.File)) {
			why = "it is neither JSON nor TOML nor YAML by its name"
		}
		if why != "" {
			return wrong(0, 0, "the settings %q aren't brought: %s", s.File, why)
		}
	}
	for name, dir := range b.At {
		if why := notBrought(dir); why != "" || name == "" {
			return wrong(0, 0, "at: %s: %q can't be elsewhere: %s", name, dir, why)
		}
	}
	return nil
}

// notBrought says why a path isn't one to bring; "" when it is.
func notBrought(p string) string {
	switch {
	case !filepath.IsLocal(p) || path.Clean(p) != p || p == ".":
		return "it isn't a plain path below the home folder"
	case Secret(p):
		return "it is known to hold secrets"
	}
	return ""
}

// Secret says whether a path tells, by any of its names, that it holds a secret.
func Secret(p string) bool {
	if SecretPath(p) {
		return true
	}
	names := strings.Split(p, "/")
	for i, name := range names {
		if SecretFolder(name) || i == len(names)-1 && (SecretFile(name) || SecretIfIgnored(name)) {
			return true
		}
	}
	return false
}
