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
	r.clean(r.buf) // whole ones first: one may end with what another begins with
	if r.good = len(r.buf); r.err == nil {
		r.good -= r.begun(r.buf)
	}
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

// text is a text without secrets, whatever case their letters are in.
func (r *redactor) text(t string) string {
	b, small := []byte(t), lower(t)
	for _, s := range r.secrets {
		s = lower(s)
		for at := 0; ; at += len(s) {
			i := strings.Index(small[at:], s)
			if i < 0 {
				break
			}
			at += i
			copy(b[at:at+len(s)], strings.Repeat("*", len(s)))
		}
	}
	return string(b)
}

// lower is a text with its ASCII letters small, byte for byte.
func lower(t string) string {
	b := []byte(t)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// header cleans a header's values. What has a secret for a name, of which other cases are
// the same, is taken out.
func (r *redactor) header(h http.Header) {
	for name, values := range h {
		if r.text(name) != name {
			delete(h, name)
		}
		for i := range values {
			values[i] = r.text(values[i])
		}
	}
}
