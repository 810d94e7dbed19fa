// Ratchet measures the weight and the shape of the program, tests left out, and holds it: a figure may fall, never
// rise. .ci/ratchet has the highest value of each, and a line for each rise that was worth what it bought:
//
//	tokens 1130000
//	+ tokens 4000 what these tokens bought
//
// -write lowers what has fallen, and takes what was bought into it.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
)

const heldIn = ".ci/ratchet"

type figure struct {
	name  string
	value int
	note  string
}

// A house is what was read of the program.
type house struct {
	set           *token.FileSet
	tokens, lines int
	packages      map[string][]*ast.File // by folder
}

func main() {
	h, held := look(), read()
	text, risen := "# The highest value of each figure; ratchet.go says how a rise is written down.\n", ""
	for _, f := range h.figures() {
		fmt.Printf("%-24s %8d of at most %8d  %s\n", f.name, f.value, held[f.name], f.note)
		if f.value > held[f.name] {
			risen += " " + f.name
		}
		text += fmt.Sprintf("%s %d\n", f.name, f.value)
	}
	if slices.Contains(os.Args, "-write") {
		check(os.WriteFile(heldIn, []byte(text), 0o644))
	} else if risen != "" {
		check(fmt.Errorf("these rose:%s: make them fall again, or write what the rise buys into %s", risen, heldIn))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "ratchet:", err)
		os.Exit(1)
	}
}

func read() map[string]int {
	text, err := os.ReadFile(heldIn)
	check(err)
	held := map[string]int{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(strings.TrimPrefix(line, "+"))
		if len(words) == 0 || line[0] == '#' {
			continue
		}
		n, err := strconv.Atoi(words[min(1, len(words)-1)])
		if said := len(words) > 2; err != nil || said != (line[0] == '+') {
			check(fmt.Errorf("%s: cannot read %q: wanted FIGURE NUMBER, or + FIGURE NUMBER WHY", heldIn, strings.TrimSpace(line)))
		}
		held[words[0]] += n
	}
	return held
}

func look() *house {
	// The last five are packages that only tests use.
	listed, err := exec.Command("git", "ls-files", "-z", "--", "*.go", ":!*_test.go", ":!.ci",
		":!*/standintest/*", ":!*/pairstest/*", ":!*/cellstest/*", ":!*/storetest/*", ":!session/e2e/must/*").Output()
	check(err)
	h := &house{set: token.NewFileSet(), packages: map[string][]*ast.File{}}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		source, err := os.ReadFile(name)
		check(err)
		tree, err := parser.ParseFile(h.set, name, source, parser.ParseComments)
		check(err)
		h.packages[path.Dir(name)] = append(h.packages[path.Dir(name)], tree)
		h.count(source)
	}
	return h
}

// count adds source's tokens, and the lines that one begins on.
func (h *house) count(source []byte) {
	var s scanner.Scanner
	in := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(in, source, nil, 0)
	for last, at, kind := 0, token.NoPos, token.ILLEGAL; kind != token.EOF; h.tokens++ {
		at, kind, _ = s.Scan()
		if line := in.Line(at); line != last {
			last = line
			h.lines++
		}
	}
}

// figures counts over functions, types and packages.
func (h *house) figures() []figure {
	type counts = map[string]int
	paths, methods, fields, names, bare, back, all := counts{}, counts{}, counts{}, counts{}, counts{}, counts{}, 0
	for folder, files := range h.packages {
		undocumented, here := 1, map[string]bool{}
		for _, f := range files {
			if f.Doc != nil {
				undocumented = 0
			}
			for n := range ast.Preorder(f) {
				switch n := n.(type) {
				case *ast.FuncDecl:
					paths[h.set.Position(n.Pos()).String()+" "+n.Name.Name] = complexity(n)
					if n.Recv != nil {
						methods[folder+"."+types.ExprString(n.Recv.List[0].Type)]++ // *T, and T where it is no pointer
					}
				case *ast.TypeSpec:
					here[n.Name.Name] = true
					if s, ok := n.Type.(*ast.StructType); ok {
						fields[folder+"."+n.Name.Name] = s.Fields.NumFields()
					}
				}
			}
		}
		for name := range here {
			names[name]++
		}
		bare[folder], back[folder] = undocumented, against(references(files))
		all += back[folder]
	}
	return []figure{
		{"tokens", h.tokens, fmt.Sprintf("in %d lines", h.lines)}, {"tokens-per-100-lines", h.tokens * 100 / h.lines, ""},
		above("functions-over-10", paths, 10), above("functions-over-20", paths, 20), above("types-over-40-methods", methods, 40),
		above("types-over-25-fields", fields, 25), above("type-names-in-3-packages", names, 2), above("packages-without-doc", bare, 0),
		{"back-arrows", all, above("", back, 0).note},
	}
}

// above says how many of them are above limit.
func above(name string, of map[string]int, limit int) figure {
	n, largest := 0, ""
	for _, each := range slices.Sorted(maps.Keys(of)) {
		if of[each] > limit {
			n++
		}
		if of[each] > of[largest] {
			largest = each
		}
	}
	return figure{name, n, fmt.Sprintf("of %d; %s has %d", len(of), largest, of[largest])}
}

// complexity is McCabe's: one, and one for each place where the way through the function parts.
func complexity(f *ast.FuncDecl) int {
	n := 1
	for node := range ast.Preorder(f) {
		switch node := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			n += min(1, len(node.List))
		case *ast.CommClause:
			if node.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if node.Op == token.LAND || node.Op == token.LOR {
				n++
			}
		}
	}
	return n
}

// references has, for each file, the others that declare what it uses: by name, and methods if one file declares that name.
func references(files []*ast.File) []map[int]int {
	declared, method, uses := map[string]int{}, map[string]int{}, make([]map[int]int, len(files))
	for i, f := range files {
		for name := range f.Scope.Objects {
			declared[name] = i + 1
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv != nil {
				if in, seen := method[d.Name.Name]; !seen || in == i+1 {
					method[d.Name.Name] = i + 1
				} else {
					method[d.Name.Name] = 0
				}
			}
		}
	}
	for i, f := range files {
		uses[i] = map[int]int{}
		for _, id := range f.Unresolved {
			uses[i][declared[id.Name]-1] = 1
		}
		for n := range ast.Preorder(f) {
			if call, ok := n.(*ast.CallExpr); ok {
				if s, ok := call.Fun.(*ast.SelectorExpr); ok {
					uses[i][method[s.Sel.Name]-1] = 1
				}
			}
		}
		delete(uses[i], i)
	}
	return uses
}

// against counts the references that run back in the best order of the files that is found: what needs nothing that is
// left comes next; where all that is left needs each other, what is needed most beyond what it needs itself.
func against(uses []map[int]int) (back int) {
	left := make([]int, len(uses))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		best, most, needs := 0, -len(uses), 0
		for i, file := range left {
			in, out := 0, 0
			for _, other := range left {
				in += uses[other][file]
				out += uses[file][other]
			}
			if out == 0 {
				in = len(uses)
			}
			if in-out > most {
				best, most, needs = i, in-out, out
			}
		}
		back += needs
		left = slices.Delete(left, best, best+1)
	}
	return back
}
