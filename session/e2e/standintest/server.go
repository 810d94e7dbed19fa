package standintest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// bodyLimit bounds what is read of a request. Agents send some hundred KiB.
const bodyLimit = 32 << 20

// Server answers agents from its script.
type Server struct {
	http *httptest.Server

	mu     sync.Mutex
	script []Step    // guarded by mu; what is left of it
	seen   []Request // guarded by mu
	turns  []Request // guarded by mu; those that took a step, with their tools and results
}

// protocol is one way of asking a model: patterns of net/http's ServeMux with
// what answers them.
type protocol map[string]func(s *Server, w http.ResponseWriter, r Request)

// protocols are all that a server speaks.
var protocols = []protocol{anthropic, responses, chat, gemini}

// New starts a server on a port of its own of 127.0.0.1. Each request that
// isn't an aside takes a step of the script; when none is left, the model says
// that it is done.
func New(script ...Step) *Server {
	s := &Server{script: script}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if _, ok := s.read(w, r); ok {
			http.NotFound(w, r)
		}
	})
	for _, p := range protocols {
		for pattern, answer := range p {
			mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
				if req, ok := s.read(w, r); ok {
					answer(s, w, req)
				}
			})
		}
	}
	s.http = httptest.NewServer(mux)
	return s
}

func (s *Server) read(w http.ResponseWriter, r *http.Request) (Request, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return Request{}, false
	}
	req := Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, req)
	return req, true
}

// turn takes the next step of the script for a request whose tools and results
// its protocol has read. An aside takes none and is answered with a title,
// which is also the JSON that those who ask for a form expect.
func (s *Server) turn(r Request) Turn {
	if r.Aside() {
		return Turn{Text: `{"title":"A stand-in's title","isNewTopic":false}`}
	}
	s.mu.Lock()
	s.turns = append(s.turns, r)
	step := Say("The script is done.")
	if len(s.script) > 0 {
		step, s.script = s.script[0], s.script[1:]
	}
	s.mu.Unlock()
	return step(r)
}

// Add puts more steps at the script's end.
func (s *Server) Add(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, steps...)
}

// Left is how many steps of the script nobody asked for yet.
func (s *Server) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.script)
}

// URL is where the server is, without a slash at its end.
func (s *Server) URL() string { return s.http.URL }

// Port is its port of 127.0.0.1.
func (s *Server) Port() string { return s.http.URL[strings.LastIndexByte(s.http.URL, ':')+1:] }

// Requests are all that came so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
}

// Turns are the requests that took a step so far, with their tools and results.
func (s *Server) Turns() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.turns...)
}

// Close ends the server and all that is connected to it.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// answerJSON writes a whole answer.
func answerJSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(body) // who asked may be gone
}

// stream is an answer of server-sent events.
type stream struct{ w http.ResponseWriter }

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	return stream{w}
}

// send writes one event. Without a name it is data alone.
func (s stream) send(name string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // data is of our own making
	}
	if name != "" {
		fmt.Fprintf(s.w, "event: %s\n", name)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", text) // who asked may be gone
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

// object is JSON that has no type of its own here.
type object = map[string]any

// words are the text of a content, which is a string or a list of parts with text.
func words(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return string(content)
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}
