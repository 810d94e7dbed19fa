package redact

import (
	"bytes"
	"encoding/json"
	"regexp"
	"sync"
)

// option is an argument that says that the next one is a secret.
var option = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^--?(?:[a-z]{1,20}-)?` + names + `$`)
})

// JSON replaces the secrets in the strings of a JSON document, which is otherwise
// left as it is, byte for byte. Same says that there were none.
func (r *Redactor) JSON(doc []byte, where string) (out []byte, same bool) {
	same = true
	if r.off {
		return doc, true
	}
	at, last := 0, ""
	for i := 0; i < len(doc); i++ {
		if doc[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(doc) && doc[end] != '"' {
			if doc[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(doc))
		text, next := string(doc[i:end]), string(bytes.TrimSpace(doc[min(at, i):i]))
		if json.Unmarshal(doc[i:end], &text) != nil {
			i = end - 1
			continue // not JSON: it is left, and whoever reads it says so
		}
		clean := r.Text(text, where)
		isValue := bytes.HasSuffix(bytes.TrimSpace(doc[:i]), []byte(":")) && rules().secretName.MatchString(last)
		if clean == text && len(text) >= 6 && (next == "," && option().MatchString(last) || isValue) {
			clean = words("value of a secret setting")
			r.count("value of a secret setting", where)
		}
		if clean != text {
			same = false
			quoted, err := json.Marshal(clean)
			if err != nil {
				quoted = []byte(`""`) // never: it is a string
			}
			out = append(append(out, doc[at:i]...), quoted...)
		} else {
			out = append(out, doc[at:end]...)
		}
		at, last = end, text
		i = end - 1
	}
	return append(out, doc[at:]...), same
}
