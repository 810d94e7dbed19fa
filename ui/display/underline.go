package display

import (
	"bytes"
	"regexp"
	"sync"
)

// looks are sequences that may have an underline's kind or colour among others.
var looks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9;:]*(58;|4:)[0-9;:]*m`) })

// whole writes the kinds and colours of underlines so that terminals that don't know them
// pass over them: with colons, each in a sequence of its own, behind a plain underline. As
// they are put together, such a terminal takes their parts for other looks, and the text
// blinks or is faint.
func whole(text []byte) []byte {
	if !bytes.Contains(text, []byte("58;")) && !bytes.Contains(text, []byte("4:")) {
		return text
	}
	return looks().ReplaceAllFunc(text, func(seq []byte) []byte {
		parts := bytes.Split(seq[2:len(seq)-1], []byte(";"))
		var plain [][]byte
		var own []byte
		for i := 0; i < len(parts); {
			n, first := 1, string(parts[i])
			if colour := first == "38" || first == "48" || first == "58"; colour && i+1 < len(parts) {
				n = min(max(1, map[string]int{"2": 5, "5": 3}[string(parts[i+1])]), len(parts)-i)
			}
			part := parts[i : i+n]
			switch {
			case first == "58" && n > 1:
				if n == 5 {
					part[1] = []byte("2:") // no colour space is named
				}
				own = append(append(append(own, "\x1b["...), bytes.Join(part, []byte(":"))...), 'm')
			case bytes.HasPrefix(part[0], []byte("4:")):
				plain = append(plain, []byte("4"))
				own = append(append(append(own, "\x1b["...), part[0]...), 'm')
			default:
				plain = append(plain, part...)
			}
			i += n
		}
		if len(plain) == 0 {
			return own
		}
		return append(append(append([]byte("\x1b["), bytes.Join(plain, []byte(";"))...), 'm'), own...)
	})
}
