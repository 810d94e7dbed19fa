package rules

import (
	"strings"
	"testing"

	"stepbox/policy"
	"stepbox/policy/policytest"
	"stepbox/session/api"
	"stepbox/session/e2e/must"
)

// A rule that never decides is told apart from one that does, if only in part.
func TestBeaten(t *testing.T) {
	user, err := policytest.ParseLayer("your policy", "/c/policy.yaml", []byte(`
network:
  - deny: ["*.example.org", 192.0.2.0/24, "a.example.net:443"]
  - deny: b.example.net
    programs: curl
  - deny: c.example.net/udp
commands:
  - deny: npm publish
  - deny: git push ** evil
`))
	must.OK(t, err)
	project, err := policytest.ParseLayer("the project's policy", "/p/.stepbox.yaml", []byte("network: [{ask: d.example.net}]\n"))
	must.OK(t, err)
	for _, c := range []struct{ host, command, want string }{
		{host: "x.example.org", want: "deny *.example.org (your policy, /c/policy.yaml:3)"},
		{host: "x.example.org:443", want: "deny *.example.org"},
		{host: "*.x.example.org", want: "deny *.example.org"},
		{host: "*.example.org:1-9", want: "deny *.example.org"},
		{host: "example.org"},
		{host: "*"},
		{host: "192.0.2.7:22", want: "deny 192.0.2.0/24"},
		{host: "203.0.113.7"},
		{host: "a.example.net"}, // at other ports it holds
		{host: "a.example.net:443", want: "deny a.example.net:443"},
		{host: "b.example.net"}, // for other programs
		{host: "c.example.net"},
		{host: "c.example.net/udp", want: "deny c.example.net/udp"},
		{host: "c.example.net/any"},
		{host: "d.example.net", want: "ask d.example.net (the project's policy, /p/.stepbox.yaml:1)"},
		{command: "npm publish *", want: "deny npm publish (your policy, /c/policy.yaml:8)"},
		{command: "npm publish --dry-run", want: "deny npm publish"},
		{command: "npm *"},
		{command: "git push *"},
		{command: "git push origin evil", want: "deny git push ** evil"},
		{command: "git push <wide>"},
	} {
		r := api.Rule{Verdict: api.Allow, Host: c.host, Command: c.command, For: api.ExtentAlways}
		own, err := Layer("your policy", []api.Rule{r})
		if err != nil && c.command != "git push <wide>" {
			t.Fatal(err)
		}
		p := policy.Of(own, user, project)
		got := Beaten(p, r, "/p", "/h")
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s%s: beaten by %q, want %q", c.host, c.command, got, c.want)
		}
	}
}
