package bring

import (
	"strings"
	"testing"
)

// Settings that are nested without end, as an agent can leave them in its home, are refused
// and don't end the supervisor.
func TestDecodeDeep(t *testing.T) {
	for _, text := range []string{
		`{"a":` + strings.Repeat("[", maxHomes-10),
		strings.Repeat("[", maxHomes/2) + strings.Repeat("]", maxHomes/2),
		"// c\n" + strings.Repeat(`["]",`, maxHomes/5-10),
		strings.Repeat("[", maxSettings),
	} {
		if _, err := decode(".json", []byte(text)); err == nil {
			t.Errorf("%.10s… is taken", text)
		}
	}
	if v, err := decode(".json", []byte("// c\n{\"a\": [1,],}")); err != nil || v == nil {
		t.Errorf("got %v, %v", v, err)
	}
}
