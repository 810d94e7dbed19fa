package standintest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// anthropic is Anthropic's Messages protocol, whole and streamed.
var anthropic = protocol{
	"POST /v1/messages": (*Server).messages,
	"POST /v1/messages/count_tokens": func(_ *Server, w http.ResponseWriter, _ Request) {
		answerJSON(w, object{"input_tokens": 10})
	},
	// Claude Code looks with HEAD whether anybody is there.
	"HEAD /{$}": func(_ *Server, w http.ResponseWriter, _ Request) {},
	"GET /v1/models": func(_ *Server, w http.ResponseWriter, _ Request) {
		model := object{"type": "model", "id": "stand-in", "display_name": "Stand-in", "object": "model", "created_at": "2026-01-01T00:00:00Z"}
		answerJSON(w, object{"object": "list", "data": []object{model}, "has_more": false})
	},
}

// messagesRequest is what is looked at of a request.
type messagesRequest struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Tools  []struct {
		Name string `json:"name"`
	} `json:"tools"`
	Messages []struct {
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Config struct {
		Format json.RawMessage `json:"format"`
	} `json:"output_config"`
}

// results are what came of all calls.
func (m messagesRequest) results() (out []string) {
	for _, msg := range m.Messages {
		var blocks []struct {
			Type    string          `json:"type"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(msg.Content, &blocks) != nil {
			continue // words alone
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				out = append(out, words(b.Content))
			}
		}
	}
	return out
}

func (s *Server) messages(w http.ResponseWriter, r Request) {
	var m messagesRequest
	if err := json.Unmarshal(r.Body, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, t := range m.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	r.Results, r.Formed = m.results(), len(m.Config.Format) > 0
	turn := s.turn(r)
	blocks, why := messageBlocks(turn, len(r.Results)), "end_turn"
	if len(turn.Calls) > 0 {
		why = "tool_use"
	}
	message := object{
		"id": fmt.Sprintf("msg_%d", len(r.Results)), "type": "message", "role": "assistant", "model": m.Model,
		"content": blocks, "stop_reason": why, "stop_sequence": nil,
		"usage": object{"input_tokens": 10, "output_tokens": 5},
	}
	if !m.Stream {
		answerJSON(w, message)
		return
	}
	streamMessage(newStream(w), message, blocks)
}

// messageBlocks are a turn's parts. The calls' ids count on from the calls before.
func messageBlocks(turn Turn, calls int) (blocks []object) {
	if turn.Text != "" {
		blocks = append(blocks, object{"type": "text", "text": turn.Text})
	}
	for i, c := range turn.Calls {
		blocks = append(blocks, object{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", calls+i), "name": c.Tool, "input": c.Input})
	}
	return blocks
}

// streamMessage sends a message as the events that build it.
func streamMessage(out stream, message object, blocks []object) {
	why := message["stop_reason"]
	message["content"], message["stop_reason"] = []object{}, nil
	out.send("message_start", object{"type": "message_start", "message": message})
	for i, b := range blocks {
		start, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": b["text"]}
		if b["type"] == "tool_use" {
			input, err := json.Marshal(b["input"])
			if err != nil {
				panic(err) // of a test's own making
			}
			start = object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}}
			delta = object{"type": "input_json_delta", "partial_json": string(input)}
		}
		out.send("content_block_start", object{"type": "content_block_start", "index": i, "content_block": start})
		out.send("content_block_delta", object{"type": "content_block_delta", "index": i, "delta": delta})
		out.send("content_block_stop", object{"type": "content_block_stop", "index": i})
	}
	out.send("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": why, "stop_sequence": nil}, "usage": object{"output_tokens": 5}})
	out.send("message_stop", object{"type": "message_stop"})
}
