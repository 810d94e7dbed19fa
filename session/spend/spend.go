// Package spend counts the tokens that answers of models say they took: those of
// Anthropic's, OpenAI's and Gemini's protocols, whole or streamed, and of all that speak
// like them.
//
// An answer is looked through as it passes: nothing waits for it, and what is kept of it
// is bounded. What answers say isn't checked, and a model may write what looks like it: of
// what an answer says the most counts, so that nothing makes it less.
//
// A Counter is safe for concurrent use, an answer is for one goroutine.
package spend

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"stepbox/session/api"
)

// maxObject bounds what is read of one count; none is longer.
const maxObject = 8 << 10

// mostTokens bounds what one answer may say.
const mostTokens = 1 << 30

// Counter counts what was spent at each host.
type Counter struct {
	// Counted is told of what more was spent, unless it is nil. It is called from any
	// goroutine.
	Counted func(api.Spend)

	mu  sync.Mutex
	all []api.Spend // guarded by mu; one for each host that a credential is for
}

// Begin is what there was before, in a session that goes on.
func (c *Counter) Begin(was []api.Spend) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = slices.Clone(was)
}

// All is what was spent by now.
func (c *Counter) All() []api.Spend {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

// Answer counts a request to a host, and what its answer says once that is written and
// closed.
func (c *Counter) Answer(host string, header http.Header) io.WriteCloser {
	c.add(api.Spend{Host: host, Requests: 1})
	kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	switch kind = strings.ToLower(strings.TrimSpace(kind)); {
	case kind == "text/event-stream", kind == "application/x-ndjson", kind == "application/json", strings.HasSuffix(kind, "+json"):
		return &answer{c: c, spent: api.Spend{Host: host}}
	}
	return nil
}

func (c *Counter) add(more api.Spend) {
	c.mu.Lock()
	i := slices.IndexFunc(c.all, func(s api.Spend) bool { return s.Host == more.Host })
	if i < 0 {
		i = len(c.all)
		c.all = append(c.all, api.Spend{Host: more.Host})
	}
	s := &c.all[i]
	s.Requests += more.Requests
	s.Input += more.Input
	s.Output += more.Output
	s.Cached += more.Cached
	c.mu.Unlock()
	if c.Counted != nil {
		c.Counted(more)
	}
}

// answer is one that is looked through. Counts are objects by the names in keys; a name
// within a text has a backslash before its quote, and so isn't taken for one.
type answer struct {
	c     *Counter
	spent api.Spend
	tail  []byte // what may be the beginning of a key, at most as long as one and what is around it

	object []byte // the count that is being read; nil: none is
	depth  int
	text   bool // within quotes
	quoted bool // the byte before was a backslash
}

var keys = [][]byte{[]byte(`"usage"`), []byte(`"usageMetadata"`)}

// maxTail holds the longest key, with spaces around its colon.
const maxTail = 64

// Write looks at the next bytes. It never fails.
func (a *answer) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if a.object == nil {
			b = a.search(b)
		} else {
			b = a.read(b)
		}
	}
	return n, nil
}

// search goes on to where the next count begins, and gives what is behind its brace.
func (a *answer) search(b []byte) []byte {
	text := append(a.tail, b...)
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(`"usage`))
		if i < 0 {
			a.keep(text)
			return nil
		}
		at += i
		begins, whole := count(text[at:])
		switch {
		case at > 0 && text[at-1] == '\\':
		case begins > 0:
			rest := text[at+begins:]
			a.tail, a.object, a.depth, a.text, a.quoted = nil, make([]byte, 1, 512), 1, false, false
			a.object[0] = '{'
			return rest
		case !whole:
			a.keep(text[max(0, at-1):])
			return nil
		}
		at++
	}
}

// keep has the end of what was searched be searched again with what comes.
func (a *answer) keep(text []byte) { a.tail = bytes.Clone(text[max(0, len(text)-maxTail):]) }

// count says where behind a key its object begins; whole says that it isn't one, or is.
func count(text []byte) (begins int, whole bool) {
	for _, k := range keys {
		if len(text) < len(k) && bytes.HasPrefix(k, text) {
			return 0, false
		}
		rest, is := bytes.CutPrefix(text, k)
		if !is {
			continue
		}
		rest = bytes.TrimLeft(rest, " \t\r\n")
		if after, ok := bytes.CutPrefix(rest, []byte(":")); ok {
			rest = bytes.TrimLeft(after, " \t\r\n")
		} else if len(rest) > 0 {
			return 0, true
		}
		if len(rest) == 0 {
			return 0, len(text) >= maxTail
		}
		if rest[0] == '{' {
			return len(text) - len(rest) + 1, true
		}
		return 0, true
	}
	return 0, true
}

// read goes on to the count's end, and gives what is behind it.
func (a *answer) read(b []byte) []byte {
	for i, ch := range b {
		switch {
		case a.quoted:
			a.quoted = false
		case a.text:
			a.quoted, a.text = ch == '\\', ch != '"'
		case ch == '"':
			a.text = true
		case ch == '{':
			a.depth++
		case ch == '}':
			a.depth--
		}
		if a.object = append(a.object, ch); a.depth == 0 {
			a.take(a.object)
		}
		if a.depth == 0 || len(a.object) >= maxObject {
			a.object = nil
			return b[i+1:]
		}
	}
	return nil
}

// usage is a count in any of the protocols.
type usage struct {
	Input     float64 `json:"input_tokens"` // Anthropic's is without what its cache has; OpenAI's with it
	Output    float64 `json:"output_tokens"`
	CacheRead float64 `json:"cache_read_input_tokens"`
	CacheMade float64 `json:"cache_creation_input_tokens"`
	Prompt    float64 `json:"prompt_tokens"`
	Completes float64 `json:"completion_tokens"`
	Details   struct {
		Cached float64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	PromptDetails struct {
		Cached float64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	GeminiPrompt     float64 `json:"promptTokenCount"`
	GeminiTools      float64 `json:"toolUsePromptTokenCount"`
	GeminiCached     float64 `json:"cachedContentTokenCount"`
	GeminiCandidates float64 `json:"candidatesTokenCount"`
	GeminiThoughts   float64 `json:"thoughtsTokenCount"`
}

// take takes a count as far as it says more than those before.
func (a *answer) take(object []byte) {
	var u usage
	_ = json.Unmarshal(object, &u) // what has another form says nothing, the rest of it is read
	most := func(to *int64, parts ...float64) {
		sum := 0.0
		for _, p := range parts {
			sum += max(0, p)
		}
		*to = max(*to, int64(min(sum, mostTokens)))
	}
	most(&a.spent.Input, u.Input, u.CacheRead, u.CacheMade, u.Prompt, u.GeminiPrompt, u.GeminiTools)
	most(&a.spent.Output, u.Output, u.Completes, u.GeminiCandidates, u.GeminiThoughts)
	most(&a.spent.Cached, u.CacheRead, u.Details.Cached, u.PromptDetails.Cached, u.GeminiCached)
}

// Close counts what the answer said.
func (a *answer) Close() error {
	if a.spent.Input+a.spent.Output > 0 {
		a.c.add(a.spent)
	}
	return nil
}
