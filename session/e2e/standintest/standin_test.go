package standintest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"stepbox/session/e2e/must"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// post asks a server and returns its answer, whole and as the events that it
// is made of.
func post(t *testing.T, s *Server, path, body string) (string, []map[string]any) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Post(s.URL()+path, "application/json", strings.NewReader(body))
	must.OK(t, err)
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v: %s", path, resp.Status, err, all)
	}
	var events []map[string]any
	for line := range bytes.Lines(all) {
		if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && string(bytes.TrimSpace(data)) != "[DONE]" {
			var event map[string]any
			if err := json.Unmarshal(data, &event); err != nil {
				t.Fatalf("%s: %v: %s", path, err, line)
			}
			events = append(events, event)
		}
	}
	return string(all), events
}

// kinds are the events' types, in order.
func kinds(events []map[string]any) (out []string) {
	for _, e := range events {
		kind, _ := e["type"].(string)
		out = append(out, kind)
	}
	return out
}

// asks are the same question in each protocol: streamed, with a tool "run" and
// what came of a call of it, and an aside.
var asks = map[string]struct {
	path, streamed, aside string
	formed                string   // as streamed, but for JSON of a form
	kinds                 []string // of a turn with words and one call
}{
	"anthropic": {
		"/v1/messages?beta=true",
		`{"model":"m","stream":true,"tools":[{"name":"run"}],"messages":[{"role":"user","content":"go"},
		 {"role":"user","content":[{"type":"tool_result","content":"one"},{"type":"tool_result","content":[{"type":"text","text":"two"}]}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a title, please"}]}`,
		`{"model":"m","tools":[{"name":"run"}],"output_config":{"format":{"type":"json_schema"}},"messages":[{"role":"user","content":"a title, please"}]}`,
		[]string{
			"message_start", "content_block_start", "content_block_delta", "content_block_stop",
			"content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop",
		},
	},
	"chat": {
		"/v1/chat/completions",
		`{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"run"}}],"messages":[{"role":"user","content":"go"},
		 {"role":"assistant","content":null},{"role":"tool","content":"one"},{"role":"tool","content":[{"type":"text","text":"two"}]}]}`,
		`{"model":"m","messages":[{"role":"user","content":"a title, please"}]}`,
		`{"model":"m","tools":[{"type":"function","function":{"name":"run"}}],"response_format":{"type":"json_schema"},"messages":[{"role":"user","content":"a title, please"}]}`,
		[]string{"", "", ""}, // a delta, the end, the tokens: none has a type
	},
	"gemini": {
		"/v1beta/models/m:streamGenerateContent?alt=sse",
		`{"tools":[{"functionDeclarations":[{"name":"run"}]}],"contents":[{"role":"user","parts":[{"text":"go"}]},
		 {"role":"user","parts":[{"functionResponse":{"name":"run","response":{"output":"one"}}},{"functionResponse":{"name":"run","response":{"error":"two"}}}]}]}`,
		`{"contents":[{"role":"user","parts":[{"text":"a title, please"}]}]}`,
		`{"tools":[{"functionDeclarations":[{"name":"run"}]}],"generationConfig":{"responseMimeType":"application/json"},"contents":[{"role":"user","parts":[{"text":"a title, please"}]}]}`,
		[]string{""},
	},
	"responses": {
		"/v1/responses",
		`{"model":"m","stream":true,"input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"run"}]}]},
		 {"type":"function_call_output","output":"one"},{"type":"custom_tool_call_output","output":[{"type":"input_text","text":"two"}]}]}`,
		`{"model":"m","input":"a title, please"}`,
		`{"model":"m","tools":[{"name":"run"}],"text":{"format":{"type":"json_schema"}},"input":"a title, please"}`,
		[]string{
			"response.created", "response.output_item.added", "response.content_part.added", "response.output_text.delta",
			"response.output_text.done", "response.content_part.done", "response.output_item.done",
			"response.output_item.added", "response.output_item.done", "response.completed",
		},
	},
}

// Each protocol reads tools and results and sends a turn's words and calls; an
// aside takes no step.
func TestProtocols(t *testing.T) {
	for name, ask := range asks {
		t.Run(name, func(t *testing.T) {
			var asked Request
			s := New(func(r Request) Turn {
				asked = r
				return Turn{Text: "I run it.", Calls: []Call{{Tool: "run", Input: map[string]any{"command": "make <all>"}}}}
			})
			defer s.Close()
			for _, aside := range []string{ask.aside, ask.formed} {
				if got, _ := post(t, s, ask.path, aside); !strings.Contains(got, "A stand-in's title") || s.Left() != 1 {
					t.Errorf("an aside got %s and left %d steps", got, s.Left())
				}
			}
			got, events := post(t, s, ask.path, ask.streamed)
			if !slices.Equal(kinds(events), ask.kinds) {
				t.Errorf("events are %q", kinds(events))
			}
			if !strings.Contains(got, "I run it.") || !strings.Contains(strings.ReplaceAll(got, `\\`, `\`), `make \u003call\u003e`) {
				t.Errorf("the answer is %s", got)
			}
			if !slices.Equal(asked.Tools, []string{"run"}) || !slices.Equal(asked.Results, []string{"one", "two"}) || asked.Last() != "two" || !asked.Offers("run") {
				t.Errorf("the script saw tools %q and results %q", asked.Tools, asked.Results)
			}
			if got, _ := post(t, s, ask.path, ask.streamed); !strings.Contains(got, "The script is done.") {
				t.Errorf("after the script's end: %s", got)
			}
			seen := s.Requests()
			if len(seen) != 4 || seen[0].Path != ask.path || seen[0].Method != "POST" || string(seen[0].Body) != ask.aside || seen[0].Header.Get("Content-Type") != "application/json" {
				t.Errorf("recorded are %+v", seen)
			}
		})
	}
}

// A tool of free text is called with its text as it is.
func TestFreeText(t *testing.T) {
	s := New(Use("exec", "text(1)"))
	defer s.Close()
	got, _ := post(t, s, "/v1/responses", asks["responses"].streamed)
	if !strings.Contains(got, `"custom_tool_call"`) || !strings.Contains(got, `"input":"text(1)"`) {
		t.Errorf("the answer is %s", got)
	}
}
