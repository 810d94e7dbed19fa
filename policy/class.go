package policy

import (
	"path"
	"slices"
	"strings"
)

// class is a set of arguments that no glob can tell.
type class struct {
	is func(w word, at *site) bool
	// together says whether arguments are such a thing only when taken
	// together; nil: never.
	together func(ws []word, at *site) bool
}

var classes = map[string]*class{
	// A path that much hangs on, or a wildcard for all that is in one.
	"wide": {is: wide, together: wideTogether},
	// A wildcard for all that is in such a path.
	"everything": {is: func(w word, at *site) bool { return w.glob && wide(w, at) }},
	// As wide, with git's own wildcards.
	"wide-pathspec": {is: widePathspec},
	// A file that by its name holds secrets, and that can be read.
	"secret": {is: holdsSecrets},
	// A value by which something runs, and none that turns it off.
	"helper": {is: func(w word, _ *site) bool {
		return !w.known() || !slices.Contains([]string{"", "0", "false", "never", "/dev/null"}, w.text)
	}},
	// HOST:PATH, or a URL.
	"remote": {is: remote},
}

// site is where a command runs.
type site struct {
	dirs    []string // it may run in any of these; none: it isn't known
	start   string   // what was started runs in this; "": not known
	project string   // "": not known
	home    string
	piped   bool                   // its standard input comes from another command
	input   []word                 // files that its standard input comes from
	hidden  func(file string) bool // says of a file that it can't be read there; nil: of none
}

// wide says whether a path is so far up that to lose it is to lose nearly
// everything: the project, its git folder, the home folder or something right
// in it, a top-level folder, or what is above these. A word that begins with
// something unknown may be that.
func wide(w word, at *site) bool {
	if w.process || w.text == "" {
		return false
	}
	if w.wild() {
		return true
	}
	text := w.text
	if w.glob {
		var ok bool
		if text, ok = broadly(w.pattern); !ok {
			return false
		}
	}
	text = strings.ReplaceAll(text, unknown, "")
	if path.IsAbs(text) {
		return at.wide(path.Clean(text))
	}
	for _, d := range at.dirs {
		if at.wide(path.Join(d, text)) {
			return true
		}
	}
	if len(at.dirs) == 0 {
		clean := path.Clean(text)
		return clean == "." || clean == ".git" || strings.Trim(clean, "./") == ""
	}
	return false
}

func (at *site) wide(abs string) bool {
	parent, name := path.Split(abs)
	parent = path.Clean(parent)
	switch {
	case parent == "/", name == ".git":
		return true
	case strings.HasPrefix(abs, "/proc/"):
		return name == "cwd" || name == "root" || strings.Contains(abs, "/cwd/") || strings.Contains(abs, "/root/")
	case above(abs, at.project), above(abs, at.home), at.home != "" && parent == path.Clean(at.home) && !above(at.project, at.home):
		return true
	}
	return path.Base(parent) == ".git" && (name == "objects" || name == "refs")
}

// above says whether dir is p or holds it.
func above(dir, p string) bool {
	if p == "" {
		return false
	}
	p = path.Clean(p)
	return dir == p || strings.HasPrefix(p, dir+"/")
}

// broadly is the folder whose whole content a pattern names, if it does.
func broadly(pattern string) (dir string, ok bool) {
	parts := strings.Split(pattern, "/")
	for i, p := range parts {
		if !strings.ContainsAny(p, "*?[\\") {
			continue
		}
		if plainPart(p) {
			parts[i] = strings.ReplaceAll(p, `\`, "")
			continue
		}
		for _, q := range parts[i:] {
			if q == ".." {
				return "/", true // who knows where that leads
			}
			if q != "" && q != "." && !broad(q) {
				return "", false
			}
		}
		switch dir = strings.Join(parts[:i], "/"); {
		case dir == "" && i > 0:
			dir = "/"
		case dir == "":
			dir = "."
		}
		return dir, true
	}
	return strings.Join(parts, "/"), true
}

// plainPart says whether all wildcards in a part of a path are escaped.
func plainPart(p string) bool {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return false
		}
	}
	return true
}

// broad says whether a wildcard takes in names that have nothing in common.
func broad(pattern string) bool {
	g := glob(strings.ReplaceAll(pattern, unknown, "*"))
	n := 0
	for _, name := range []string{"src", "main.go", "README", "Makefile", "x1.txt"} {
		if g.match(name) {
			n++
		}
	}
	return n > 1 || g.match(".git")
}

// manyTogether is from how many entries of the project's top folder on a
// command is taken to be about all of it: a shell at a prompt has replaced the
// wildcard by then.
const manyTogether = 8

func wideTogether(ws []word, at *site) bool {
	if at.project == "" || len(at.dirs) == 0 || len(ws) < manyTogether {
		return false
	}
	n := 0
	for _, w := range ws {
		p := w.text
		if !path.IsAbs(p) {
			p = path.Join(at.dirs[0], p)
		}
		if path.Dir(path.Clean(p)) == path.Clean(at.project) {
			n++
		}
	}
	return n >= manyTogether
}

func widePathspec(w word, at *site) bool {
	s := w.text
	if strings.HasPrefix(s, ":") {
		s = strings.TrimLeft(s[1:], "/!^")
		if strings.HasPrefix(s, "(") {
			_, s, _ = strings.Cut(s, ")")
		}
		if s == "" || s == "." {
			return true
		}
	}
	if strings.ContainsAny(s, "*?[") { // git expands what the shell doesn't
		w = word{text: s, pattern: s, glob: true}
	}
	return wide(w, at)
}

func remote(w word, _ *site) bool {
	if w.wild() || strings.Contains(w.text, "://") {
		return true
	}
	colon := strings.IndexByte(w.text, ':')
	slash := strings.IndexByte(w.text, '/')
	return colon > 0 && (slash < 0 || colon < slash)
}
