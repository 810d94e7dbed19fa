package e2e

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"stepbox/session/e2e/must"
)

// answer is what a stand-in for a model says.
const answer = "said by the stand-in"

// standIn speaks the wire formats of local models' servers: Ollama's own, and those of
// OpenAI (chat completions, responses) and Anthropic (messages), which Ollama, vLLM and
// llama.cpp offer, streamed where that is asked for.
func standIn(w http.ResponseWriter, q *http.Request) {
	var body struct{ Stream bool }
	_ = json.NewDecoder(q.Body).Decode(&body) // what isn't JSON asks for nothing
	event := func(name string, data string) {
		if name != "" {
			fmt.Fprintf(w, "event: %s\n", name)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
	if body.Stream {
		w.Header().Set("Content-Type", "text/event-stream")
	} else {
		w.Header().Set("Content-Type", "application/json")
	}
	switch path := q.URL.Path; {
	case path == "/api/tags":
		fmt.Fprint(w, `{"models":[{"name":"test:latest","model":"test:latest"}]}`)
	case path == "/api/chat":
		w.Header().Set("Content-Type", "application/x-ndjson")
		fmt.Fprintf(w, `{"model":"test","message":{"role":"assistant","content":%q},"done":false}`+"\n"+`{"model":"test","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}`+"\n", answer)
	case path == "/v1/models":
		fmt.Fprint(w, `{"object":"list","data":[{"id":"test","object":"model"}]}`)
	case path == "/v1/chat/completions" && body.Stream:
		event("", fmt.Sprintf(`{"id":"c","object":"chat.completion.chunk","created":1,"model":"test","choices":[{"index":0,"delta":{"role":"assistant","content":%q},"finish_reason":null}]}`, answer))
		event("", `{"id":"c","object":"chat.completion.chunk","created":1,"model":"test","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
		event("", "[DONE]")
	case path == "/v1/chat/completions":
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"test","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, answer)
	case path == "/v1/responses":
		item := fmt.Sprintf(`{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":%q,"annotations":[]}]}`, answer)
		event("response.created", `{"type":"response.created","response":{"id":"r"}}`)
		event("response.output_item.done", `{"type":"response.output_item.done","output_index":0,"item":`+item+`}`)
		event("response.completed", `{"type":"response.completed","response":{"id":"r","status":"completed","output":[`+item+`],"usage":{"input_tokens":1,"input_tokens_details":null,"output_tokens":1,"output_tokens_details":null,"total_tokens":2}}}`)
	case path == "/v1/messages" && body.Stream:
		event("message_start", `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"test","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}`)
		event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%q}}`, answer))
		event("content_block_stop", `{"type":"content_block_stop","index":0}`)
		event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}`)
		event("message_stop", `{"type":"message_stop"}`)
	case path == "/v1/messages":
		fmt.Fprintf(w, `{"id":"m","type":"message","role":"assistant","model":"test","content":[{"type":"text","text":%q}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`, answer)
	default:
		http.NotFound(w, q)
	}
}

// A local model's server is reached by its port alone, by agents that are told so as
// docs/endpoints.md has it.
func TestLocalModels(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(standIn))
	t.Cleanup(server.Close)
	at := "host.stepbox.internal:" + mustParse(t, server.URL).Port()
	const hi = `{"model":"test","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	for name, c := range map[string]struct {
		needs string
		run   []string
	}{
		"Ollama":           {"curl", []string{"curl", "-sS", "http://" + at + "/api/chat", "-d", hi}},
		"chat completions": {"curl", []string{"curl", "-sS", "http://" + at + "/v1/chat/completions", "-d", hi}},
		"claude":           {"claude", []string{"claude", "-p", "hi"}},
		"codex": {"codex", []string{"codex", "exec", "--skip-git-repo-check", "-c", "model_provider=local", "-c",
			`model_providers.local={name="local",base_url="http://` + at + `/v1",wire_api="responses"}`, "-m", "test", "hi"}},
		"opencode": {"opencode", []string{"opencode", "run", "-m", "local/test", "hi"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(c.needs); err != nil {
				t.Skipf("there is no %s", c.needs)
			}
			t.Parallel()
			p := newPerson(t)
			p.write("opencode.json", `{"provider":{"local":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"http://`+at+`/v1"},"models":{"test":{}}}}}`)
			config := filepath.Join(p.home, ".config/stepbox")
			must.OK(t, os.MkdirAll(config, 0o700))
			policy := "environment:\n  set: {ANTHROPIC_BASE_URL: \"http://" + at + "\", ANTHROPIC_AUTH_TOKEN: local, ANTHROPIC_MODEL: test}\nnetwork:\n  - allow: " + at + "\n"
			must.OK(t, os.WriteFile(filepath.Join(config, "policy.yaml"), []byte(policy), 0o600))
			out, err := p.command(t.Context(), append([]string{"run", "--on-ask", "deny", "--"}, c.run...)...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), answer) {
				t.Errorf("%v, %s", err, out)
			}
		})
	}
}

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	must.OK(t, err)
	return u
}

// Whom a person trusts by a file of their own programs inside trust as well; and the
// proxy that they sign in to, by TLS with a certificate of that file.
func TestCorporate(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	server := httptest.NewTLSServer(http.HandlerFunc(standIn))
	t.Cleanup(server.Close)
	bundle := filepath.Join(p.home, "corporate.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	must.OK(t, os.WriteFile(bundle, text, 0o600))
	at := "host.stepbox.internal:" + mustParse(t, server.URL).Port()
	run := func(more []string, args ...string) string {
		cmd := p.command(t.Context(), append([]string{"run", "--mode", "watch", "--allow-host", at, "--allow-host", "api.example.com:443"}, args...)...)
		cmd.Env = append(cmd.Env, more...)
		out, _ := cmd.CombinedOutput() // it says why it failed
		return string(out)
	}
	// The certificate is example.com's.
	get := []string{"--", "curl", "-sS", "--connect-to", "example.com:443:" + at, "https://example.com/v1/models"}
	if out := run([]string{"CURL_CA_BUNDLE=" + bundle}, get...); !strings.Contains(out, `"id":"test"`) {
		t.Errorf("with the person's bundle: %s", out)
	}
	if out := run(nil, get...); strings.Contains(out, `"id":"test"`) {
		t.Errorf("without it: %s", out)
	}
	must.OK(t, os.WriteFile(bundle, append(text, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"...), 0o600))
	run([]string{"CURL_CA_BUNDLE=" + bundle}, "--name", "keyed", "--", "true")
	if out := p.do("show", "keyed"); !strings.Contains(out, "more than certificates") {
		t.Errorf("of a file with a key it says %s", out)
	}
	must.OK(t, os.WriteFile(bundle, text, 0o600))
	proxy := secureProxy(t, server.TLS.Certificates[0])
	for password, want := range map[string]string{"secret": "far side: hello", "wrong": ""} {
		out := run([]string{"NODE_EXTRA_CA_CERTS=" + bundle, "HTTPS_PROXY=https://me:" + password + "@" + proxy}, "--name", password, "--",
			"bash", "-c", `exec 3<>/dev/tcp/api.example.com/443 && echo hello >&3 && cat <&3; env | grep -i proxy`)
		if !strings.Contains(out, want) || strings.Contains(out, "secret") || (want == "") == strings.Contains(out, "far side") {
			t.Errorf("by a proxy, with the password %s: %s", password, out)
		}
	}
	if out := p.do("net", "wrong"); !strings.Contains(out, "407") || !strings.Contains(out, "other than Basic") {
		t.Errorf("of a proxy that refuses it says %s", out)
	}
}

// secureProxy is an HTTP proxy by TLS that me:secret may use.
func secureProxy(t *testing.T, cert tls.Certificate) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	must.OK(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			tunnelled(c)
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().String()
}

func tunnelled(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	if req.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("me:secret")) {
		io.WriteString(c, "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: NTLM\r\n\r\n")
		return
	}
	io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	if line, err := r.ReadString('\n'); err == nil {
		fmt.Fprintf(c, "far side: %s", line)
	}
}
