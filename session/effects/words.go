package effects

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// say makes words of all that was sorted in.
func (s *summary) say() {
	s.saidOf(loses, "deletes", &s.deleted)
	if n := len(s.ignoredGone.names); n > 0 {
		w, weight := "deletes "+count(n, "ignored file"), minor
		if n == 1 {
			w = "deletes " + short(s.ignoredGone.names[0], maxName) + ", which git ignores"
		} else if s.ignoredGone.lost > 0 {
			w += ", " + ofThem(s.ignoredGone.lost, n, "nothing makes again")
		}
		if s.ignoredGone.lost > 0 {
			weight = loses
		}
		s.add(weight, "%s", w)
	}
	if n := len(s.unknown.names); n > 0 {
		s.add(loses, "deletes %s with contents that aren't known", one(s.unknown.names, "folder", 16))
	}
	if n := len(s.reverted.names); n > 0 {
		if s.stashed {
			s.add(reverts, "puts changes to %s on the stash", one(s.reverted.names, "file", 24))
		} else if s.reverted.lost > 0 {
			s.add(loses, "throws away uncommitted changes to %s", one(s.reverted.names, "file", 24))
		} else {
			s.add(reverts, "takes %s back to what was committed", one(s.reverted.names, "file", 24))
		}
	}
	s.saidOf(loses, "empties", &s.emptied)
	s.saidOf(loses, "replaces", &s.replaced, " by another kind of file")
	s.saidOf(reverts, "overwrites all of", &s.overwritten)
	if n := len(s.selfRun.names); n > 0 {
		if kinds := slices.Sorted(maps.Keys(s.kinds)); len(kinds) == 1 && n > 1 {
			s.add(runs, "changes %s in %d files, which runs by itself", strings.TrimPrefix(kinds[0], "a git "), n)
		} else {
			s.add(runs, "changes %s, %s", one(s.selfRun.names, "file", 20), strings.Join(kinds, " and "))
		}
	}
	s.moves()
	s.each(leads, "makes a link that leads out: %s", "makes %d links that lead out of the project", &s.links)
	s.each(opens, "lets everyone write %s", "lets everyone write %d files or folders", &s.open)
	s.each(opens, "makes %s run as its owner", "makes %d files run as their owner", &s.setid)
	s.each(executes, "makes %s executable", "makes %d files executable", &s.executable)
	s.each(touches, "changes tests in %s", "changes tests in %d files", &s.tests)
	s.each(outside, "writes %s, outside the folder it ran in", "writes %d files outside the folder it ran in", &s.apart)
	s.each(minor, "changes %s", "changes %d lock files", &s.locks)
	s.each(minor, "changes %s, which git ignores", "changes %d ignored files", &s.ignoredMade)
	if n := len(s.created.names); n > 0 {
		w, weight := "creates "+one(s.created.names, "file", maxName), plain
		if s.newExecutable == 1 && n == 1 {
			w = "creates the executable " + short(s.created.names[0], maxName)
		} else if s.newExecutable > 0 {
			w += ", " + ofThem(min(s.newExecutable, n), n, "executable")
		}
		s.add(weight, "%s", w)
	}
	s.each(plain, "changes %s", "changes %d files", &s.changed)
	if s.in.More > 0 {
		s.add(loses, "changes %d files more than can be looked at", s.in.More)
	}
	if len(s.phrases) == 0 {
		s.add(plain, "changes attributes or folders only")
	}
}

// saidOf says what happened to files that were lost, or are in git.
func (s *summary) saidOf(weight int, verb string, g *group, after ...string) {
	n := len(g.names)
	if n == 0 {
		return
	}
	w := verb + " " + one(g.names, "file", maxName)
	if dir := s.goneFolder(g.names); verb == "deletes" && n > 1 && dir != "" {
		w = fmt.Sprintf("deletes %s with %s", short(dir, 16), one(g.names, "file", maxName))
	}
	w += strings.Join(after, "")
	if lost := g.lost; lost > 0 && s.hasGit(g.names[0]) {
		w += ", " + ofThem(lost, n, "never committed")
	}
	if g.tests > 0 && n > 1 {
		w += ", " + ofThem(g.tests, n, "tests")
	}
	s.add(weight, "%s", w)
}

func (s *summary) hasGit(p string) bool {
	_, ok := s.kept.repository(p)
	return ok
}

// moves says what went elsewhere with its content.
func (s *summary) moves() {
	if n := len(s.moved.names); n > 0 {
		w := "moves " + one(s.moved.names, "file", maxName)
		if dir := s.goneFolder(s.moved.names); dir != "" {
			if n > 1 {
				w += " out of " + short(dir, 16) + ", which is gone"
			} else {
				w = "moves " + short(s.moved.names[0], 24) + "; " + short(dir, 16) + " is gone"
			}
		} else if n > 1 {
			w += " to other folders"
		} else {
			w += " to another folder"
		}
		s.add(moves, "%s", w)
	}
	s.each(touches, "renames %s", "renames %d files", &s.renamed)
}

// each says something of one file by its name, or of many by their number.
func (s *summary) each(weight int, ofOne, ofMany string, g *group) {
	switch n := len(g.names); {
	case n == 1:
		s.add(weight, ofOne, short(g.names[0], 28))
	case n > 1:
		s.add(weight, ofMany, n)
	}
}

// one names a thing when it is alone, else counts.
func one(names []string, noun string, most int) string {
	if len(names) == 1 {
		return short(names[0], most)
	}
	return count(len(names), noun)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
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
