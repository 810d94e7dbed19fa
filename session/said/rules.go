package said

import (
	"path"
	"slices"
	"strings"

	"stepbox/session/effects"
)

// The rules go by single words. What an announcement claims is told by the verb
// that it begins with; every other word in it that may stand for more widens what
// it covers, so that a doubt is never a mismatch. A verb that isn't here claims
// nothing.
const (
	// looking changes nothing, nor does running what is among checks.
	looking = "list show read view check inspect search find look examine count print display verify explore grep see review compare " +
		"validate analyze analyse describe investigate confirm identify locate lint vet typecheck test pytest diff measure benchmark profile"
	running = "run execute start invoke rerun perform use"
	checks  = "test tests linter lint linters pytest vet typecheck checker checkers checks unit suite eslint ruff mypy flake8 pylint clippy"
	// formatting changes contents and deletes nothing.
	formatting = "format formatter prettify prettier gofmt fmt reformat black rustfmt"
	// changing may change contents, and deleting take anything away.
	changing = "fix update write edit change add create apply modify set generate install bump refactor implement insert append build save record " +
		"snapshot improve correct adjust convert make rewrite patch regenerate autofix bless compile sort upgrade --fix --write -w -u -i"
	deleting = "remove delete clean cleanup drop prune purge uninstall rm wipe erase discard reset restore revert undo checkout stash move rename " +
		"replace merge rebase switch clear migrate extract unpack deploy sync temporary then"
	// leading stand before the verb, and joining between paths.
	leading = "now first next then let me us let's lets i i'll will i'm going to please just also finally again quickly here and so we we'll need should try"
	joining = "the and file files folder folders directory dir"
)

func has(list, word string) bool { return slices.Contains(strings.Fields(list), word) }

// Deed is what an action did to a file that git doesn't ignore.
type Deed struct {
	Path string
	What byte // A, M, D or R, as git has it
}

// Mismatch says in words what was done that an announcement doesn't cover; ""
// for nothing. Commit says that the announcement is a commit's message.
func Mismatch(text string, commit bool, deeds []Deed) string {
	text = strings.NewReplacer("heck out ", "heckout ", "hecking out ", "heckout ").Replace(text)
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" \t\n,;:()`\"!?&|+", r) })
	words = words[:min(len(words), 60)]
	for i, w := range words {
		words[i] = stem(strings.Trim(w, ".'"))
	}
	for len(words) > 0 && has(leading, words[0]) {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	any := func(list string) bool { return slices.ContainsFunc(words, func(w string) bool { return has(list, w) }) }
	deletes, changes := any(deleting), any(changing) || any(formatting)
	var covered func(Deed) bool
	switch verb := words[0]; {
	case commit:
		kind, _, _ := strings.Cut(strings.ToLower(text), ":")
		kind, _, _ = strings.Cut(kind, "(")
		if !(any("typo typos") || has("docs style", kind) || has("update improve fix", verb) && len(words) == 2 && has("readme readme.md doc docs documentation comment comments", words[1])) || deletes {
			return ""
		}
		about := any("ci workflow workflows action actions pipeline hook hooks task tasks config settings editor")
		covered = func(d Deed) bool {
			return (d.What != 'D' || !effects.Source.Has(d.Path)) && (about || effects.Runs(d.Path) == "")
		}
	case has(looking, verb), has(formatting, verb), has(running, verb) && (any(checks) || any(formatting)):
		covered = func(d Deed) bool {
			switch {
			case effects.Derived.Has(d.Path), effects.Locks.Has(d.Path), deletes:
				return true
			case d.What == 'D':
				return false
			}
			return d.What == 'A' || changes || strings.Contains(d.Path, "snap") || !effects.Source.Has(d.Path) && effects.Runs(d.Path) == ""
		}
	case has("remove delete rm", verb):
		named := paths(text)
		covered = func(d Deed) bool {
			return d.What != 'D' || len(named) == 0 || slices.ContainsFunc(named, func(n string) bool { return strings.Contains("/"+d.Path+"/", "/"+n+"/") })
		}
	default:
		return ""
	}
	return tell(slices.DeleteFunc(slices.Clone(deeds), covered))
}

// paths are those that are all that an announcement says to remove: "Remove
// build/ and a.txt"; none when it names anything else, or patterns.
func paths(text string) (out []string) {
	fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,`'\"", r) })
	for _, t := range fields[min(1, len(fields)):] {
		if t = strings.TrimSuffix(t, "."); has(joining, strings.ToLower(t)) {
			continue
		}
		if !strings.ContainsAny(t, "/.") || strings.ContainsAny(t, "*?[{$~") || path.IsAbs(t) || strings.Contains(t, "..") {
			return nil
		}
		out = append(out, path.Clean(t))
	}
	return out
}

// stem is a verb without its ending: running, runs and run are one.
func stem(w string) string {
	for _, end := range []string{"", "s", "es", "ing", "ed", "d"} {
		s, ok := strings.CutSuffix(w, end)
		for _, s := range []string{s, s + "e", s[:max(len(s)-1, 0)]} {
			if ok && (end != "" || s == w) && (has(looking, s) || has(running, s) || has(formatting, s) || has(changing, s) || has(deleting, s)) {
				return s
			}
		}
	}
	return w
}

// tell names what was done, deletions first.
func tell(deeds []Deed) string {
	verbs := map[byte]string{'D': "deletes ", 'M': "changes ", 'R': "moves ", 'A': "adds "}
	for _, what := range []byte("DMRA") {
		of := slices.DeleteFunc(slices.Clone(deeds), func(d Deed) bool { return d.What != what })
		if len(of) > 0 {
			return verbs[what] + effects.Named(of[0].Path, len(of))
		}
	}
	return ""
}
