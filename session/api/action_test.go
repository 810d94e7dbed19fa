package api

import (
	"strings"
	"testing"
)

func TestNumbered(t *testing.T) {
	var many []int
	for i := range 33 {
		many = append(many, i)
	}
	for want, ns := range map[string][]int{"": nil, "#7": {7}, "#7 and #8": {7, 8}, "#7, #8 and #9": {7, 8, 9}} {
		if got := Numbered(ns); got != want {
			t.Errorf("%v is %q", ns, got)
		}
	}
	if got := Numbered(many); !strings.HasSuffix(got, "#28, #29 and 3 more") {
		t.Errorf("many are %q", got)
	}
}
