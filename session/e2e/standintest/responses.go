package standintest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// responses is OpenAI's Responses protocol, streamed, as Codex speaks it.
var responses = protocol{"POST /v1/responses": (*Server).responses}

// responsesTool is one that is offered: by name, or a namespace with more in it.
type responsesTool struct {
	Type  string          `json:"type"`
	Name  string          `json:"name"`
	Tools []responsesTool `json:"tools"`
}

// names are all tools' own names, without their namespaces'.
func (t responsesTool) names() (out []string) {
	if t.Type != "namespace" {
		return []string{t.Name}
	}
	for _, in := range t.Tools {
		out = append(out, in.names()...)
	}
	return out
}

// responsesRequest is what is looked at of a request.
type responsesRequest struct {
	Model  string          `json:"model"`
	Tools  []responsesTool `json:"tools"`
	Input  json.RawMessage `json:"input"`
	Stream bool            `json:"stream"`
	Text   struct {
		Format struct {
			Type string `json:"type"`
		} `json:"format"`
	} `json:"text"`
}

// responsesItem is one thing that was said or done so far. Tools are offered in
// items too.
type responsesItem struct {
	Type   string          `json:"type"`
	Output json.RawMessage `json:"output"`
	Tools  []responsesTool `json:"tools"`
}

func (s *Server) responses(w http.ResponseWriter, r Request) {
	var m responsesRequest
	if err := json.Unmarshal(r.Body, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var items []responsesItem
	_ = json.Unmarshal(m.Input, &items) // else it is words alone
	tools := m.Tools
	for _, item := range items {
		tools = append(tools, item.Tools...)
		if item.Type == "function_call_output" || item.Type == "custom_tool_call_output" {
			r.Results = append(r.Results, words(item.Output))
		}
	}
	for _, t := range tools {
		r.Tools = append(r.Tools, t.names()...)
	}
	r.Formed = m.Text.Format.Type == "json_schema"
	output := responseItems(s.turn(r), len(r.Results))
	id := fmt.Sprintf("resp_%d", len(r.Results))
	response := object{
		"id": id, "object": "response", "created_at": 0, "model": m.Model, "status": "completed", "output": output,
		"usage": object{
			"input_tokens": 10, "input_tokens_details": object{"cached_tokens": 0},
			"output_tokens": 5, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 15,
		},
	}
	if !m.Stream {
		answerJSON(w, response)
		return
	}
	streamResponse(newStream(w), id, response, output)
}

// responseItems are a turn's parts. The calls' ids count on from the calls before.
func responseItems(turn Turn, calls int) (items []object) {
	if turn.Text != "" {
		items = append(items, object{
			"type": "message", "id": fmt.Sprintf("msg_%d", calls), "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": turn.Text, "annotations": []object{}}},
		})
	}
	for i, c := range turn.Calls {
		id := fmt.Sprint(calls + i)
		if text, free := c.Input.(string); free {
			items = append(items, object{"type": "custom_tool_call", "id": "ctc_" + id, "call_id": "call_" + id, "name": c.Tool, "input": text, "status": "completed"})
			continue
		}
		input, err := json.Marshal(c.Input)
		if err != nil {
			panic(err) // of a test's own making
		}
		items = append(items, object{"type": "function_call", "id": "fc_" + id, "call_id": "call_" + id, "name": c.Tool, "arguments": string(input), "status": "completed"})
	}
	return items
}

// streamResponse sends a response as the events that build it.
func streamResponse(out stream, id string, response object, output []object) {
	out.send("response.created", object{"type": "response.created", "response": object{"id": id, "object": "response", "status": "in_progress", "output": []object{}}})
	for i, item := range output {
		out.send("response.output_item.added", object{"type": "response.output_item.added", "output_index": i, "item": begun(item)})
		if item["type"] == "message" {
			part := item["content"].([]object)[0]
			at := object{"item_id": item["id"], "output_index": i, "content_index": 0}
			out.send("response.content_part.added", with(at, object{"type": "response.content_part.added", "part": object{"type": "output_text", "text": "", "annotations": []object{}}}))
			out.send("response.output_text.delta", with(at, object{"type": "response.output_text.delta", "delta": part["text"]}))
			out.send("response.output_text.done", with(at, object{"type": "response.output_text.done", "text": part["text"]}))
			out.send("response.content_part.done", with(at, object{"type": "response.content_part.done", "part": part}))
		}
		out.send("response.output_item.done", object{"type": "response.output_item.done", "output_index": i, "item": item})
	}
	out.send("response.completed", object{"type": "response.completed", "response": response})
}

// begun is an item as it is announced, before what is in it.
func begun(item object) object {
	out := with(item, object{"status": "in_progress"})
	for key, empty := range map[string]any{"content": []object{}, "arguments": "", "input": ""} {
		if _, has := out[key]; has {
			out[key] = empty
		}
	}
	return out
}

// with is an object with more in it.
func with(o, more object) object {
	out := object{}
	for _, from := range []object{o, more} {
		for k, v := range from {
			out[k] = v
		}
	}
	return out
}
