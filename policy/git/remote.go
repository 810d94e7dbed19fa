package git

import (
	"cmp"
	"strings"
)

// PushURL is where a repository's configuration has a push to a remote go, without user
// names and passwords; "" where it doesn't say. A remote may be named by its address. Which
// addresses are written otherwise (url.*.insteadOf) isn't looked at. The data may be hostile.
func PushURL(config []byte, remote string) string {
	if strings.ContainsAny(remote, ":/") {
		return anonymous(remote)
	}
	set := Settings(config)
	url := cmp.Or(set["remote."+remote+".pushurl"], set["remote."+remote+".url"])
	first, _, _ := strings.Cut(url, "\x00")
	return anonymous(first)
}
