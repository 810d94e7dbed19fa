package intercept

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// redactor puts asterisks in the place of secrets, as many as these have letters, so that
// lengths stay as they were said.
type redactor struct {
	secrets []string // the longest first; none is empty, or as long as window
}

// window is how much is looked at together.
const window = 32 << 10

// reader reads without secrets, wherever they are cut. It holds back only what may be the
// beginning of one, so that what streams does.
type reader struct {
	*redactor
	from io.Reader
	buf  []byte // what was read, at most window
	done int    // bytes of buf that were handed out
	good int    // bytes of buf that may be
	err  error  // comes after them
}

// Read gives what came, at once.
func (r *reader) Read(p []byte) (int, error) {
	for r.done == r.good && len(p) > 0 {
		if r.err != nil {
			return 0, r.err
		}
		r.more()
	}
	n := copy(p, r.buf[r.done:r.good])
	r.done += n
	return n, nil
}

func (r *reader) more() {
	if r.buf == nil {
		r.buf = make([]byte, 0, window)
	}
	held := copy(r.buf[:window], r.buf[r.done:])
	var n int
	n, r.err = r.from.Read(r.buf[held:window])
	r.buf, r.done = r.buf[:held+n], 0
	if r.good = len(r.buf); r.err == nil {
		r.good -= r.begun(r.buf)
	}
	r.clean(r.buf[:r.good])
}

// clean replaces all that are in a text.
func (r *redactor) clean(b []byte) {
	for _, s := range r.secrets {
		for at := 0; ; at += len(s) {
			i := bytes.Index(b[at:], []byte(s))
			if i < 0 {
				break
			}
			at += i
			copy(b[at:at+len(s)], strings.Repeat("*", len(s)))
		}
	}
}

// begun is how many bytes at a text's end may be the beginning of a secret.
func (r *redactor) begun(b []byte) (most int) {
	for _, s := range r.secrets {
		for n := min(len(b), len(s)-1); n > most; n-- {
			if bytes.HasSuffix(b, []byte(s[:n])) {
				most = n
			}
		}
	}
	return most
}

// header cleans a header's values.
func (r *redactor) header(h http.Header) {
	for _, values := range h {
		for i := range values {
			b := []byte(values[i])
			r.clean(b)
			values[i] = string(b)
		}
	}
}
