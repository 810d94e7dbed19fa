package git

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Own is what comes along of a person's settings to where an agent uses git.
type Own struct {
	Text     []byte // a configuration file; nil: the person has set nothing of it
	Identity bool   // it says who makes commits
	Excludes string // the file that core.excludesFile names; "" for none
	Left     []Left // what doesn't come along of the same sections, or would lead to a secret
}

// Left is a setting that doesn't come along, and why.
type Left struct {
	Key, Why string
	Secret   bool
}

// coming are the settings that come along, by section. Each is a plain value: it
// names no program and no file, so nothing of the host's is reached through it. Of
// aliases all come but those that are a shell's.
var coming = map[string][]string{
	"user":  {"name", "email", "useconfigonly", "signingkey"},
	"init":  {"defaultbranch", "defaultobjectformat", "defaultrefformat"},
	"alias": nil,
	"core": {"abbrev", "autocrlf", "bigfilethreshold", "commentchar", "commentstring", "compression", "eol", "loosecompression",
		"longpaths", "precomposeunicode", "protecthfs", "protectntfs", "quotepath", "safecrlf", "untrackedcache", "whitespace"},
}

// Bounds on what a person's settings are read for.
const (
	maxIncludes = 10 // deep, as git has it
	maxOwnValue = 1 << 10
	maxOwn      = 500 // settings
)

// Own reads what a person has set for all repositories, as git would in a project,
// without running it. Secret says whether a value looks like one.
func (p Person) Own(project string, secret func(string) bool) Own {
	r := owner{person: p, secret: secret, set: map[string]entry{}, told: map[string]bool{}}
	if _, metadata := Above(project); metadata != "" {
		r.metadata = metadata
	}
	for _, file := range p.own() {
		r.file(file, 0)
	}
	var kept []entry
	for _, key := range slices.Sorted(maps.Keys(r.set)) {
		kept = append(kept, r.set[key])
	}
	if len(kept) > 0 {
		r.out.Text = format(kept)
	}
	r.out.Identity = r.set["user.name"].value != "" || r.set["user.email"].value != ""
	return r.out
}

type owner struct {
	person   Person
	metadata string // the repository's folder; "" outside of one
	secret   func(string) bool
	set      map[string]entry
	told     map[string]bool
	read     int // files
	out      Own
}

// file reads a file of settings and those that it includes. Git follows links to them.
func (r *owner) file(name string, deep int) {
	if r.read++; deep > maxIncludes || r.read > maxSettings {
		r.leave(Left{Key: "include", Why: "too many files include each other"})
		return
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return // as for git, one that isn't there sets nothing
	}
	data, err := ReadFile(real, maxConfig)
	if err != nil {
		r.leave(Left{Key: filepath.Base(name), Why: err.Error()})
		return
	}
	for _, e := range parseConfig(data) {
		switch {
		case e.section == "include" && e.key == "path",
			e.section == "includeif" && e.key == "path" && r.holds(e.subsection, filepath.Dir(real)):
			if e.value != "" {
				r.file(beside(filepath.Dir(real), r.person.expand(e.value)), deep+1)
			}
		default:
			r.take(e)
		}
	}
}

// holds says whether an include's condition does. Of those that git has, the one on the
// repository's folder is known here; another is told.
func (r *owner) holds(condition, dir string) bool {
	kind, pattern, _ := strings.Cut(condition, ":")
	folder := r.metadata
	switch {
	case kind != "gitdir" && kind != "gitdir/i":
		r.leave(Left{Key: "includeIf " + condition, Why: "its condition isn't known here, only gitdir"})
		return false
	case folder == "":
		return false
	case strings.HasPrefix(pattern, "~/"):
		home, err := filepath.EvalSymlinks(r.person.Home)
		if err != nil {
			return false
		}
		pattern = home + pattern[1:]
	case strings.HasPrefix(pattern, "./"):
		pattern = dir + pattern[1:]
	case !strings.HasPrefix(pattern, "/"):
		pattern = "**/" + pattern
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	if kind == "gitdir/i" {
		pattern, folder = strings.ToLower(pattern), strings.ToLower(folder)
	}
	ok, err := doublestar.Match(pattern, folder)
	return ok && err == nil
}

// take has a setting come along, or tells why it doesn't.
func (r *owner) take(e entry) {
	name := e.section + "." + e.key
	allowed, known := coming[e.section]
	switch {
	case e.section == "core" && e.key == "excludesfile":
		r.out.Excludes = r.person.expand(e.value)
	case !known && (secretSetting(e) || anonymous(e.subsection) != e.subsection):
		r.leave(Left{Key: name, Why: "it holds a secret, or leads to one", Secret: true})
	case !known || e.subsection != "":
	case secretSetting(e) || anonymous(e.value) != e.value || r.secret(e.value):
		r.leave(Left{Key: name, Why: "its value looks like a secret", Secret: true})
	case e.section == "alias" && strings.HasPrefix(strings.TrimSpace(e.value), "!"):
		r.leave(Left{Key: name, Why: "it is a shell command"})
	case e.section != "alias" && !slices.Contains(allowed, e.key):
		r.leave(Left{Key: name, Why: "it may name a program or a file of this machine"})
	case len(e.value) > maxOwnValue || strings.ContainsFunc(e.value, control):
		r.leave(Left{Key: name, Why: "its value is too long, or has control characters"})
	case len(r.set) < maxOwn:
		r.set[name] = e
	}
}

func (r *owner) leave(l Left) {
	if !r.told[l.Key] && len(r.told) < maxOwn {
		r.told[l.Key] = true
		r.out.Left = append(r.out.Left, l)
	}
}

// Over puts a person's settings in the place of those of the same sections in a file
// that an agent may have written. Its other sections stay, but for includes, through
// which it would go on to set them.
func (o Own) Over(file []byte) []byte {
	var kept []entry
	for _, e := range parseConfig(file[:min(len(file), maxConfig)]) {
		_, own := coming[e.section]
		if !own && e.section != "include" && e.section != "includeif" && name(e.section) && !strings.ContainsFunc(e.subsection+e.value, control) {
			kept = append(kept, e)
		}
	}
	return append(format(kept), o.Text...)
}

// control says whether a character is one that no value of a setting needs.
func control(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }
