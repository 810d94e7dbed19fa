package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"stepbox/runner"
	"stepbox/store"
)

// A full disk is told as that: what else a host lacks then isn't looked for.
func TestWhyASessionDidNotStart(t *testing.T) {
	t.Setenv("STEPBOX_DATA", "/srv/stepbox")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	for _, c := range []struct {
		err  error
		want string
		host bool
		code int
	}{
		{fmt.Errorf("cannot note the session: %w", &fs.PathError{Op: "write", Path: "/srv/stepbox/live/x", Err: syscall.ENOSPC}),
			`make room on the filesystem of "/srv/stepbox", or set STEPBOX_DATA`, false, 125},
		{fmt.Errorf("cannot say what to clean up: %w", &fs.PathError{Op: "write", Path: "/run/user/7/stepbox/x/guard", Err: syscall.ENOSPC}),
			`make room on the filesystem of "/run/user/7", or set XDG_RUNTIME_DIR`, false, 125},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}, "make room", false, 125},
		{fmt.Errorf("cannot open the record: %w: make room", store.ErrFull), "make room", false, 125},
		{&fs.PathError{Op: "fork/exec", Path: "/proc/self/exe", Err: syscall.ENOSPC}, "fork/exec", true, 125}, // user namespaces
		{errors.New("no user namespaces"), "no user namespaces", true, 125},
		{&runner.StartError{Code: 127}, "", false, 127},
		{&Error{Code: 3, Message: "refused"}, "refused", false, 3},
	} {
		got := whyNot(c.err)
		if !strings.Contains(got.Message, c.want) || got.Host != c.host || got.Code != c.code {
			t.Errorf("%v is told as %+v", c.err, *got)
		}
	}
}
