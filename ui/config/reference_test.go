package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	_ "github.com/charmbracelet/x/exp/golden" // the flag -update

	"stepbox/session/e2e/must"
)

// The table of the documentation is the settings'; -update writes it.
func TestReference(t *testing.T) {
	var b strings.Builder
	b.WriteString("| setting | default | may be | |\n| --- | --- | --- | --- |\n")
	for _, s := range Settings {
		def := "none"
		if s.Default != "" {
			def = "`" + s.Default + "`"
		}
		about := s.About
		if len(s.over) > 0 {
			about += "; $" + strings.Join(s.over, ", $") + " goes over it"
		}
		if len(s.below) > 0 {
			about += "; unless it is set, $" + strings.Join(s.below, ", $") + " holds"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, def, s.Allowed, about)
	}
	const page, begin, end = "../../docs/configuration.md", "<!-- Generated from ui/config; do not edit. -->\n", "<!-- End of what is generated. -->\n"
	data, err := os.ReadFile(page)
	must.OK(t, err)
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("the page has no place for it")
	}
	want := before + begin + "\n" + b.String() + "\n" + end + after
	if flag.Lookup("update").Value.String() == "true" {
		must.OK(t, os.WriteFile(page, []byte(want), 0o644))
	} else if string(data) != want {
		t.Error("docs/configuration.md is old: go test ./ui/config -update writes it")
	}
}
