package bring

import (
	"strings"
	"testing"
	"time"
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
	for kind, text := range map[string]string{
		".json": `{"a":` + strings.Repeat(`{"b":`, maxDeep) + "1" + strings.Repeat("}", maxDeep+1), ".toml": strings.Repeat("a.", maxSettings/2-4) + "b=1",
		".yml": strings.Repeat("[", maxYAML), ".yaml": strings.Repeat("- ", maxYAML/2),
	} {
		at := time.Now()
		if _, err := decode(kind, []byte(text)); err == nil || time.Since(at) > 3*time.Second {
			t.Errorf("%s %.10s… is %v, in %s", kind, text, err, time.Since(at))
		}
	}
	if v, err := decode(".json", []byte("// c\n{\"a\": [1,],}")); err != nil || v == nil {
		t.Errorf("got %v, %v", v, err)
	}
}
