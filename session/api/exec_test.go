package api

import "testing"

func TestPattern(t *testing.T) {
	for want, a := range map[string]Attempt{
		"example.org:443":            {Protocol: "tcp", Name: "example.org", Address: "198.18.0.1", Port: 443},
		"[2001:db8::1]:22":           {Protocol: "tcp", Address: "2001:db8::1", Port: 22},
		"example.org:443/udp":        {Protocol: "udp", Name: "example.org", Address: "198.18.0.1", Port: 443},
		"2001:db8::1/icmp":           {Protocol: "icmp", Address: "2001:db8::1"},
		"host.stepbox.internal:5432": {Protocol: "tcp", Name: "host.stepbox.internal", Port: 5432},
		"":                           {Protocol: "multicast", Address: "224.0.0.1", Port: 5353},
	} {
		if got := a.Pattern(); got != want {
			t.Errorf("%s %s: %q, want %q", a.Protocol, a.Host(), got, want)
		}
	}
}
