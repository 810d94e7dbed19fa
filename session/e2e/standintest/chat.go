package standintest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// chat is OpenAI's Chat Completions protocol, whole and streamed, which most
// providers and local servers also speak.
var chat = protocol{"POST /v1/chat/completions": (*Server).completions}

// chatRequest is what is looked at of a request.
type chatRequest struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Tools  []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	Format struct {
		Type string `json:"type"`
	} `json:"response_format"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

func (s *Server) completions(w http.ResponseWriter, r Request) {
	var m chatRequest
	if err := json.Unmarshal(r.Body, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Formed = m.Format.Type == "json_schema"
	for _, t := range m.Tools {
		r.Tools = append(r.Tools, t.Function.Name)
	}
	for _, msg := range m.Messages {
		if msg.Role == "tool" {
			r.Results = append(r.Results, words(msg.Content))
		}
	}
	turn := s.turn(r)
	message, why := chatMessage(turn, len(r.Results)), "stop"
	if len(turn.Calls) > 0 {
		why = "tool_calls"
	}
	usage := object{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	chunk := func(delta object, why any) object {
		return object{"id": "chatcmpl", "object": "chat.completion.chunk", "created": 0, "model": m.Model, "choices": []object{{"index": 0, "delta": delta, "finish_reason": why}}}
	}
	if !m.Stream {
		answerJSON(w, object{
			"id": "chatcmpl", "object": "chat.completion", "created": 0, "model": m.Model, "usage": usage,
			"choices": []object{{"index": 0, "message": message, "finish_reason": why}},
		})
		return
	}
	out := newStream(w)
	out.send("", chunk(message, nil))
	out.send("", chunk(object{}, why))
	out.send("", with(chunk(nil, nil), object{"choices": []object{}, "usage": usage}))
	fmt.Fprint(w, "data: [DONE]\n\n") // who asked may be gone
}

// chatMessage is a turn. The calls' ids count on from the calls before.
func chatMessage(turn Turn, calls int) object {
	message := object{"role": "assistant", "content": turn.Text}
	var list []object
	for i, c := range turn.Calls {
		input, err := json.Marshal(c.Input)
		if err != nil {
			panic(err) // of a test's own making
		}
		list = append(list, object{"index": i, "id": fmt.Sprintf("call_%d", calls+i), "type": "function", "function": object{"name": c.Tool, "arguments": string(input)}})
	}
	if list != nil {
		message["tool_calls"] = list
	}
	return message
}
