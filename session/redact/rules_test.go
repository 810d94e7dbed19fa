package redact

import (
	"regexp"
	"testing"
)

// Each expression is one, also those that no text of a test has tried.
func TestExpressions(*testing.T) {
	r := rules()
	for _, s := range r.shapes {
		if s.re(); s.back != nil {
			s.back()
		}
	}
	for _, e := range []func() *regexp.Regexp{r.secretName, r.assignment, r.header, r.cut, r.option, r.inWord, r.escaped, version} {
		e()
	}
}
