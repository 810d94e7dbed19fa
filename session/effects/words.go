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
	{"replaced", loses, "replaces %s by a link or folder", "replaces %d files by other kinds"},
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
	{"folder", plain, "makes folder %s", "makes %d empty folders"},
	{"folder gone", plain, "removes folder %s", "removes %d empty folders"},
}

// say makes words of all that was sorted in.
func (s *summary) say() {
	for _, row := range table {
		g := s.groups[row.kind]
		if g == nil {
			continue
		}
		n, weight, one, many, folder, after := len(g.names), row.weight, row.one, row.many, "", ""
		if row.kind == "deleted" || row.kind == "moved" {
			folder = s.goneFolder(g.names)
		}
		switch gone := short(folder, 16); {
		case row.kind == "deleted" && folder != "":
			many = "deletes " + gone + " with %d files"
		case row.kind == "moved" && folder != "":
			one, many = "moves %s; "+gone+" is gone", "moves %d files out of "+gone+", which is gone"
		case row.kind == "runs" && n == 1:
			after = ", " + Runs(g.names[0])
		case row.kind == "reverted" && s.stashed:
			weight, one, many = reverts, "puts changes to %s on the stash", "puts changes to %d files on the stash"
		case row.kind == "reverted" && g.lost == 0:
			weight, one, many = reverts, "puts %s back to what was committed", "puts %d files back to what was committed"
		case row.kind == "ignored deleted" && g.lost > 0:
			if weight = loses; n > 1 {
				after = ", " + ofThem(g.lost, n, "nothing makes again")
			}
		case row.kind == "created" && s.newExecutable > 0:
			one, after = "creates the executable %s", ""
			if n > 1 {
				after = ", " + ofThem(min(s.newExecutable, n), n, "executable")
			}
		}
		if g.lost > 0 && row.kind != "reverted" && row.kind != "ignored deleted" && s.repositoryOf(g.names[0]) != nil {
			after += ", " + ofThem(g.lost, n, "never committed")
		}
		if tests := ", " + ofThem(g.tests, n, "tests"); g.tests > 0 && n > 1 && weight <= reverts && utf8.RuneCountInString(many+after+tests) < columns-6 {
			after += tests
		}
		if n > 1 {
			s.add(weight, many+"%s", n, after)
		} else {
			s.add(weight, one+"%s", short(g.names[0], min(32, columns-utf8.RuneCountInString(one+after))), after)
		}
	}
	if s.More > 0 {
		s.add(loses, "changes %d files more than can be looked at", s.More)
	}
	if len(s.phrases) == 0 {
		s.add(plain, "changes permissions or attributes")
	}
}

// columns is how wide a phrase may be.
const columns = 62

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
