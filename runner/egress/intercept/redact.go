package intercept

import (
	"bytes"
	"net/http"
	"strings"

	"golang.org/x/text/transform"
)

// redactor puts asterisks in the place of secrets, as many as these have letters, so that
// lengths stay as they were said. It is a transform.Transformer: of a text that comes in
// pieces it holds back only what may be the beginning of a secret.
type redactor struct {
	transform.NopResetter
	secrets []string // the longest first; none is empty or as long as the window
}

// Transform copies src to dst without secrets.
func (r *redactor) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	ready := len(src)
	if !atEOF {
		ready -= r.begun(src)
	}
	if ready > len(dst) {
		// A secret isn't cut where the room ends.
		ready, err = len(dst)-r.begun(src[:len(dst)]), transform.ErrShortDst
	} else if ready < len(src) {
		err = transform.ErrShortSrc
	}
	n := copy(dst, src[:ready])
	r.clean(dst[:n])
	return n, n, err
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
