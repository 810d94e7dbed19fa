package launch

import (
	"os/user"
	"strings"
	"testing"
)

// Where the environment names nobody, the account has a name.
func TestPerson(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Skip("this account has no name:", err)
	}
	t.Setenv("STEPBOX_AS", "  ")
	t.Setenv("LOGNAME", "")
	t.Setenv("USER", "")
	if got := person(); !strings.HasPrefix(got, me.Username) {
		t.Errorf("it is by %q, want %q", got, me.Username)
	}
	t.Setenv("STEPBOX_AS", " kim ")
	if got := person(); got != "kim" {
		t.Errorf("it is by %q", got)
	}
}
