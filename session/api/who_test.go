package api

import (
	"net/http"
	"testing"
)

// Nobody's name is Stepbox's own word for who decided.
func TestFrom(t *testing.T) {
	for as, want := range map[string]string{"": "", "  ": "", "kim": "kim", "kim@pts/3": "kim@pts/3", "rule": `"rule"`, " rule ": `"rule"`} {
		q := &http.Request{Header: http.Header{asHeader: {as}}}
		if got := From(q); got != want {
			t.Errorf("%q is known as %q, want %q", as, got, want)
		}
	}
}
