package launch

import (
	"cmp"
	"os"
	"os/user"
	"strconv"
	"strings"
)

// person is what who runs this calls themselves: $STEPBOX_AS, else the login name
// with the terminal that they are at, since several may share an account. Nobody
// checks it: whoever has the account could say anything.
func person() string {
	if as := strings.TrimSpace(os.Getenv("STEPBOX_AS")); as != "" {
		return as
	}
	name := cmp.Or(os.Getenv("LOGNAME"), os.Getenv("USER"))
	if name == "" {
		name = "uid " + strconv.Itoa(os.Getuid())
		if u, err := user.Current(); err == nil && u.Username != "" {
			name = u.Username
		}
	}
	tty, err := os.Readlink("/proc/self/fd/0")
	if at, ok := strings.CutPrefix(tty, "/dev/"); ok && err == nil && (strings.HasPrefix(at, "pts/") || strings.HasPrefix(at, "tty")) {
		name += "@" + at
	}
	return name
}
