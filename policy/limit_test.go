package policy

import (
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

func TestLimitsAreRead(t *testing.T) {
	l, err := ParseLayer("your policy", "/p/policy.yaml", []byte(`network:
  - allow: [example.org:443, "*.example.org"]
    programs: [curl]
    why: it is ours
    limit: {sent: 50M, received: 1G, connections: 100/min, requests: 60/min, at: deny}
  - ask: example.com
    limit: {sent: 1K}
limits:
  memory: 2G
  sent: 500M
  connections: 600/min
  action:
    wall-time: 10m
    cpu-time: 90s
    memory: 1G
    files: 1000
    written: 500M
`))
	must.OK(t, err)
	p := asking().With(l)
	j := p.Connect(Destination{Name: "example.org", Port: 443, Protocol: TCP}, "/usr/bin/curl")
	if j.Verdict != Allow || len(j.Limits) != 4 || j.Limits[0].Amount != 50<<20 || j.Limits[0].At != Deny || j.Limits[2].Amount != 100 {
		t.Errorf("judged %+v", j)
	}
	if want := "allow example.org:443 for curl, at most sent 50M and received 1G and connections 100/min and requests 60/min: it is ours"; j.Rule != want {
		t.Errorf("its rule is %q", j.Rule)
	}
	if want := "your policy: allow example.org:443 for curl"; j.Budget != want {
		t.Errorf("its budget is %q", j.Budget)
	}
	if j := p.Connect(Destination{Name: "example.com", Port: 1, Protocol: TCP}, ""); j.Verdict != Ask || len(j.Limits) != 1 || j.Limits[0].At != Ask {
		t.Errorf("judged %+v", j)
	}
	var got []string
	for _, l := range p.Limits() {
		got = append(got, l.From())
	}
	want := `memory 2G (your policy, /p/policy.yaml:9)
sent 500M (your policy, /p/policy.yaml:10)
connections 600/min (your policy, /p/policy.yaml:11)
wall-time 10m of one action (your policy, /p/policy.yaml:13)
cpu-time 90s of one action (your policy, /p/policy.yaml:14)
memory 1G of one action (your policy, /p/policy.yaml:15)
files 1000 of one action (your policy, /p/policy.yaml:16)
written 500M of one action (your policy, /p/policy.yaml:17)`
	if strings.Join(got, "\n") != want {
		t.Errorf("limits:\n%s", strings.Join(got, "\n"))
	}
}

func TestTheStricterLimitWins(t *testing.T) {
	layer := func(name, text string) Layer {
		l, err := ParseLayer(name, "", []byte("limits: "+text+"\n"))
		must.OK(t, err)
		return l
	}
	for _, c := range []struct {
		of   []Layer
		want string
		at   Verdict
	}{
		{[]Layer{layer("a", "{sent: 5M, at: deny}"), layer("b", "{sent: 6M}")}, "a", Deny},
		{[]Layer{layer("a", "{sent: 5M}"), layer("b", "{sent: 4M, at: deny}")}, "b", Deny},
		{[]Layer{layer("a", "{sent: 5M}"), layer("b", "{sent: 5120K, at: deny}")}, "b", Deny},
		{[]Layer{layer("a", "{sent: 5120K, at: deny}"), layer("b", "{sent: 5M}")}, "a", Deny},
		{[]Layer{layer("a", "{sent: 5M}"), layer("b", "{received: 4M}").Tightening()}, "a", Ask},
	} {
		if l, ok := asking().With(c.of...).Limit(LimitSent); !ok || l.Layer != c.want || l.At != c.at {
			t.Errorf("%+v: %+v", c.of, l)
		}
	}
	if l, ok := asking().Limit(LimitSent); ok {
		t.Errorf("nobody limits it: %+v", l)
	}
}

func TestBadLimits(t *testing.T) {
	for text, want := range map[string]string{
		"limits: {sent: much}":                                     `1:16: sent: "much" is no size`,
		"limits: {connections: 100}":                               `1:23: connections: "100" says not how often`,
		"limits: {connections: 0/min}":                             `says not how often`,
		"limits: {connections: 5/s}":                               `says not how often`,
		"limits: {memory: 1M}":                                     `too little for a sandbox: use at least 16M`,
		"limits: {cpus: 0.001}":                                    `no share of processors`,
		"limits: {at: kill}":                                       `1:14: at a limit it is asked or ends`,
		"limits: {action: {wall: 1m}}":                             `there is no key "wall" in "action"`,
		"limits: {action: 5m}":                                     `keys are expected here`,
		"network: [{deny: example.org, limit: {sent: 1M}}]":        `a rule that denies has no limit`,
		"network: [{allow: example.org, limit: {bytes: 1M}}]":      `there is no key "bytes" in "limit"`,
		"network: [{allow: example.org, limit: {sent: 1, at: x}}]": `1:53: at a limit it is asked or ends`,
		"network: [{allow: example.org, limit: {sent: -1}}]":       `is no size`,
		"network: [{allow: example.org, limit: {sent: 9e99}}]":     `is no size`,
	} {
		_, err := ParseLayer("", "f", []byte(text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
