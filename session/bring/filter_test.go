package bring

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"stepbox/policy"
	"stepbox/session/e2e/must"
	"stepbox/session/redact"
)

// fake is made here, so that nobody's scanner takes this file for a leak.
func fake(prefix string, n int) string { return prefix + strings.Repeat("aB3x", n/4+1)[:n] }

// cleaned is what stays of settings, as compact JSON, and the kinds of what is left out.
func cleaned(t *testing.T, kind, text string, s policy.BroughtSettings) (string, []string) {
	t.Helper()
	v, err := decode(kind, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var left []string
	f := filter{of: s, secret: func(s string) string { return redact.New([]string{"MY_TOKEN=opensesame!"}).Text(s, "") },
		left: func(kind, key, why string) { left = append(left, kind+" "+key) }}
	kept, ok := f.value(nil, v)
	if !ok {
		return "", left
	}
	out, err := json.Marshal(kept)
	must.OK(t, err)
	slices.Sort(left)
	return string(out), left
}

func TestFilter(t *testing.T) {
	s := policy.BroughtSettings{Hooks: []string{"hooks", "notify", "experimental.hook"}, Programs: []string{"apiKeyHelper", "p.*.auth"}}
	gh, long := fake("ghp_", 36), fake("", 40)
	for in, want := range map[string]string{ // what stays, then what is left out
		`{}`: `{}`,
		`{"model":"opus","n":1.50,"b":true,"z":null,"l":[1,"a"],"maxTokens":5,"max_tokens":"9"}`: `{"b":true,"l":[1,"a"],"maxTokens":5,"max_tokens":"9","model":"opus","n":1.50,"z":null}`,
		`{"hooks":{"a":1},"notify":["x"],"experimental":{"hook":1,"x":2}}`:                       `{"experimental":{"x":2}} hook experimental.hook,hook hooks,hook notify`,
		`{"apiKeyHelper":"/x","p":{"q":{"auth":{"command":"x"},"name":"n"}}}`:                    `{"p":{"q":{"name":"n"}}} program apiKeyHelper,program p.q.auth`,
		// By name.
		`{"apiKey":"x","api_key":"x","token":"y","a":{"client_secret":"z","password":1234}}`:                                           `{"a":{}} token a.client_secret,token a.password,token apiKey,token api_key,token token`,
		`{"tokens":{"a":"b"},"credentials":["x"],"Authorization":"b","cookies":"c"}`:                                                   `{} token Authorization,token cookies,token credentials,token tokens`,
		`{"apiKey":"$X","api_key":"${X_Y}","token":"{env:T}","secret":"","hasToken":true}`:                                             `{"apiKey":"$X","api_key":"${X_Y}","hasToken":true,"secret":"","token":"{env:T}"}`,
		`{"apiKey":"ollama","token":"MY_API_KEY","a":{"api_key":"none","apikey":"swordfish"}}`:                                         `{"a":{"api_key":"none"},"apiKey":"ollama","token":"MY_API_KEY"} token a.apikey`,
		`{"apiKey":"!pass show x","token":"$(cat x)"}`:                                                                                 `{} token apiKey,token token`,
		`{"bearer_token_env_var":"X_Y","env_key":"OPENAI_API_KEY"}`:                                                                    `{"bearer_token_env_var":"X_Y","env_key":"OPENAI_API_KEY"}`,
		`{"auth":"swordfish","pw":"x1","db_pwd":12345678,"pass":"abcd","app":{"auth":{"type":"oauth"}},"userAuth":"gemini-api-login"}`: `{"app":{"auth":{"type":"oauth"}},"userAuth":"gemini-api-login"} token auth,token db_pwd,token pass,token pw`,
		`{"auth":"basic","pin":true,"env":{"DB_PW":"abcd1","PORT":8080,"DB_PASS":12345678,"PIN":"9876"}}`:                              `{"auth":"basic","env":{"PORT":8080},"pin":true} token env.DB_PASS,token env.DB_PW,token env.PIN`,
		`{"args":["--password",12345678,"--port",8080]}`:                                                                               `{"args":["--password","[redacted: left out]","--port",8080]} token args`,
		// By shape, wherever it stands.
		`{"a":"` + gh + `","l":["` + gh + `",{"b":"` + gh + `"}],"` + gh + `":1}`: `{"l":["[redacted: left out]",{}]} token a,token l,token l.b,token …`,
		`{"a":"opensesame!"}`:                                                      `{} token a`,
		`{"a":"\u0067hp_` + gh[4:] + `"}`:                                          `{} token a`,
		`{"note":"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n"}`:                       `{} token note`,
		`{"permissions":{"allow":["Bash(curl -u me:` + `hunter2 x)","Bash(ls)"]}}`: `{"permissions":{"allow":["[redacted: left out]","Bash(ls)"]}} token permissions.allow`,
		// Variables.
		`{"env":{"A":"b","X_KEY":"abc","GIT_AUTHOR_NAME":"Ada","MAX_THINKING_TOKENS":"31999","DB_DSN":"x","R":"` + long + `"}}`: `{"env":{"A":"b","GIT_AUTHOR_NAME":"Ada","MAX_THINKING_TOKENS":"31999"}} token env.DB_DSN,token env.R,token env.X_KEY`,
		`{"env":{"M":"claude-sonnet-4-5-20250929","U":"123e4567-e89b-12d3-a456-426614174000","P":"/usr/local/bin:/usr/bin"}}`:   `{"env":{"M":"claude-sonnet-4-5-20250929","P":"/usr/local/bin:/usr/bin"}} token env.U`,
		`{"set-env":["A=b","X_TOKEN=abcd","R=` + long + `"]}`:                                                                   `{"set-env":["A=b","[redacted: left out]","[redacted: left out]"]} token set-env,token set-env`,
		// Servers.
		`{"mcpServers":{"a":{"command":"npx","args":["-y","@x/token-server:1","--api-key","abcd","--key=efgh","-H","X-Auth: ijkl","` + long + `"]}}}`:   `{"mcpServers":{"a":{"args":["-y","@x/token-server:1","--api-key","[redacted: left out]","[redacted: left out]","-H","[redacted: left out]","[redacted: left out]"],"command":"npx"}}} ` + strings.TrimSuffix(strings.Repeat("token mcpServers.a.args,", 4), ","),
		`{"mcpServers":{"a":{"url":"https://x.example/` + long + `/mcp"},"b":{"url":"https://x.example/mcp"}}}`:                                         `{"mcpServers":{"b":{"url":"https://x.example/mcp"}}} setting mcpServers.a,token mcpServers.a.url`,
		`{"mcp":{"a":{"url":"https://x.example/?api_key=abc","type":"remote"}}}`:                                                                        `{"mcp":{}} setting mcp.a,token mcp.a.url`,
		`{"mcp_servers":{"a":{"url":"https://x.example/","http_headers":{"X":"y","Z":"$Z","Authorization":"Bearer $T"},"env_http_headers":{"X":"Y"}}}}`: `{"mcp_servers":{"a":{"env_http_headers":{"X":"Y"},"http_headers":{"Authorization":"Bearer $T","Z":"$Z"},"url":"https://x.example/"}}} token mcp_servers.a.http_headers.X`,
		`{"base":"https://u:` + `hunter22@x.example/","hook":"https://hooks.x.example/` + long + `"}`:                                                   `{} token base,token hook`,
	} {
		got, left := cleaned(t, ".json", in, s)
		if all := strings.TrimSpace(got + " " + strings.Join(left, ",")); all != want {
			t.Errorf("%s became\n%s, not\n%s", in, all, want)
		}
	}
}

// Each kind is read and written so that nothing is lost but what is left out.
func TestKinds(t *testing.T) {
	for kind, test := range map[string][2]string{
		".json": {"// mine\n{\"a\": 1, /* x */ \"b\": [1,], \"token\": \"x\"}", "{\n  \"a\": 1,\n  \"b\": [\n    1\n  ]\n}\n"},
		".toml": {"# mine\na = 1\nf = 1.5\ntoken = 'x'\n[t]\nd = 2020-01-02\n[[l]]\nx = 'y'\n[[l]]\nx = 'z'\n", "a = 1\nf = 1.5\n\n[[l]]\nx = 'y'\n\n[[l]]\nx = 'z'\n\n[t]\nd = 2020-01-02\n"},
		".yml":  {"# mine\na: 1\nb: [x, 'yes']\ntoken: x\n", "a: 1\nb:\n- x\n- \"yes\"\n"},
	} {
		v, err := decode(kind, []byte(test[0]))
		must.OK(t, err)
		f := filter{secret: func(s string) string { return s }, left: func(_, _, _ string) {}}
		kept, _ := f.value(nil, v)
		got, err := encode(kind, kept)
		if err != nil || string(got) != test[1] {
			t.Errorf("%s: %q, want %q (%v)", kind, got, test[1], err)
		}
	}
	for kind, text := range map[string]string{".json": "{", ".toml": "a", ".yml": "a: [", ".yaml": "a: &x [1]\nb: [*x, *x]"} {
		if v, err := decode(kind, []byte(text)); err == nil {
			t.Errorf("%s %q is %v", kind, text, v)
		}
	}
}

// A token never comes through, wherever in a file it is.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{`{"a":"T"}`, `{"T":1}`, `["T",["T"]]`, `"$T"`, `{"env":{"a":"xT y"}}`, `"T"`, `{"a":"\u0054T"}`, `{"mcpServers":{"a":{"args":["--x=T"]}}}`} {
		f.Add(s)
	}
	secret := fake("ghp_", 36)
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ReplaceAll(text, "T", secret)
		for _, kind := range []string{".json", ".yml", ".toml"} {
			v, err := decode(kind, []byte(text))
			if err != nil {
				continue
			}
			fl := filter{secret: func(s string) string { return redact.New(nil).Text(s, "") }, left: func(_, key, _ string) {
				if strings.Contains(key, secret) {
					t.Errorf("%s: it is told: %q", kind, key)
				}
			}}
			kept, ok := fl.value(nil, v)
			if !ok {
				continue
			}
			out, err := encode(kind, kept)
			if strings.Contains(string(out), secret) || strings.Contains(fmt.Sprint(kept), secret) {
				t.Errorf("%s: %q comes through as %q", kind, text, out)
			}
			if _, bad := decode(kind, out); kind == ".json" && (err != nil || bad != nil) {
				t.Errorf("%q becomes %q: %v %v", text, out, err, bad)
			}
		}
	})
}

// All headers are left out, in whatever form they are listed.
func TestFilterHeaders(t *testing.T) {
	for _, text := range []string{
		`{"headers":{"X-Foo":"hunter2"}}`, `{"header":{"X-Foo":"hunter2"}}`, `{"headers":["X-Foo: hunter2"]}`, `{"headers":[["X-Foo","hunter2"]]}`,
		`{"headers":[{"name":"X-Foo","value":"hunter2"}]}`, `{"http_headers":{"X-Foo":["hunter2"]}}`, `{"http_header":"X-Foo: hunter2"}`, `{"a":{"headers":{"x":{"y":"hunter2"}}}}`,
	} {
		if got, left := cleaned(t, ".json", text, policy.BroughtSettings{}); strings.Contains(got, "hunter2") || len(left) == 0 {
			t.Errorf("of %s stays %s, left out %v", text, got, left)
		}
	}
}
