package ui

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// refused are words for which there is another, and where they stand nevertheless.
var refused = []struct {
	words *regexp.Regexp
	say   string
	but   []string
}{
	{regexp.MustCompile(`(?i)\b(take|takes|taken|taking|took)( it| them| this| that| all| these)? back\b`), "roll back; undo of an apply, forget of a rule", []string{
		"ui/keys/arrange.go", // names that keys had
		"session/project",    // how far an undoing is, for programs
	}},
	{regexp.MustCompile(`(?i)(^|[^-])\bactions? %d\b`), "#%d", []string{"session/lifecycle.go", "session/backtest"}},
	{regexp.MustCompile(`(?i)\b(un-?freez|thaw(s|ed|ing)\b)`), "go on", []string{"runner"}},
	{regexp.MustCompile(`(?i)\bcoming (soon|later)\b|\b(rules|keys|this) comes? later\b|\bnot yet (supported|implemented)`), "nothing before it works", nil},
	{regexp.MustCompile(`(?i)\b(whitelist|blacklist|denylist)`), "allow, always, deny", nil},
}

// What people read says one word for one thing: in the program's texts and in the documentation.
func TestOneWordForOneThing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the sources say the same under the race detector")
	}
	check := func(file, where, text string) {
		for _, r := range refused {
			if found := r.words.FindString(text); found != "" && !slices.ContainsFunc(r.but, func(p string) bool { return strings.HasPrefix(file, p) }) {
				t.Errorf("%s%s says %q: say %s", file, where, found, r.say)
			}
		}
	}
	for _, root := range []string{"main.go", "ui", "session", "policy", "store", "runner", "docs", "README.md"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(path string, d fs.DirEntry, err error) error {
			file, _ := filepath.Rel("..", path)
			switch {
			case err != nil || d.IsDir() || strings.Contains(path, "testdata") || strings.HasSuffix(path, "_test.go"):
				return err
			case strings.HasSuffix(path, ".md") && !strings.HasPrefix(file, "docs/adr"), strings.HasSuffix(path, "agent.sh"):
				text, err := os.ReadFile(path)
				for i, line := range strings.Split(string(text), "\n") {
					check(file, ":"+strconv.Itoa(i+1), line)
				}
				return err
			case strings.HasSuffix(path, ".go"):
				return literals(path, func(line int, text string) { check(file, ":"+strconv.Itoa(line), text) })
			}
			return nil
		})
		must.OK(t, err)
	}
	for _, r := range refused {
		if r.words.FindString("take it back, action %d, thawed, rules come later, whitelisted") == "" {
			t.Errorf("%v finds nothing", r.words)
		}
	}
}

// literals gives the string literals of a Go file.
func literals(path string, give func(line int, text string)) error {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil {
				give(set.Position(l.Pos()).Line, text)
			}
		}
		return true
	})
	return nil
}
