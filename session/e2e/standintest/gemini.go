package standintest

import (
	"encoding/json"
	"net/http"
	"strings"
)

// gemini is Google's generateContent protocol, whole and streamed. What is asked
// of a model stands behind its name, after a colon.
var gemini = protocol{"POST /v1beta/models/{call}": (*Server).generate}

// geminiRequest is what is looked at of a request.
type geminiRequest struct {
	Tools []struct {
		Functions []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	Config struct {
		Type string `json:"responseMimeType"`
	} `json:"generationConfig"`
	Contents []struct {
		Parts []struct {
			Response *struct {
				Response struct {
					Output, Error string
				} `json:"response"`
			} `json:"functionResponse"`
		} `json:"parts"`
	} `json:"contents"`
}

func (s *Server) generate(w http.ResponseWriter, r Request) {
	var m geminiRequest
	if err := json.Unmarshal(r.Body, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if strings.Contains(r.Path, ":countTokens") {
		answerJSON(w, object{"totalTokens": 10})
		return
	}
	r.Formed = m.Config.Type == "application/json"
	for _, t := range m.Tools {
		for _, f := range t.Functions {
			r.Tools = append(r.Tools, f.Name)
		}
	}
	for _, c := range m.Contents {
		for _, p := range c.Parts {
			if p.Response != nil {
				r.Results = append(r.Results, p.Response.Response.Output+p.Response.Response.Error)
			}
		}
	}
	turn := s.turn(r)
	var parts []object
	if turn.Text != "" {
		parts = append(parts, object{"text": turn.Text})
	}
	for _, c := range turn.Calls {
		parts = append(parts, object{"functionCall": object{"name": c.Tool, "args": c.Input}})
	}
	answer := object{
		"candidates":    []object{{"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": parts}}},
		"usageMetadata": object{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
	}
	if strings.Contains(r.Path, ":streamGenerateContent") {
		newStream(w).send("", answer)
		return
	}
	answerJSON(w, answer)
}
