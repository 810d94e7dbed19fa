package judge

import (
	"fmt"
	"strings"
	"testing"

	"stepbox/runner/gate"
)

// What is left out of a program's variables is said to be missing.
func TestDiffering(t *testing.T) {
	own := []string{"PATH=/bin", "HOME=/h"}
	many := append([]string{}, own...)
	for i := range maxEnv + 1 {
		many = append(many, fmt.Sprintf("A%d=1", i))
	}
	for name, c := range map[string]struct {
		env   []string
		first string
		whole bool
	}{
		"the same":  {own, "", true},
		"another":   {append([]string{"LD_PRELOAD=x"}, own...), "LD_PRELOAD=x", true},
		"never cut": {append(many[:maxEnv+2:maxEnv+2], "LD_PRELOAD="+strings.Repeat("x", maxValue)), "A0=1", true},
		"too many":  {many, "A0=1", false},
		"too long":  {[]string{"A=" + strings.Repeat("x", maxValue)}, "A=x", false},
	} {
		j := &Judge{Env: own}
		foreign, _ := j.foreign(&gate.Exec{Env: c.env}, j.looks())
		list, whole := differing(foreign)
		if whole != c.whole || c.first == "" && len(list) > 0 || c.first != "" && (len(list) == 0 || !strings.HasPrefix(list[0], c.first)) {
			t.Errorf("%s: whole %v, %d shown", name, whole, len(list))
		}
	}
}
