package changes

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/colorprofile"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/session/e2e/must"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/internal/cellstest"
	"stepbox/ui/paint"
)

func line(op, text string) api.Line { return api.Line{Op: op, Text: text} }

func lines(op string, texts ...string) (out []api.Line) {
	for _, t := range texts {
		out = append(out, line(op, t))
	}
	return out
}

func join(parts ...[]api.Line) (out []api.Line) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// sources is a session's changes with one of each kind.
func sources() api.Changes {
	file := func(group, path, status string, added, removed int) api.Change {
		return api.Change{Path: path, Key: path, Group: group, Status: status, Kind: "file", Added: added, Removed: removed, Counted: true}
	}
	with := func(c api.Change, f func(*api.Change)) api.Change { f(&c); return c }
	return api.Changes{
		Version: 4, Checkpoint: 17, Total: 19, Added: 431, Removed: 62, Apart: []string{"/etc/hosts"},
		Files: []api.Change{
			file("", "README.md", "M", 2, 1),
			with(file("", "assets/logo.png", "M", 0, 0), func(c *api.Change) {
				c.Binary, c.Counted, c.Type, c.OldSize, c.NewSize = true, false, "PNG image, 640×480 → 800×600", 12100, 14300
			}),
			with(file("", "bin/latest", "T", 0, 0), func(c *api.Change) { c.Kind, c.Words = "symlink", "file becomes symlink, points to ../build/out" }),
			with(file("", "bin/run", "M", 0, 0), func(c *api.Change) { c.Words = "becomes executable, mode 0644 → 0755" }),
			file("", "cmd/server/internal/http/handler.go", "M", 14, 3),
			with(file("", "cmd/server/internal/http/route.go", "R", 3, 2), func(c *api.Change) { c.From, c.FromKey = "cmd/server/mux.go", "cmd/server/mux.go" }),
			file("", "data/table.csv", "M", 50001, 50000),
			file("", "internal/parse/lex.go", "A", 120, 0),
			with(file("", "internal/parse/parse.go", "M", 8, 6), func(c *api.Change) { c.Host = "the project's file has changed since" }),
			with(file("", "internal/parse/token.go", "D", 0, 48), func(c *api.Change) { c.Applied = true }),
			file("lock", "go.sum", "M", 14, 2),
			file("generated", "api/service.pb.go", "M", 210, 0),
		},
		Next: "generated.x",
		More: 7,
		Groups: []api.Group{
			{Name: "lock", Files: 1, Added: 14, Removed: 2}, {Name: "generated", Files: 2, Added: 260, Removed: 1},
			{Name: "ignored", Files: 312, Added: 90210}, {Name: "git", Files: 4},
		},
	}
}

func parseDiff(c api.Change) api.FileDiff {
	return api.FileDiff{Change: c, Hash: "h1", Hunks: []api.Hunk{
		{OldLine: 10, OldCount: 7, NewLine: 10, NewCount: 8, Section: "func Parse(s string) (*Node, error) {", Lines: join(
			lines(" ", "\tif len(s) == 0 {", "\t\treturn nil, ErrEmpty"),
			lines("-", "\tp := parser{tokens: lex(s), depth: 100}", "\treturn p.expression(0, true)"),
			lines("+", "\tp := parser{tokens: lex(s), depth: maxDepth}", "\treturn p.expression(0, false)", "\t// größer als \\u202e nötig"),
			lines(" ", "}"),
		)},
		{OldLine: 52, OldCount: 6, NewLine: 53, NewCount: 4, Section: "func (p *parser) next() token {", Lines: join(
			lines(" ", "\tp.at++"),
			lines("-", "\tif p.at >= len(p.tokens) {", "\t\treturn token{}", "\t}", "\treturn p.tokens[p.at]"),
			lines("+", "\treturn p.tokens[min(p.at, len(p.tokens)-1)]"),
			[]api.Line{{Op: "-", Text: "}", NoEnd: true}, {Op: "+", Text: "} // " + strings.Repeat("long ", 60)}},
		)},
	}}
}

func TestGolden(t *testing.T) {
	down := func(n int) intent.Intent { return intent.Move{By: n} }
	read := intent.Open{}
	for _, s := range []struct {
		name  string
		path  string // the cursor is put there
		diff  func(api.Change) api.FileDiff
		do    []intent.Intent
		split turn
	}{
		{name: "tree", path: "README.md", diff: func(c api.Change) api.FileDiff {
			return api.FileDiff{Change: c, Hash: "r", Hunks: []api.Hunk{{OldLine: 1, OldCount: 2, NewLine: 1, NewCount: 3, Lines: join(lines(" ", "# Parser"), lines("-", "Reads text."), lines("+", "Reads text and numbers.", "See docs."))}}}
		}},
		{name: "folded-groups", path: "README.md", do: []intent.Intent{intent.Bottom{}}},
		{name: "unfolded-group", path: "README.md", do: []intent.Intent{intent.Bottom{}, down(-2), intent.Slide{By: 8}, down(2)}},
		{name: "unified", path: "internal/parse/parse.go", diff: parseDiff, split: never, do: []intent.Intent{read, down(4)}},
		{name: "side-by-side", path: "internal/parse/parse.go", diff: parseDiff, split: always, do: []intent.Intent{read, down(3)}},
		{name: "selected-hunk", path: "internal/parse/parse.go", diff: parseDiff, do: []intent.Intent{read, intent.Hunk{By: 1}, intent.Toggle{}}},
		{name: "selected-list", path: "internal/parse/parse.go", diff: parseDiff, do: []intent.Intent{
			read, intent.Hunk{By: 1}, intent.Toggle{}, read, down(-3), intent.Toggle{}, down(-4), intent.Toggle{}, down(1),
		}},
		{name: "rename-with-edit", path: "cmd/server/internal/http/route.go", diff: func(c api.Change) api.FileDiff {
			return api.FileDiff{Change: c, Hunks: []api.Hunk{{OldLine: 1, OldCount: 3, NewLine: 1, NewCount: 3, Lines: join(lines("-", "package main"), lines("+", "package http"), lines(" ", "", "import \"net/http\""))}}}
		}},
		{name: "binary", path: "assets/logo.png", diff: func(c api.Change) api.FileDiff {
			return api.FileDiff{Change: c, Note: "PNG image, 640×480 → 800×600, 12 KiB → 14 KiB, blake3 ab12cd34ef56 → 0987fedcba65"}
		}},
		{name: "mode", path: "bin/run", diff: func(c api.Change) api.FileDiff { return api.FileDiff{Change: c} }},
		{name: "symlink", path: "bin/latest", diff: func(c api.Change) api.FileDiff { return api.FileDiff{Change: c, Note: "no lines to compare"} }},
		{name: "too-different", path: "data/table.csv", diff: func(c api.Change) api.FileDiff {
			return api.FileDiff{Change: c, Note: "too different to be compared line by line"}
		}},
		{name: "applied", path: "internal/parse/token.go", diff: func(c api.Change) api.FileDiff {
			return api.FileDiff{Change: c, Hash: "t", Hunks: []api.Hunk{{OldLine: 1, OldCount: 1, Lines: []api.Line{{Op: "-", Text: "package parse", NoEnd: true}}}}}
		}},
	} {
		for _, size := range [][2]int{{44, 14}, {80, 24}, {120, 35}, {200, 50}} {
			p := &Pane{view: view{split: s.split}}
			c := sources()
			c.Total, c.Added, c.Removed = 338, 90915, 65 // with what is folded, as a session counts
			p.SetChanges(api.Scope{}, NewTree(c))
			show(t, p, size[0], size[1])
			p.touched = true
			p.choose(p.rowOf(p.tree.find(s.path)))
			if w, ok := p.Wanted(); ok && s.diff != nil {
				p.SetDiff(w, Prepare(s.diff(p.tree.Files[p.tree.nodes[p.rows[p.list.At()]].file])), "")
			}
			show(t, p, size[0], size[1])
			for _, i := range s.do {
				p.Handle(i)
				show(t, p, size[0], size[1])
			}
			t.Run(fmt.Sprintf("%s-%dx%d", s.name, size[0], size[1]), func(t *testing.T) {
				cellstest.Golden(t, func(theme string) uv.ScreenBuffer {
					th, err := themes.Load(theme, "")
					must.OK(t, err)
					b := uv.NewScreenBuffer(size[0], size[1])
					p.Draw(b.Bounds(), paint.Frame{Screen: b, P: paint.NewPalette(th, colorprofile.TrueColor), Now: cellstest.Now, Focused: true, Number: "2"})
					return b
				})
			})
		}
	}
}
