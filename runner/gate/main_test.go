package gate

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// roleEnv makes the test binary play a part in the sandbox instead of running
// the tests.
const roleEnv = "STEPBOX_GATE_TEST_ROLE"

// roles are the parts, by name. They get the arguments that follow "--".
var roles = map[string]func(args []string){}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		play, ok := roles[role]
		if !ok {
			fmt.Fprintf(os.Stderr, "no role %q\n", role)
			os.Exit(99)
		}
		play(os.Args[1:])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
