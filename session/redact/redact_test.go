package redact_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
	"stepbox/session/redact"
)

// token is made here, so that nobody's scanner takes this file for a leak.
func token(prefix string, n int) string { return prefix + strings.Repeat("aB3x", n/4+1)[:n] }

func TestText(t *testing.T) {
	key := "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\nAAAA\n-----END OPENSSH " + "PRIVATE KEY-----"
	begun := "-----BEGIN " + "PRIVATE KEY-----"
	for in, want := range map[string]string{
		begun + "\nDEK-Info: AES-256-CBC,0A\n\nQUJD\n" + strings.Replace(begun, "BEGIN", "END", 1): "[redacted: private key]",
		begun + strings.Repeat("\n-- x\n"+begun, 1<<15):                                            "[redacted: private key]" + strings.Repeat("-- x\n[redacted: private key]", 1<<15),
		"git clone https://u:" + "hunter2@host/x":                                                  "git clone https://u:[redacted: password in an address]@host/x",
		"x " + token("ghp_", 36) + " y":                                                            "x [redacted: GitHub token] y",
		token("sk-ant-", 40):                                                                       "[redacted: Anthropic key]",
		"curl -H 'Authorization: Bearer " + token("", 20) + "'":                                    "curl -H 'Authorization: Bearer [redacted: Authorization header]'",
		"export DB_PASSWORD=correcthorse":                                                          "export DB_PASSWORD=[redacted: value of a secret setting]",
		`{"password": "hunter22"}`:                                                                 `{"password": "[redacted: value of a secret setting]"}`,
		"tool --password hunter22 x":                                                               "tool --password [redacted: value of a secret setting] x",
		key + "\nafter":                                                                            "[redacted: private key]\nafter",
		"mine is opensesame!":                                                                      "mine is [redacted: value of $MY_TOKEN]",
		"OpenSesame!.example.org":                                                                  "[redacted: value of $MY_TOKEN].example.org",
		"curl -s -u me:" + "hunter2 example.org":                                                   "curl -s -u me:[redacted: password on a command line] example.org",
		"curl example.org --user 'me:" + "hunter2'":                                                "curl example.org --user 'me:[redacted: password on a command line]'",
		"mysql -u root -p" + "hunter2 shop":                                                        "mysql -u root -p[redacted: password on a command line] shop",
		"sshpass -p " + "hunter2 ssh example.org":                                                  "sshpass -p [redacted: password on a command line] ssh example.org",
		"redis-cli -h example.org -a " + "hunter2":                                                 "redis-cli -h example.org -a [redacted: password on a command line]",
		`printf "a\n` + token("ghp_", 36) + `"`:                                                    `printf "a\n[redacted: GitHub token]"`,
		`?a=b%3D` + token("hf_", 36) + `\n`:                                                        `?a=b%3D[redacted: Hugging Face token]\n`,
		"d/x" + token("ghp_", 36) + "/a":                                                           "d/x[redacted: GitHub token]/a",
		"echo " + token("ghp_", 12) + "… and 25 bytes more":                                        "echo [redacted: GitHub token]",
		"@@ -5,3 +5,3 @@\n " + token("", 64) + "\n " + token("", 20) + "==\n -----END OPENSSH " + "PRIVATE KEY-----\n-# May": "@@ -5,3 +5,3 @@\n[redacted: private key]\n-# May",
		`{"key": "` + token("", 64) + `\n` + token("", 20) + `\n-----END RSA ` + `PRIVATE KEY-----\n"}`:                      `{"key": "[redacted: private key]\n"}`,
		`DB_PASSWORD="k;C13xZ2(pq8" x`:                   `DB_PASSWORD="[redacted: value of a secret setting]" x`,
		"password: 'p@$C14xw0rd123' x":                   "password: '[redacted: value of a secret setting]' x",
		"DB_PASSWORD=Tr0ub4dor&C15x3xyz x":               "DB_PASSWORD=[redacted: value of a secret setting] x",
		`{"password": "C35x has spaces 99", "a": 1}`:     `{"password": "[redacted: value of a secret setting]", "a": 1}`,
		`{\"password\": \"k;C13xZ2(pq8\"}`:               `{\"password\": \"[redacted: value of a secret setting]\"}`,
		"tool --password 'C74x pass with spaces' x":      "tool --password '[redacted: value of a secret setting]' x",
		"RAILS_MASTER_KEY=abcdefghij x":                  "RAILS_MASTER_KEY=[redacted: value of a secret setting] x",
		"MYSQL_PWD=abcdefghij":                           "MYSQL_PWD=[redacted: value of a secret setting]",
		`curl -b "sid=abcdefghij" example.org`:           `curl -b "sid=[redacted: password on a command line]" example.org`,
		`Cookie: a="abcdefghij"; b=c`:                    "Cookie: [redacted: cookie]",
		"Set-Cookie: sid=abcdefghij; Path=/\r\nx":        "Set-Cookie: [redacted: cookie]\r\nx",
		"postgres://u:p@hunter2@example.org/x":           "postgres://u:[redacted: password in an address]@example.org/x",
		"machine example.org login me password hunter22": "machine example.org login me password [redacted: value of a secret setting]",

		// What programs and people write of secrets isn't one.
		"func login(token: string)":    "func login(token: string)",
		"apiKey := loadKey(password)":  "apiKey := loadKey(password)",
		"const tokens = parse(source)": "const tokens = parse(source)",
		"https://example.org/a:b@c":    "https://example.org/a:b@c",
		// Packages have such names in lock files.
		"  cookie: 0.7.1": "  cookie: 0.7.1",
		"cookie: ^1.0.0":  "cookie: ^1.0.0",
		"      cookie: registry.example.org/a/cookie": "      cookie: registry.example.org/a/cookie",
		`"cookie": "^0.7.1", "csrf-token": "~1.22.3"`: `"cookie": "^0.7.1", "csrf-token": "~1.22.3"`,
		`"@scope/api-key": "10.2.33-beta.1",`:         `"@scope/api-key": "10.2.33-beta.1",`,
		"tough-cookie@^4.0.0: {}":                     "tough-cookie@^4.0.0: {}",
		"token=$TOKEN passwd=${SECRET}":               "token=$TOKEN passwd=${SECRET}",
		"PWD=/home/me OLDPWD=/home/me/src":            "PWD=/home/me OLDPWD=/home/me/src",
		"curl -b cookies.txt example.org":             "curl -b cookies.txt example.org",
		"task-list-of-all-that-is-to-do-this-month":   "task-list-of-all-that-is-to-do-this-month",
		"primary_key = some_identifier":               "primary_key = some_identifier",
		"the keyboard: qwertz":                        "the keyboard: qwertz",
		"docker run -p 8080:80 x":                     "docker run -p 8080:80 x",
		"cd mysql && mkdir -p shop":                   "cd mysql && mkdir -p shop",
		"mysql -u root -p shop":                       "mysql -u root -p shop",
		"chown -u a:b; sort -u x:y":                   "chown -u a:b; sort -u x:y",
	} {
		r := redact.New([]string{"MY_TOKEN=opensesame!", "MY_PAGER=less -R -F", "SHORT_TOKEN=yes"})
		if got := r.Text(in, "here"); got != want {
			t.Errorf("%q became\n%q, not\n%q", in, got, want)
		}
		if again := redact.New(nil); again.Text(want, "") != want {
			t.Errorf("%q is redacted again: %v", want, again.Found())
		}
		if found := r.Found(); (len(found) == 1 && found[0].Count == strings.Count(want, "[redacted: ") && found[0].Where == "here") != (in != want) {
			t.Errorf("%q: counted %v", in, found)
		}
	}
}

func TestLines(t *testing.T) {
	r := redact.New(nil)
	got := r.Lines([]string{"a", "k: -----BEGIN RSA " + "PRIVATE KEY-----", "QUJD", "-----END RSA " + "PRIVATE KEY----- x", "b"}, "a file")
	want := []string{"a", "k: [redacted: private key]", "", " x", "b"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q", got)
	}
}

func TestJSON(t *testing.T) {
	secret := token("glpat-", 20)
	doc := `{"n":1.50,"argv":["tool","--password","hunter22","a\"b ` + secret + `"],"api_key":"qwertzuiop","x":"<&>","of":["curl","-u","me:` + `hunter2","example.org"],"title":"--token","program":"x"}`
	r := redact.New(nil)
	got, same := r.JSON([]byte(doc), "an event")
	want := `{"n":1.50,"argv":["tool","--password","[redacted: value of a secret setting]","a\"b [redacted: GitLab token]"],"api_key":"[redacted: value of a secret setting]","x":"<&>","of":["curl","-u","me:[redacted: password on a command line]","example.org"],"title":"--token","program":"x"}`
	if same || string(got) != want || !json.Valid(got) {
		t.Errorf("%v %s", same, got)
	}
	if got, same := r.JSON([]byte(`{"a":"b`), ""); !same || string(got) != `{"a":"b` {
		t.Errorf("%v %s", same, got)
	}
	if got, same := redact.New(nil).JSON([]byte(`{"a":"b"}`), ""); !same || string(got) != `{"a":"b"}` {
		t.Errorf("%v %s", same, got)
	}
}

// What says that something is a secret may have been emitted before it.
func TestStreamRemembers(t *testing.T) {
	line := "curl --url https://example.org/some/path -u me:" + "hunter2 \n"
	var out strings.Builder
	s := redact.Stream[int]{R: redact.New(nil), Where: "the terminal", Emit: func(p redact.Piece[int]) error {
		out.Write(p.Data)
		return nil
	}}
	for range 20_000 {
		must.OK(t, s.Add(redact.Piece[int]{Data: []byte(line), Text: true}))
	}
	must.OK(t, s.Close())
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("%d are left", strings.Count(out.String(), "hunter2"))
	}
}

// A secret is found wherever the pieces are cut, with sequences between its letters,
// and what isn't a secret comes out as it went in.
func TestStream(t *testing.T) {
	secret := token("ghp_", 36)
	text := strings.Repeat("some text that is long enough\r\n", 6000) + "A" + " " + secret + " B\n" + strings.Repeat("more\n", 9000)
	for _, size := range []int{1, 7, 40, 4096, len(text)} {
		r := redact.New(nil)
		var out strings.Builder
		tags := 0
		s := redact.Stream[int]{R: r, Where: "the terminal", Emit: func(p redact.Piece[int]) error {
			if p.Text {
				out.Write(p.Data)
			}
			if p.Tag < tags {
				t.Fatalf("piece %d came after %d", p.Tag, tags)
			}
			tags = p.Tag
			return nil
		}}
		for at, n := 0, 0; at < len(text); at, n = at+size, n+1 {
			for _, p := range []redact.Piece[int]{{[]byte(text[at:min(at+size, len(text))]), true, n}, {[]byte("\x1b[1m"), false, n}} {
				must.OK(t, s.Add(p))
			}
		}
		must.OK(t, s.Close())
		if got, want := out.String(), strings.Replace(text, secret, "[redacted: GitHub token]", 1); got != want {
			t.Errorf("pieces of %d: %d bytes came out, not %d; has the secret: %v", size, len(got), len(want), strings.Contains(got, secret))
		}
		if f := r.Found(); len(f) != 1 || f[0].Count != 1 {
			t.Errorf("pieces of %d: found %v", size, f)
		}
	}
}

// BenchmarkStream looks for secrets in words of which each has a colour.
func BenchmarkStream(b *testing.B) {
	const size = 2 << 20
	words := []string{"func ", "return ", "session ", "the ", "if err != nil ", "ok ", "0.42s ", "PASS "}
	b.ReportAllocs()
	b.SetBytes(size)
	for b.Loop() {
		s := redact.Stream[[12]int]{R: redact.New(nil), Emit: func(redact.Piece[[12]int]) error { return nil }}
		var err error
		for i, n := 0, 0; n < size && err == nil; i++ {
			w := words[i%len(words)]
			n += len(w)
			err = errors.Join(s.Add(redact.Piece[[12]int]{Data: []byte("\x1b[38;5;9m")}), s.Add(redact.Piece[[12]int]{Data: []byte(w), Text: true}))
		}
		if err = errors.Join(err, s.Close()); err != nil {
			b.Fatal(err)
		}
	}
}
