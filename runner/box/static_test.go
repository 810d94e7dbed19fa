package box

import (
	"errors"
	"net"
	"os/user"
	"testing"
)

// TestNoNameService: a static glibc would load its name services here, and
// crash where they aren't of the glibc that was linked.
func TestNoNameService(t *testing.T) {
	var unknown user.UnknownUserIdError
	if u, err := user.LookupId("54321"); !errors.As(err, &unknown) {
		t.Errorf("user 54321: %v, %v", u, err)
	}
	if u, err := user.Lookup("nobody-of-this-name"); err == nil {
		t.Errorf("a user that there isn't: %v", u)
	}
	if g, err := user.LookupGroupId("54321"); err == nil {
		t.Errorf("group 54321: %v", g)
	}
	if _, err := net.DefaultResolver.LookupHost(t.Context(), "localhost"); err != nil {
		t.Errorf("localhost: %v", err)
	}
}
