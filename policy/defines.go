package policy

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// defined looks at a file that a shell reads before a command.
type defined struct {
	of    *Profile
	made  func(file string) bool
	loose func(folder string) bool
	name  string // of the function that is looked into; "": of none
}

// Leaves says whether a file that a shell reads before a command leaves that what it shows:
// it turns things off, and its functions only choose between the program of their own name
// and the agent's own that looks for files and words, and hand on what they are given. What
// else is in there may take a command's place. Made says whether others than the agent can
// have made a program, loose whether the agent can put one into a folder unasked.
func (p *Profile) Leaves(script string, made, loose func(string) bool) bool {
	if len(script) > maxBytes || nests(script) > maxNests {
		return false
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return false
	}
	d := defined{of: p, made: made, loose: loose}
	leaves := true
	syntax.Walk(file, func(n syntax.Node) bool {
		f, function := n.(*syntax.FuncDecl)
		if function {
			leaves = leaves && d.function(f)
			return false
		}
		leaves = leaves && d.allows(n)
		return leaves
	})
	return leaves
}

// function says it of one: nothing in it is called as what it uses itself.
func (d defined) function(f *syntax.FuncDecl) bool {
	if d.name = f.Name.Value; slices.Contains(itself, d.name) || strings.Trim(d.name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return false
	}
	allowed := true
	syntax.Walk(f.Body, func(n syntax.Node) bool {
		allowed = allowed && d.allows(n)
		return allowed
	})
	return allowed
}

// itself are the shell's own words that change nothing but variables of a function, and
// those by which a file like this, and what reads it, does its work.
var itself = []string{
	"true", "false", ":", "local", "printf", "return", "continue", "break", "shift", "[", "test", "echo", "hash", "typeset",
	"command", "exec", "builtin", "eval", "source", ".", "pwd", "shopt", "unalias", "unset", "setopt",
}

// allows says whether a node of the file, by itself, leaves commands what they are.
func (d defined) allows(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.CallExpr:
		return d.call(n)
	case *syntax.DeclClause:
		return d.declares(n)
	case *syntax.Assign:
		return d.sets(n)
	case *syntax.WordIter:
		return !isLoader(n.Name.Value)
	case *syntax.Redirect:
		to := n.Word.Lit()
		return n.Op == syntax.DplOut && (to == "1" || to == "2") || n.Op == syntax.RdrOut && to == "/dev/null"
	case *syntax.ParamExp:
		return plainly(n)
	case *syntax.BinaryTest:
		return n.Op == syntax.TsMatch || n.Op == syntax.TsMatchShort || n.Op == syntax.AndTest || n.Op == syntax.OrTest
	case *syntax.UnaryTest:
		return n.Op != syntax.TsVarSet && n.Op != syntax.TsRefVar
	}
	return structure(n)
}

// structure says whether a node only holds others.
func structure(n syntax.Node) bool {
	switch n.(type) {
	case *syntax.BinaryCmd, *syntax.IfClause, *syntax.ForClause, *syntax.CaseClause, *syntax.CaseItem, *syntax.TestClause, *syntax.Subshell,
		*syntax.Block, *syntax.File, *syntax.Stmt, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted, *syntax.ArrayExpr,
		*syntax.ArrayElem, *syntax.Comment, nil:
		return true
	}
	return false
}

// sets says whether setting a variable has no command do anything else. PATH may be set for all that follows, if it
// names no folder into which the agent can put programs but behind all others.
func (d defined) sets(set *syntax.Assign) bool {
	switch {
	case set.Name == nil:
		return true
	case set.Index != nil, strings.HasPrefix(set.Name.Value, "BASH"): // arithmetic; what bash remembers of commands
		return false
	case !isLoader(set.Name.Value):
		return true
	}
	value := (&reader{}).word(cmp.Or(set.Value, &syntax.Word{}))
	own := false // such a folder came
	return set.Name.Value == "PATH" && d.name == "" && value.known() && !set.Append && !slices.ContainsFunc(strings.Split(value.text, ":"), func(folder string) bool {
		loose := !path.IsAbs(folder) || d.loose(folder)
		own = own || loose
		return own && !loose
	})
}

// plainly says whether the value of a parameter runs nothing, whatever it is: no arithmetic,
// no name in another's value, no prompt.
func plainly(p *syntax.ParamExp) bool {
	if p.Excl || p.Slice != nil || p.Repl != nil || p.Index != nil && !isAll(p.Index) {
		return false
	}
	return p.Exp == nil || slices.Contains([]syntax.ParExpOperator{syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull}, p.Exp.Op)
}

func isAll(index syntax.ArithmExpr) bool {
	w, ok := index.(*syntax.Word)
	return ok && w.Lit() == "@"
}

// declares says it of one of the words that declare variables.
func (d defined) declares(c *syntax.DeclClause) bool {
	first := c.Args[0]
	option := ""
	if first.Name == nil && first.Value != nil {
		option = first.Value.Lit()
	}
	switch c.Variant.Value {
	case "local":
		return d.name != "" && (first.Name != nil || option == "-a")
	case "export":
		return d.name == "" && len(c.Args) == 1 && first.Name != nil && first.Name.Value == "PATH"
	case "typeset":
		return option == "-f"
	}
	return false
}

// call says it of a simple command.
func (d defined) call(c *syntax.CallExpr) bool {
	if len(c.Args) == 0 {
		return d.name != ""
	}
	name := c.Args[0].Lit()
	switch {
	case d.name == "":
		return len(c.Assigns) == 0 && prepares(name, c.Args[1:])
	case len(c.Assigns) == 1 && c.Assigns[0].Name.Value == "ARGV0" && c.Assigns[0].Value != nil:
		return d.face(c.Assigns[0].Value.Lit(), c.Args)
	case len(c.Assigns) > 0:
		return false
	case name == "command" && len(c.Args) > 1:
		called := c.Args[1].Lit()
		return called == d.name && handsOn(c.Args[2:]) || called == "pgrep" || called == "grep"
	case name == "exec" && len(c.Args) > 3 && c.Args[1].Lit() == "-a":
		return d.face(c.Args[2].Lit(), c.Args[3:])
	}
	return flows(name, c.Args[1:])
}

// flows says whether a builtin only says where a function goes on, or what it tells.
func flows(name string, args []*syntax.Word) bool {
	switch name {
	case "true", "return", "continue", "break":
		return true
	case "[":
		return len(args) == 3 && slices.Contains([]string{"-n", "-z", "-r", "-x", "-f", "-e", "-d"}, args[0].Lit()) && args[2].Lit() == "]"
	case "printf":
		if len(args) == 0 || len(args[0].Parts) != 1 {
			return false
		}
		format, ok := args[0].Parts[0].(*syntax.SglQuoted)
		return ok && !dashed(format.Value)
	}
	return false
}

// prepares says it of a command outside of functions.
func prepares(name string, args []*syntax.Word) bool {
	lits := func(ok func(string) bool) bool {
		return !slices.ContainsFunc(args, func(w *syntax.Word) bool { return w.Lit() == "" || !ok(w.Lit()) })
	}
	switch name {
	case "true", "hash":
		return lits(func(s string) bool { return !dashed(s) })
	case "unalias":
		return lits(func(string) bool { return true })
	case "shopt":
		return len(args) == 2 && lits(func(string) bool { return true }) && (args[0].Lit() == "-u" || args[0].Lit() == "-s" && args[1].Lit() == "expand_aliases")
	}
	return false
}

// face says whether it is the agent's own program as one that looks for files or words.
func (d defined) face(name string, args []*syntax.Word) bool {
	file := args[0].Lit()
	if !path.IsAbs(file) || path.Clean(file) != file || !d.of.file.Match.fits(file) || !slices.Contains(d.of.file.Match.Faces, name) || d.made(file) {
		return false
	}
	n := len(args) - 1
	return handsOn(args[n:]) && !slices.ContainsFunc(args[1:n], func(w *syntax.Word) bool {
		return !slices.ContainsFunc(howToLook, func(g glob) bool { return g.match(w.Lit()) })
	})
}

// howToLook are what such a program is told beside: where not to look, and how to read.
var howToLook = []glob{"-[GIS]", "dfs", "-regextype", "*-default", "--ignore-files", "--hidden", "--encoding=*", "--exclude-dir=*"}

// handsOn says whether the words are those that the function is given, all of them.
func handsOn(args []*syntax.Word) bool {
	if len(args) != 1 || len(args[0].Parts) != 1 {
		return false
	}
	part := args[0].Parts[0]
	if p, ok := part.(*syntax.ParamExp); ok && p.Param.Value == "1" && p.Exp != nil && p.Exp.Op == syntax.AlternateUnset && len(p.Exp.Word.Parts) == 1 {
		part = p.Exp.Word.Parts[0]
	}
	q, ok := part.(*syntax.DblQuoted)
	if !ok || q.Dollar || len(q.Parts) != 1 {
		return false
	}
	p, ok := q.Parts[0].(*syntax.ParamExp)
	return ok && p.Param.Value == "@" && p.Exp == nil && p.Slice == nil && p.Repl == nil && p.Index == nil && !p.Excl && !p.Length
}
