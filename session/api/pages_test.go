package api

import (
	"strings"
	"testing"
)

func TestParseWebPage(t *testing.T) {
	for text, want := range map[string]WebPage{
		"https://a.example":               {URL: "https://a.example", Host: "a.example"},
		"HTTPS://A.Example:8443/x?y=z#f":  {URL: "https://a.example:8443/x?y=z#f", Host: "a.example:8443"},
		"https://аpple.example/":          {URL: "https://xn--pple-43d.example/", Host: "xn--pple-43d.example"}, // a Cyrillic а
		"https://a.example/ä?q='$(id)'|x": {URL: "https://a.example/%C3%A4?q=%27$(id)%27%7Cx", Host: "a.example"},
		"http://localhost:3000/x":         {URL: "http://localhost:3000/x", Host: "localhost:3000", Port: 3000},
		"http://127.0.0.1":                {URL: "http://127.0.0.1", Host: "127.0.0.1", Port: 80},
		"http://[::1]:5173/":              {URL: "http://[::1]:5173/", Host: "[::1]:5173", Port: 5173},
		"https://localhost":               {URL: "https://localhost", Host: "localhost", Port: 443},
		"https://a.example/?redirect_uri=http%3A%2F%2Flocalhost%3A1455%2Fcb":  {URL: "https://a.example/?redirect_uri=http%3A%2F%2Flocalhost%3A1455%2Fcb", Host: "a.example", Port: 1455},
		"https://a.example/?redirect_uri=http%3A%2F%2Fb.example%3A1455%2Fcb":  {URL: "https://a.example/?redirect_uri=http%3A%2F%2Fb.example%3A1455%2Fcb", Host: "a.example"},
		"https://a.example/?redirect_uri=http%3A%2F%2Flocalhost%3A99999%2Fcb": {URL: "https://a.example/?redirect_uri=http%3A%2F%2Flocalhost%3A99999%2Fcb", Host: "a.example"},
	} {
		if got, err := ParseWebPage(text); err != nil || got != want {
			t.Errorf("%s is %+v, %v\n want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "a.example", "http://a.example", "http://localhost.evil.example", "javascript:alert(1)", "JavaScript://a.example/%0aalert(1)", "file:///etc/passwd", "file://a.example/x",
		"data:text/html,x", "https:a.example", "https:///a.example", "https://", "https://a.example@evil.example/", "https://me:pw@a.example", "https://a.example\\@evil.example/",
		"https://a.example/\x1b]52;c;x\a", "https://a.example/\n", "https://a.example/a b", "https://a.example/\u202egpj.exe", "https://a.example/\xff", "https://a%2eexample/",
		"https://[2001:db8::1%25%20(accounts.example)%20]/", "https://[fe80::1%25eth0]/", "https://127.1:8443/", "https://2130706433/", "https://a.0x7f/", "https://a.09./", "https://a.0x/", "https://1.2.3.99999999999999999999/",
		"https://localhost./", "https://a.localhost:8443/", "http://a.localhost:3000", "-https://a.example", "--help", "https://a_b\u3002example", "vscode://x", "http://localhost:0/", "https://" + strings.Repeat("a", 100<<10),
	} {
		if p, err := ParseWebPage(text); err == nil {
			t.Errorf("%.80q is %+v", text, p)
		}
	}
}

func FuzzParseWebPage(f *testing.F) {
	for _, s := range []string{"https://a.example/?x#y", "http://localhost:1", "https://аpple.example/ä"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseWebPage(text)
		if err != nil {
			return
		}
		if !strings.HasPrefix(p.URL, "https://"+p.Host) && !strings.HasPrefix(p.URL, "http://"+p.Host) || strings.ContainsFunc(p.URL, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%q is %+v", text, p)
		}
		if again, err := ParseWebPage(p.URL); err == nil && again.Host != p.Host {
			t.Errorf("%q is %+v and then %+v", text, p, again)
		}
	})
}
