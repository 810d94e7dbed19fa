package session

import (
	"strings"
	"testing"

	"stepbox/session/sshagent"
)

// A user's name, or a namespace, is the sandbox's to choose: it neither says what the title
// of a question doesn't nor pushes that out.
func TestKeyTitles(t *testing.T) {
	t.Parallel()
	long := "git@github.com with your key me" + strings.Repeat(" ", 3000) + "x"
	for want, u := range map[string]sshagent.Use{
		"sign in to git@good.example with your key me":                              {Key: "me", User: "git", Host: "good.example"},
		`sign in as "git@github.com", to a host that isn't known, with your key me`: {Key: "me", User: "git@github.com"},
		`sign in as "", to a host that isn't known, with your key me`:               {Key: "me"},
	} {
		if got := useOfKey(u, 0).title; got != want {
			t.Errorf("%+v is asked as %q, want %q", u, got, want)
		}
	}
	for want, u := range map[string]sshagent.Use{
		`", to a host that isn't known, with your key me`: {Key: "me", User: long},
		`"@evil.example with your key me`:                 {Key: "me", User: long, Host: "evil.example"},
		`" with your key me`:                              {Key: "me", Namespace: long},
	} {
		if got := useOfKey(u, 0).title; !strings.HasSuffix(got, want) {
			t.Errorf("%.40q… is asked as %q, want %q at its end", u.User+u.Namespace, got, want)
		}
	}
}
