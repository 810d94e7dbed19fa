package policy

import "strings"

// shellWord reads one word from the beginning of s, if it is one whose text any
// shell knows without running anything.
func shellWord(s string) (text, rest string, ok bool) {
	var b strings.Builder
	i := 0
loop:
	for i < len(s) {
		switch c := s[i]; {
		case c == '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return "", "", false
			}
			b.WriteString(s[i+1 : i+1+end])
			i += end + 2
		case c == '"':
			for i++; ; i++ {
				if i >= len(s) || s[i] == '$' || s[i] == '`' || s[i] == '\\' || s[i] == '!' {
					// Escapes in double quotes differ between shells.
					return "", "", false
				}
				if s[i] == '"' {
					break
				}
				b.WriteByte(s[i])
			}
			i++
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("_@%+=:,./-", c) >= 0:
			b.WriteByte(c)
			i++
		default:
			break loop
		}
	}
	if i == 0 || s[0] == '=' || strings.HasPrefix(s, "-") {
		return "", "", false
	}
	return b.String(), s[i:], true
}
