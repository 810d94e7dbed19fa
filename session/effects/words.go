package effects

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"stepbox/session/api"
)

// Weights of phrases, the weightiest first.
const (
	loses = iota
	reverts
	runs
	history
	touches
	minor
	plain
)

// table says in words what happened to the files of a group: to one, by its name,
// and to many, by their number.
var table = []struct {
	kind      string
	weight    int
	one, many string
}{
	{"unknown", loses, "deletes the folder %s, whose contents aren't known", "deletes %d folders whose contents aren't known"},
	{"deleted", loses, "deletes %s", "deletes %d files"},
	{"reverted", loses, "throws away uncommitted changes to %s", "throws away uncommitted changes to %d files"},
	{"emptied", loses, "empties %s", "empties %d files"},
	{"replaced", loses, "replaces %s by another kind of file", "replaces %d files by other kinds of files"},
	{"overwritten", reverts, "overwrites all of %s", "overwrites all of %d files"},
	{"runs", runs, "changes %s", "changes %d files that run by themselves"},
	{"leads out", history, "makes a link that leads out: %s", "makes %d links that lead out of the project"},
	{"open", history, "lets everyone write %s", "lets everyone write %d files or folders"},
	{"setuid", history, "makes %s run as its owner", "makes %d files run as their owner"},
	{"moved", history, "moves %s to another folder", "moves %d files to other folders"},
	{"executable", touches, "makes %s executable", "makes %d files executable"},
	{"tests", touches, "changes tests in %s", "changes tests in %d files"},
	{"renamed", touches, "renames %s", "renames %d files"},
	{"outside", touches, "writes %s, outside the folder it ran in", "writes %d files outside the folder it ran in"},
	{"ignored deleted", minor, "deletes %s, which git ignores", "deletes %d ignored files"},
	{"locks", minor, "changes %s", "changes %d lock files"},
	{"ignored", minor, "changes %s, which git ignores", "changes %d ignored files"},
	{"created", plain, "creates %s", "creates %d files"},
	{"changed", plain, "changes %s", "changes %d files"},
}

// say makes words of all that was sorted in.
func (s *summary) say() {
	for _, row := range table {
		g := s.groups[row.kind]
		if g == nil {
			continue
		}
		n, weight, folder := len(g.names), row.weight, ""
		if row.kind == "deleted" || row.kind == "moved" {
			folder = s.goneFolder(g.names)
		}
		text := fmt.Sprintf(row.one, short(g.names[0], 30-len(row.one)/4))
		if n > 1 {
			text = fmt.Sprintf(row.many, n)
		}
		switch row.kind {
		case "deleted":
			if folder != "" && n > 1 {
				text = fmt.Sprintf("deletes %s with %d files", short(folder, 16), n)
			}
		case "moved":
			if folder != "" && n > 1 {
				text = fmt.Sprintf("moves %d files out of %s, which is gone", n, short(folder, 16))
			} else if folder != "" {
				text = fmt.Sprintf("moves %s; %s is gone", short(g.names[0], 24), short(folder, 16))
			}
		case "runs":
			if what := Runs(g.names[0]); n == 1 {
				text += ", " + what
			}
		case "reverted":
			if s.stashed {
				weight, text = reverts, "puts changes to "+Named(g.names[0], n)+" on the stash"
			} else if g.lost == 0 {
				weight, text = reverts, "takes "+Named(g.names[0], n)+" back to what was committed"
			}
		case "ignored deleted":
			if g.lost > 0 {
				weight = loses
			}
			if g.lost > 0 && n > 1 {
				text += ", " + ofThem(g.lost, n, "nothing makes again")
			}
		case "created":
			if x := s.group("executable made"); len(x.names) > 0 && n == 1 {
				text = "creates the executable " + short(g.names[0], 28)
			} else if len(x.names) > 0 {
				text += ", " + ofThem(min(len(x.names), n), n, "executable")
			}
		}
		if g.lost > 0 && row.kind != "reverted" && row.kind != "ignored deleted" && s.repositoryOf(g.names[0]) != nil {
			text += ", " + ofThem(g.lost, n, "never committed")
		}
		if g.tests > 0 && n > 1 && weight <= reverts {
			text += ", " + ofThem(g.tests, n, "tests")
		}
		s.add(weight, "%s", text)
	}
	if s.More > 0 {
		s.add(loses, "changes %d files more than can be looked at", s.More)
	}
	if len(s.phrases) == 0 {
		s.add(plain, "changes folders, or what files are marked with")
	}
}

// Named names a file when it is alone, else counts.
func Named(name string, n int) string {
	if n == 1 {
		return short(name, 28)
	}
	return fmt.Sprintf("%d files", n)
}

// ofThem says that n of all are something.
func ofThem(n, all int, what string) string {
	switch {
	case all == 1:
		return what
	case n == all:
		return "all " + what
	}
	return fmt.Sprintf("%d of them %s", n, what)
}

// short makes a name fit to be said: escaped, and its end when it is long.
func short(name string, most int) string {
	name = api.Escape(name)
	n := utf8.RuneCountInString(name)
	if n <= most {
		return name
	}
	return "…" + string([]rune(strings.ToValidUTF8(name, ""))[n-most+1:])
}
