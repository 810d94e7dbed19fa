package policy

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// moves says whether statements may change the working directory.
func moves(bodies ...[]*syntax.Stmt) bool {
	found := false
	for _, b := range bodies {
		for _, st := range b {
			syntax.Walk(st, func(n syntax.Node) bool {
				if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
					switch c.Args[0].Lit() {
					case "cd", "chdir", "pushd", "popd", "builtin", "command", "eval", "source", ".", "":
						found = true
					}
				}
				return !found
			})
		}
	}
	return found
}

// leaves says whether a statement ends the script.
func leaves(st *syntax.Stmt) bool {
	c, ok := st.Cmd.(*syntax.CallExpr)
	return ok && len(c.Args) > 0 && (c.Args[0].Lit() == "exit" || c.Args[0].Lit() == "return")
}

// union is all folders of several sets; unknown if one of them is.
func union(sets ...[]string) []string {
	var out []string
	for _, set := range sets {
		if len(set) == 0 {
			return nil
		}
		for _, d := range set {
			if slices.Contains(out, d) {
				continue
			}
			if out = append(out, d); len(out) > 8 {
				return nil
			}
		}
	}
	return out
}

// target is where a cd goes to if it succeeds.
func (s *scan) target(c *syntax.CallExpr, at site) ([]string, bool) {
	if len(c.Args) == 0 {
		return nil, false
	}
	name := c.Args[0].Lit()
	if name != "cd" && name != "chdir" && name != "pushd" {
		return nil, false
	}
	if s.own[name] || len(c.Assigns) > 0 || s.r.set["CDPATH"] {
		return nil, true
	}
	s.look(at)
	args := c.Args[1:]
	for len(args) > 0 && (args[0].Lit() == "--" || args[0].Lit() == "-P" || args[0].Lit() == "-L") {
		args = args[1:]
	}
	if len(args) != 1 {
		if len(args) == 0 && s.j.home != "" && !s.r.set["HOME"] && name != "pushd" {
			return []string{s.j.home}, true
		}
		return nil, true
	}
	w := s.r.word(args[0])
	if !w.known() || w.text == "" || w.text[0] == '-' || w.text[0] == '+' || strings.ContainsAny(args[0].Lit(), "{") {
		return nil, true
	}
	if path.IsAbs(w.text) {
		return []string{path.Clean(w.text)}, true
	}
	if len(at.dirs) == 0 {
		return nil, true
	}
	var out []string
	for _, d := range at.dirs {
		out = append(out, path.Join(d, w.text))
	}
	return out, true
}

// cd is where the statement after c runs.
func (s *scan) cd(c *syntax.CallExpr, at site) []string {
	if to, ok := s.target(c, at); ok {
		return union(at.dirs, to) // it may have failed
	}
	if len(c.Args) > 0 {
		switch n := c.Args[0].Lit(); n {
		case "popd", "builtin", "command", "eval", "":
			return nil
		case "source", ".":
		default:
			if s.own[n] { // its body may go anywhere
				return nil
			}
		}
	}
	return at.dirs
}

// look tells the reader where it is.
func (s *scan) look(at site) {
	s.r.pwd = ""
	if len(at.dirs) == 1 {
		s.r.pwd = at.dirs[0]
	}
}
