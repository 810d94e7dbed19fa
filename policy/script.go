package policy

import (
	"cmp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

const (
	scriptUnknown = "the script that it runs is only known when it runs"
	scriptSyntax  = "its script can't be read"
)

// script judges a shell's script, each simple command as a part of its own.
// known says that src is exactly what will run.
func (j *judging) script(src string, known bool, dialect string, at site, text string) (*finding, bool) {
	if !known {
		return j.unknown(scriptUnknown), false
	}
	if len(src) > maxBytes {
		return j.unknown(tooLarge), false
	}
	if j.depth >= maxDepth || nests(src) > maxNests {
		return j.unknown(tooDeep), false
	}
	j.depth++
	defer func() { j.depth-- }()
	lang := syntax.LangBash
	switch dialect {
	case "zsh":
		lang = syntax.LangZsh
	case "mksh", "ksh":
		lang = syntax.LangMirBSDKorn
	}
	file, err := syntax.NewParser(syntax.Variant(lang)).Parse(strings.NewReader(src), "")
	if err != nil {
		return j.unknown(scriptSyntax), false
	}
	s := &scan{
		j: j, src: src, fish: dialect == "fish",
		seen: map[syntax.Node]bool{},
		own:  map[string]bool{},
	}
	s.r = reader{home: j.home, set: assigned(file), own: s.own}
	if exports(file, &s.r) {
		j.more = cmp.Or(j.more, setsMore)
	}
	before := len(j.parts)
	s.stmts(file.Stmts, &at)
	// Whatever commands stand where the walk above doesn't go, such as in the
	// default of a variable, run it isn't known where.
	nowhere := at
	nowhere.dirs, nowhere.piped = nil, false
	s.inner(file, &nowhere)
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			s.call(n, nil, &nowhere)
		case *syntax.DeclClause:
			s.decl(n)
		}
		return true
	})
	if len(j.parts) == before {
		j.add(text, nil, finding{verdict: Allow, rule: noRule})
	}
	return nil, true
}

// nests is how deep a script can be nested at most. The parser recurses, and
// whoever wrote the script may be after its stack.
func nests(src string) int {
	n := 0
	for i := range len(src) {
		switch src[i] {
		case '(', '{', '[', '`', '!':
			n++
		}
	}
	for w := range strings.FieldsSeq(src) {
		if len(w) <= 6 && syntax.IsKeyword(w) {
			n++
		}
	}
	return n
}

// assigned are the variables that a script sets in any way that can be seen.
func assigned(f *syntax.File) map[string]bool {
	set := map[string]bool{}
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				set[n.Name.Value] = true
			}
		case *syntax.WordIter:
			set[n.Name.Value] = true
		case *syntax.CallExpr: // read NAME, unset NAME, printf -v NAME, …
			if len(n.Args) > 1 {
				switch n.Args[0].Lit() {
				case "read", "unset", "printf", "mapfile", "readarray", "getopts", "eval", "source", ".", "set":
					for _, a := range n.Args[1:] {
						set[a.Lit()] = true
					}
				}
			}
		}
		return true
	})
	return set
}

// scan walks a script.
type scan struct {
	j    *judging
	src  string
	r    reader
	seen map[syntax.Node]bool
	own  map[string]bool // functions that the script defines
	fish bool
}

func (s *scan) stmts(list []*syntax.Stmt, at *site) {
	for _, st := range list {
		s.stmt(st, at)
	}
}

// stmt follows one statement and leaves in at where the next one runs.
func (s *scan) stmt(st *syntax.Stmt, at *site) {
	if st == nil || st.Cmd == nil {
		return
	}
	here := *at
	for _, r := range st.Redirs {
		switch r.Op {
		case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.WordHdoc, syntax.Hdoc, syntax.DashHdoc:
			if r.N == nil || r.N.Value == "0" {
				w := s.r.word(r.Word)
				if here.input = nil; r.Op == syntax.RdrIn || r.Op == syntax.RdrInOut {
					here.input = []word{w}
				}
				here.piped = r.Op == syntax.DplIn || w.process
			}
		}
	}
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		s.call(c, st, &here)
		at.dirs = s.cd(c, here)
	case *syntax.BinaryCmd:
		s.binary(c, at)
	case *syntax.Subshell:
		s.stmts(c.Stmts, &here)
	case *syntax.Block:
		s.stmts(c.Stmts, &here)
		at.dirs = here.dirs
	case *syntax.IfClause:
		var ends [][]string
		for i := c; i != nil; i = i.Else {
			s.stmts(i.Cond, &here)
			branch := here
			s.stmts(i.Then, &branch)
			ends = append(ends, branch.dirs)
		}
		ends = append(ends, here.dirs)
		at.dirs = union(ends...)
	case *syntax.WhileClause:
		s.loop(at, here, c.Cond, c.Do)
	case *syntax.ForClause:
		s.loop(at, here, c.Do)
	case *syntax.CaseClause:
		ends := [][]string{here.dirs}
		for _, item := range c.Items {
			branch := here
			s.stmts(item.Stmts, &branch)
			ends = append(ends, branch.dirs)
		}
		at.dirs = union(ends...)
	case *syntax.TimeClause:
		s.stmt(c.Stmt, &here)
		at.dirs = here.dirs
	case *syntax.CoprocClause:
		here.piped = true
		s.stmt(c.Stmt, &here)
	case *syntax.FuncDecl:
		body := here
		body.dirs, body.piped = nil, true // wherever it is called
		s.stmt(c.Body, &body)
		if c.Name != nil {
			s.own[c.Name.Value] = true
		}
		for _, n := range c.Names {
			s.own[n.Value] = true
		}
	case *syntax.DeclClause:
		s.decl(c)
	}
}

// loop follows a body that may run any number of times.
func (s *scan) loop(at *site, here site, bodies ...[]*syntax.Stmt) {
	if moves(bodies...) {
		here.dirs = nil
	}
	for _, b := range bodies {
		s.stmts(b, &here)
	}
	at.dirs = union(at.dirs, here.dirs)
}

func (s *scan) binary(c *syntax.BinaryCmd, at *site) {
	here := *at
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		s.stmt(c.X, &here)
		right := *at
		right.piped = true
		s.stmt(c.Y, &right)
	case syntax.AndStmt:
		s.stmt(c.X, &here)
		if x, ok := c.X.Cmd.(*syntax.CallExpr); ok && !c.X.Negated {
			if to, ok := s.target(x, *at); ok { // it went there, or the rest doesn't run
				here.dirs = to
			}
		}
		right := here
		s.stmt(c.Y, &right)
		at.dirs = union(at.dirs, here.dirs, right.dirs)
	default:
		s.stmt(c.X, &here)
		right := here
		s.stmt(c.Y, &right)
		at.dirs = union(here.dirs, right.dirs)
		// cd DIR || exit
		if x, ok := c.X.Cmd.(*syntax.CallExpr); ok && leaves(c.Y) {
			if to, ok := s.target(x, *at); ok {
				at.dirs = to
			}
		}
	}
}

// call judges a simple command. st is its statement, for what is shown.
func (s *scan) call(c *syntax.CallExpr, st *syntax.Stmt, at *site) {
	if s.seen[c] || s.j.full {
		return
	}
	s.seen[c] = true
	if len(c.Args) == 0 {
		return
	}
	s.look(*at)
	var ws []word
	for _, a := range c.Args {
		ws = append(ws, s.r.fields(a)...)
	}
	from, to := c.Pos(), c.End()
	if st != nil && st.End().After(to) { // with its redirections
		if to = st.End(); st.Semicolon.IsValid() {
			to = st.Semicolon
		}
	}
	text := s.text(from, to)
	for len(ws) > 1 && keywordLike(ws[0].text, s.fish) {
		ws = ws[1:]
	}
	f, done := s.fed(ws, st, at, text)
	switch {
	case !done:
		s.j.simple(text, ws, *at)
	case f != nil:
		s.j.add(text, ws, *f)
	}
	if st != nil {
		s.inner(st, at)
	}
}

// inner follows the commands in a node's substitutions, which run where it does.
func (s *scan) inner(n syntax.Node, at *site) {
	syntax.Walk(n, func(n syntax.Node) bool {
		var list []*syntax.Stmt
		switch n := n.(type) {
		case *syntax.CmdSubst:
			list = n.Stmts
		case *syntax.ProcSubst:
			list = n.Stmts
		default:
			return true
		}
		here := *at
		here.piped = false
		s.stmts(list, &here)
		return true
	})
}

// keywordLike are words before a command that change how it is run only.
func keywordLike(s string, fish bool) bool {
	switch s {
	case "noglob", "nocorrect", "-": // zsh
		return true
	case "and", "or", "not", "begin":
		return fish
	}
	return false
}

func (s *scan) decl(c *syntax.DeclClause) {
	if s.seen[c] {
		return
	}
	s.seen[c] = true
	s.j.add(s.text(c.Pos(), c.End()), nil, finding{verdict: Allow, rule: noRule})
}

// text is a piece of the source, without what surrounds it.
func (s *scan) text(from, to syntax.Pos) string {
	a, b := int(from.Offset()), int(to.Offset())
	if a < 0 || b > len(s.src) || a > b {
		return s.src
	}
	return strings.TrimSpace(s.src[a:b])
}
