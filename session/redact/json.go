package redact

import (
	"bytes"
	"encoding/json"
	"regexp"
	"sync"
)

// option is an argument that says that the next one is a secret.
var option = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^--?(?:[a-z0-9]{1,20}-){0,3}` + names + `$`)
})

// JSON replaces the secrets in the strings of a JSON document, which is otherwise
// left as it is, byte for byte. Names of members are left; those before a string in a
// list are looked at with it, for they may be a program's arguments. Same says that
// there were none.
func (r *Redactor) JSON(doc []byte, where string) (out []byte, same bool) {
	same = true
	at, last := 0, "" // what is written ends here, with this string
	member := ""      // the name of the one that a string is in, or its list
	var before []byte // strings of the list
	files := false    // one of them is a program that takes files
	for !r.off {
		i := bytes.IndexByte(doc[at:], '"')
		if i < 0 {
			break
		}
		i += at
		end := quoted(doc, i)
		between := bytes.TrimSpace(doc[at:i])
		text, bad := unquoted(doc[i:end])
		listed := string(between) == ","
		if !listed {
			before, files = nil, false
		}
		if files = files || r.recording && listed && takesFiles([]byte(last)); files {
			before = nil
		}
		out = append(out, doc[at:i]...)
		at = end
		if bad || bytes.HasPrefix(bytes.TrimLeft(doc[end:], " \t\r\n"), []byte(":")) {
			out, last, member, before = append(out, doc[i:end]...), text, text, nil
			continue
		}
		clean := r.member(member, before, text, where)
		if clean == text && len(text) >= 6 && !files && !r.exact(member) && (!r.recording || plain(text)) && (listed && option().MatchString(last) || bytes.HasSuffix(between, []byte(":")) && rules().secretName().MatchString(last)) {
			clean = r.words(settingKind)
			r.count(settingKind, where)
		}
		last, before = text, further(before, text)
		if clean == text {
			out = append(out, doc[i:end]...)
			continue
		}
		same = false
		b, _ := json.Marshal(clean) // a string can be
		out = append(out, b...)
	}
	return append(out, doc[at:]...), same
}

// quoted is where the string ends that begins at a place.
func quoted(doc []byte, at int) int {
	for at++; at < len(doc) && doc[at] != '"'; at++ {
		if doc[at] == '\\' {
			at++
		}
	}
	return min(at+1, len(doc))
}

// unquoted is the text of a JSON string; bad: it isn't one, and whoever reads it says so.
func unquoted(s []byte) (text string, bad bool) {
	if n := len(s) - 1; n > 0 && s[n] == '"' && !bytes.ContainsFunc(s[1:n], func(c rune) bool { return c < ' ' || c > '~' || c == '\\' }) {
		return string(s[1:n]), false
	}
	bad = json.Unmarshal(s, &text) != nil
	return text, bad
}
