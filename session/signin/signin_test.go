package signin

import (
	"strings"
	"testing"
)

const real = "https://auth.example/oauth/authorize?client_id=a&redirect_uri=http%3A%2F%2Flocalhost%3A1455%2Fauth%2Fcallback&state=x"

func TestFind(t *testing.T) {
	wrapped := []string{"Open this:", real[:40], real[40:80], real[80:], "", "Waiting"}
	for name, c := range map[string]struct {
		rows []string
		host string
		port int
	}{
		"a line":            {[]string{"Go to " + real, ""}, "auth.example", 1455},
		"wrapped":           {wrapped, "auth.example", 1455},
		"by number":         {[]string{strings.Replace(real, "localhost", "127.0.0.1", 1)}, "auth.example", 1455},
		"the last":          {[]string{real, strings.NewReplacer("auth.example", "b.example", "1455", "1").Replace(real)}, "b.example", 1},
		"none":              {[]string{"https://docs.example/?q=http://localhost:1455"}, "", 0},
		"http":              {[]string{strings.Replace(real, "https", "http", 1)}, "", 0},
		"another's machine": {[]string{strings.Replace(real, "localhost", "evil.example", 1)}, "", 0},
		"a private address": {[]string{strings.Replace(real, "localhost", "192.168.1.1", 1)}, "", 0},
		"no port":           {[]string{strings.Replace(real, "%3A1455", "", 1)}, "", 0},
		"a port too large":  {[]string{strings.Replace(real, "1455", "145500", 1)}, "", 0},
		"as someone else":   {[]string{strings.Replace(real, "auth.", "you@auth.", 1)}, "", 0},
		"a name too long":   {[]string{strings.Replace(real, "auth.example", "auth.example."+strings.Repeat("x.", 40)+"evil.example", 1)}, "", 0},
		"in a frame": {[]string{
			"╭──────────────────────────────────────────────╮",
			"│ Browser didn't open? Use the address below   │",
			"│                                              │",
			"│ " + real[:44] + " │", "│ " + real[44:88] + " │", "│ " + real[88:] + strings.Repeat(" ", 133-len(real)) + "│",
			"│                                              │",
			"╰──────────────────────────────────────────────╯ and more than that beside it",
		}, "auth.example", 1455},
		"indented":    {[]string{"Open:", "  " + real[:50], "  " + real[50:100], "  " + real[100:]}, "auth.example", 1455},
		"beside text": {[]string{"  " + real[:60], "Press Enter"}, "", 0},
		"quoted":      {[]string{`"` + real + `"`}, "auth.example", 1455},
		"too long":    {[]string{real + strings.Repeat("x", 4096)}, "", 0},
	} {
		if p := Find(c.rows); p.Host != c.host || p.Port != c.port {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add("Go to "+real, "")
	f.Add(real[:40], real[40:])
	f.Fuzz(func(t *testing.T, a, b string) {
		p := Find([]string{a, b})
		if p.Port != 0 && (len(p.URL) > 3*4096 || !strings.HasPrefix(p.URL, "https://") || strings.ContainsFunc(p.URL, func(r rune) bool { return r <= ' ' || r > '~' })) {
			t.Errorf("%+v", p)
		}
	})
}
