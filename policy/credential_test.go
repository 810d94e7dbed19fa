package policy

import (
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// Credentials are read strictly, and what is wrong says where.
func TestCredentials(t *testing.T) {
	for _, c := range []struct{ entry, want string }{
		{"known: anthropic", ""},
		{"known: github\n    from: {command: [gh, auth, token]}", ""},
		{"host: api.example\n    bearer: true\n    from: {env: KEY}", ""},
		{"host: api.example:8443\n    header: x-api-key\n    placeholder: [A, B]\n    prefix: sk-\n    methods: [GET]\n    paths: ['/v1/**']\n    websocket: true\n    from: {file: ~/k}", ""},
		{"known: none", "3:12: no credential \"none\" is known: there are anthropic, openai,"},
		{"known: anthropic\n    host: evil.example", "3:5: of a known credential only from"},
		{"known: anthropic\n    methods: [GET]", "3:5: of a known credential only from"},
		{"bearer: true\n    from: {env: KEY}", "3:5: a credential says for which host"},
		{"host: api.example\n    bearer: true", "3:5: a credential says for which host"},
		{"host: api.example\n    from: {env: KEY}", "3:5: one of header, bearer"},
		{"host: api.example\n    bearer: true\n    query: key\n    from: {env: KEY}", "3:5: one of header, bearer"},
		{"host: '*.example.org'\n    bearer: true\n    from: {env: KEY}", "3:12: cannot use host"},
		{"host: 192.0.2.1\n    bearer: true\n    from: {env: KEY}", "3:11: cannot use host"},
		{"host: host.stepbox.internal:80\n    bearer: true\n    from: {env: KEY}", "3:11: cannot use host"},
		{"host: a.example:1-2\n    bearer: true\n    from: {env: KEY}", "3:11: cannot use host"},
		{"host: a.example/udp\n    bearer: true\n    from: {env: KEY}", "3:11: cannot use host"},
		{"host: https://a.example\n    bearer: true\n    from: {env: KEY}", "3:11: cannot use host"},
		{"host: a.example\n    header: 'x y'\n    from: {env: KEY}", "4:14: \"x y\" can't be used here"},
		{"host: a.example\n    basic: 'a:b'\n    from: {env: KEY}", "can't be used here"},
		{"host: a.example\n    bearer: true\n    placeholder: PATH\n    from: {env: KEY}", "5:18: PATH is the sandbox's own"},
		{"host: a.example\n    bearer: true\n    methods: CONNECT\n    from: {env: KEY}", "no method"},
		{"host: a.example\n    bearer: true\n    methods: get\n    from: {env: KEY}", "no method"},
		{"host: a.example\n    bearer: true\n    paths: v1\n    from: {env: KEY}", "no pattern of paths"},
		{"host: a.example\n    bearer: true\n    paths: '/[a'\n    from: {env: KEY}", "no pattern of paths"},
		{"host: a.example\n    bearer: true\n    from: {file: key}", "5:18: a file is named in full"},
		{"host: a.example\n    bearer: true\n    from: {env: A, file: /k}", "a credential comes from one of"},
		{"host: a.example\n    bearer: true\n    from: {command: []}", "a credential comes from one of"},
		{"host: a.example\n    bearer: true\n    from: {secret: x}", "there is no key \"secret\""},
		{"host: a.example\n    bearer: true\n    value: x\n    from: {env: A}", "there is no key \"value\""},
		{"known: openai\n  - host: api.openai.com\n    bearer: true\n    from: {env: A}", "4:5: api.openai.com has a credential already"},
	} {
		l, err := ParseLayer("your policy", "f.yaml", []byte("# rules\ncredentials:\n  - "+c.entry+"\n"))
		switch {
		case c.want == "" && (err != nil || len(l.Credentials) == 0):
			t.Errorf("%s: %v", c.entry, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", c.entry, err, c.want)
		}
	}
}

// A credential lets its host through, but where a rule denies it.
func TestCredentialAllows(t *testing.T) {
	read := func(text string) *Policy {
		l, err := ParseLayer("your policy", "f.yaml", []byte(text))
		must.OK(t, err)
		return asking().With(l)
	}
	const entry = "credentials: [{host: API.Example.:8443, bearer: true, from: {env: KEY}}]\n"
	to := Destination{Name: "api.example", Port: 8443, Protocol: TCP}
	if j := read(entry).Connect(to, ""); j.Verdict != Allow || !strings.Contains(j.From(), "the credential api.example is for it (your policy, line 1)") {
		t.Errorf("got %+v", j)
	}
	for _, other := range []Destination{{Name: "api.example", Port: 443, Protocol: TCP}, {Name: "api.example", Port: 8443, Protocol: UDP}, {Name: "x.api.example", Port: 8443, Protocol: TCP}} {
		if j := read(entry).Connect(other, ""); j.Verdict != Ask {
			t.Errorf("%s: got %+v", other, j)
		}
	}
	if j := read(entry+"network: [{deny: api.example:8443}]").Connect(to, ""); j.Verdict != Deny {
		t.Errorf("got %+v", j)
	}
}

// Those of well-known services are sound, and their placeholders pass for them.
func TestKnownCredentials(t *testing.T) {
	for _, c := range known() {
		if !strings.HasPrefix(c.Placeholder(), c.Prefix) || strings.Contains(c.Placeholder(), " ") || c.Where != (Where{}) || len(c.Variables) == 0 {
			t.Errorf("%+v", c)
		}
	}
	if all, err := KnownCredential("github"); err != nil || len(all) != 2 {
		t.Errorf("got %+v, %v", all, err)
	}
}
