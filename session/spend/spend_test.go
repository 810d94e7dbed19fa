package spend

import (
	"net/http"
	"strings"
	"testing"

	"stepbox/session/api"
)

var answers = []struct {
	name, kind, body    string
	input, output, cach int64
}{
	{"anthropic", "application/json", `{"id":"m","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":12,"cache_creation_input_tokens":3,"cache_read_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":3},"output_tokens":7}}`, 115, 7, 100},
	{"anthropic streamed", "text/event-stream; charset=utf-8", "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n" +
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"\\\"usage\\\":{\\\"input_tokens\\\":9999}\"}}\n\n" +
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":15}}\n\n", 25, 15, 0},
	{"openai chat", "application/json", `{"choices":[],"usage": {"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4}}}`, 10, 5, 4},
	{"openai chat streamed", "text/event-stream", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n", 10, 5, 0},
	{"openai responses", "text/event-stream", "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":30,\"input_tokens_details\":{\"cached_tokens\":20},\"output_tokens\":6,\"total_tokens\":36}}}\n\n", 30, 6, 20},
	{"gemini", "application/json", `[{"candidates":[],"usageMetadata":{"promptTokenCount":8,"totalTokenCount":8}},` + "\n" + `{"candidates":[],"usageMetadata" : {"promptTokenCount":8,"candidatesTokenCount":2,"thoughtsTokenCount":40,"cachedContentTokenCount":1}}]`, 8, 42, 1},
	{"negative", "application/json", `{"usage":{"input_tokens":-5,"output_tokens":3}}`, 0, 3, 0},
	{"huge", "application/json", `{"usage":{"input_tokens":1e300,"output_tokens":3}}`, mostTokens, 3, 0},
	{"odd", "application/json", `{"usage":{"input_tokens":"x","output_tokens":3}}`, 0, 3, 0},
	{"no object", "application/json", `{"usage":[{"input_tokens":5}],"usag":1,"usageX":{"input_tokens":5}}`, 0, 0, 0},
	{"text", "text/html", `{"usage":{"input_tokens":5,"output_tokens":3}}`, 0, 0, 0},
	{"unclosed", "application/json", `{"usage":{"input_tokens":5,` + strings.Repeat(`"x":"`+strings.Repeat("y", 100)+`",`, 100), 0, 0, 0},
}

// What an answer says counts, however it is cut.
func TestAnswers(t *testing.T) {
	for _, c := range answers {
		for _, size := range []int{1, 2, 7, 64, 1 << 20} {
			got := count1(c.kind, []byte(c.body), size)
			if want := (api.Spend{Host: "h", Requests: 1, Input: c.input, Output: c.output, Cached: c.cach}); got != want {
				t.Errorf("%s in pieces of %d: got %+v, want %+v", c.name, size, got, want)
			}
		}
	}
}

func count1(kind string, body []byte, size int) api.Spend {
	var c Counter
	w := c.Answer("h", http.Header{"Content-Type": {kind}})
	for ; w != nil && len(body) > 0; body = body[min(size, len(body)):] {
		w.Write(body[:min(size, len(body))])
	}
	if w != nil {
		w.Close()
	}
	return c.All()[0]
}

// Two answers add up, and what goes on begins with what there was.
func TestCounter(t *testing.T) {
	var told int
	c := Counter{Counted: func(api.Spend) { told++ }}
	c.Begin([]api.Spend{{Host: "a", Requests: 1, Input: 5, Output: 1}})
	for _, host := range []string{"a", "b"} {
		w := c.Answer(host, http.Header{"Content-Type": {"application/json"}})
		w.Write([]byte(`{"usage":{"input_tokens":2,"output_tokens":1}}`))
		w.Close()
	}
	if all := c.All(); len(all) != 2 || all[0] != (api.Spend{Host: "a", Requests: 2, Input: 7, Output: 2}) || all[1].Input != 2 || told != 4 {
		t.Errorf("got %+v, told %d times", all, told)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, c := range answers {
		f.Add([]byte(c.body), 3)
	}
	f.Fuzz(func(t *testing.T, body []byte, size int) {
		size = 1 + max(0, size)%100
		whole, cut := count1("application/json", body, len(body)+1), count1("application/json", body, size)
		if whole != cut {
			t.Errorf("whole it is %+v, cut by %d %+v", whole, size, cut)
		}
	})
}
