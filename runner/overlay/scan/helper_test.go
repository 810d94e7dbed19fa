package scan

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"stepbox/runner/overlay/manifest"
)

func scanWith(t *testing.T, s *Scanner, o Options) (*manifest.Manifest, Stats) {
	t.Helper()
	m, st, err := s.Scan(bg, o)
	must(t, err)
	return m, st
}

func moved(t *testing.T, s *Scanner) bool {
	t.Helper()
	yes, err := s.Moved(bg, Options{})
	must(t, err)
	return yes
}

func explainManifests(a, b *manifest.Manifest) string {
	x, y := maps.Collect(a.All()), maps.Collect(b.All())
	var out []string
	for p, e := range x {
		if y[p] == nil || fmt.Sprintf("%+v", *e) != fmt.Sprintf("%+v", *y[p]) {
			out = append(out, fmt.Sprintf("%q: %+v | %+v", p, e, y[p]))
		}
	}
	for p, e := range y {
		if x[p] == nil {
			out = append(out, fmt.Sprintf("%q: nothing | %+v", p, e))
		}
	}
	return strings.Join(out, "\n")
}
