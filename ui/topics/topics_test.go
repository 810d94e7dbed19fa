package topics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	_ "github.com/charmbracelet/x/exp/golden" // the flag -update

	"stepbox/session/e2e/must"
	"stepbox/ui/keys"
)

// Each page is whole, fits, and names keys that there are.
func TestPages(t *testing.T) {
	files, err := pages.ReadDir("pages")
	if err != nil || len(files) != len(All) {
		t.Errorf("there are %d files, and %d topics (%v)", len(files), len(All), err)
	}
	for _, x := range All {
		text := x.Text()
		if len(text) < 200 || strings.Contains(text, "{{") || strings.Contains(text, "template:") || strings.Contains(text, " is called ") {
			t.Errorf("%s reads\n%s", x.Name, text)
		}
		for _, line := range strings.Split(text, "\n") {
			if utf8.RuneCountInString(line) > 84 || strings.HasSuffix(line, " ") {
				t.Errorf("%s: a line doesn't fit: %q", x.Name, line)
			}
		}
		if got, ok := Find(x.Name); !ok || got != x {
			t.Errorf("%s isn't found", x.Name)
		}
	}
}

// A person's own keys are those that the pages name.
func TestOwnKeys(t *testing.T) { // not beside others: keys are the process's
	a, _, _ := keys.Arrange("ctrl+g", []keys.Change{{Name: "approve", Keys: []string{"f5"}}})
	keys.Use(a)
	defer keys.Use(keys.Usual())
	x, _ := Find("deciding")
	if text := x.Text(); !strings.Contains(text, "  f5    approve once") || !strings.Contains(text, "ctrl+g 4") || strings.Contains(text, "ctrl+]") {
		t.Error(text)
	}
}

// The page of the documentation is these; -update writes it.
func TestDocumentation(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Help\n\n<!-- Generated from ui/topics; do not edit. -->\n\n`stepbox help TOPIC` prints these pages, and `?` in the screens shows them.\n")
	for _, x := range All {
		fmt.Fprintf(&b, "\n## %s: %s\n\n```\n%s```\n", x.Name, x.Title, x.Text())
	}
	const page = "../../docs/help.md"
	if flag.Lookup("update").Value.String() == "true" {
		must.OK(t, os.WriteFile(page, []byte(b.String()), 0o644))
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != b.String() {
		t.Errorf("docs/help.md is old (%v): go test ./ui/topics -update writes it", err)
	}
}
