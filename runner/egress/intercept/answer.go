package intercept

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

// explain answers in words, in the form that APIs of models and others have for errors, so
// that a program shows them.
func explain(w http.ResponseWriter, status int, why string) {
	type problem struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	why = "stepbox: " + why
	body, _ := json.Marshal(struct {
		Type    string  `json:"type"`
		Error   problem `json:"error"`
		Message string  `json:"message"`
	}{"error", problem{"stepbox_refused", "stepbox_refused", why}, why}) // it is made of strings
	clear(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", "false") // clients of models would try again
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // whoever asked may be gone
}

// dropped are headers of answers that would have a program go another way the next time,
// or carry a session of its own.
var dropped = []string{"Set-Cookie", "Set-Cookie2", "Alt-Svc", "Public-Key-Pins"}

// answer makes the real host's answer one for the sandbox.
func (c *connection) answer(resp *http.Response) error {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		both, ok := resp.Body.(io.ReadWriteCloser)
		if !ok {
			return errors.New("it switched protocols in a way that can't be followed")
		}
		resp.Status = ""       // what the host says there would pass
		c.cleanUp(resp.Header) // by none of cleanWriter's
		resp.Body = struct {
			io.Reader
			io.WriteCloser
		}{&reader{redactor: &c.redactor, from: both}, both}
		return nil
	}
	body, err := decoded(resp)
	if err != nil {
		return err
	}
	body = &reader{redactor: &c.redactor, from: body}
	var to io.WriteCloser
	if c.in.o.Answer != nil {
		to = c.in.o.Answer(c.Host, resp.Header)
	}
	resp.Body = &cleanBody{Reader: body, from: resp.Body, to: to, end: func() { c.header(http.Header(resp.Trailer)) }}
	return nil
}

// decoded is an answer's body as it is without a coding, which nobody asked for. Some
// hosts have files that are coded once and for all.
func decoded(resp *http.Response) (io.Reader, error) {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(resp.Header.Values("Content-Encoding"), ",")))
	if coding == "" || coding == "identity" || resp.Body == http.NoBody || resp.Request.Method == http.MethodHead {
		return resp.Body, nil
	}
	if coding != "gzip" && coding != "x-gzip" {
		return nil, errors.New("its answer has a coding that can't be looked through, and that nobody asked for")
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	return &unzipped{from: resp.Body}, nil
}

// unzipped begins to read only when it is read.
type unzipped struct {
	from io.Reader
	zip  *gzip.Reader
}

func (u *unzipped) Read(p []byte) (n int, err error) {
	if u.zip == nil {
		if u.zip, err = gzip.NewReader(u.from); err != nil {
			return 0, err
		}
	}
	return u.zip.Read(p)
}

// cleanBody is an answer's body without the credential.
type cleanBody struct {
	io.Reader
	from io.Closer
	to   io.WriteCloser // is told what is read; nil: nobody
	end  func()         // of what comes after the body
	once sync.Once
}

func (b *cleanBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if n > 0 && b.to != nil {
		_, _ = b.to.Write(p[:n]) // it is told, and doesn't matter to who reads
	}
	if err == io.EOF {
		b.end()
	}
	return n, err
}

func (b *cleanBody) Close() error {
	b.once.Do(func() {
		if b.to != nil {
			_ = b.to.Close() // as above
		}
	})
	return b.from.Close()
}

// cleanWriter sends headers without the credential, and no answer before the answer.
type cleanWriter struct {
	http.ResponseWriter
	c *connection
}

// Unwrap is for http.ResponseController.
func (w *cleanWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// cleanUp makes the header of an answer one for the sandbox.
func (c *connection) cleanUp(h http.Header) {
	for _, name := range dropped {
		h.Del(name)
	}
	c.header(h)
}

// WriteHeader sends the header.
func (w *cleanWriter) WriteHeader(status int) {
	if status < 200 {
		return
	}
	w.c.cleanUp(w.Header())
	w.ResponseWriter.WriteHeader(status)
}
