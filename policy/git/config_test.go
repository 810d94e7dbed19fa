package git

import (
	"slices"
	"strings"
	"testing"
)

// What a long value has beyond its bound is no setting.
func TestLongValue(t *testing.T) {
	text := "[a]\nlong = b\\\n" + strings.Repeat("b\\\n", 2*maxValue) + "b\nnext = c\n"
	var keys []string
	for _, e := range parseConfig([]byte(text)) {
		keys = append(keys, e.key)
	}
	if want := []string{"long", "next"}; !slices.Equal(keys, want) {
		t.Errorf("settings are %.10q of %d, want %q", keys, len(keys), want)
	}
}
