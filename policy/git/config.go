package git

import "strings"

// entry is one setting of a configuration file.
type entry struct {
	section, subsection, key string // section and key in lower case
	value                    string
	bare                     bool // it has no "=", which means true
}

// core is what a configuration sets a key of core to, at last; was when it doesn't.
func core(data []byte, key, was string) string {
	for _, e := range parseConfig(data) {
		if e.section == "core" && e.subsection == "" && e.key == key {
			was = e.value
		}
	}
	return was
}

// parseConfig reads what a git configuration file sets, as git-config(1) has
// it, without the files that it includes. What git would refuse is skipped.
func parseConfig(data []byte) []entry {
	var out []entry
	lines := strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n")
	section, subsection := "", ""
	for i := 0; i < len(lines); i++ {
		rest := strings.TrimSpace(lines[i])
		if strings.HasPrefix(rest, "[") {
			var ok bool
			if section, subsection, rest, ok = parseHeader(rest); !ok {
				section, subsection = "", ""
				continue
			}
			rest = strings.TrimSpace(rest)
		}
		if rest == "" || rest[0] == '#' || rest[0] == ';' {
			continue
		}
		key, raw, valued := strings.Cut(rest, "=")
		if !valued {
			key, _ = parseValue(rest) // a comment may follow
		}
		e := entry{section: section, subsection: subsection, key: strings.ToLower(strings.TrimSpace(key)), bare: !valued}
		if e.section == "" || !name(e.key) {
			continue
		}
		var more bool
		for e.value, more = parseValue(raw); more && i+1 < len(lines); {
			i++
			if len(raw) >= maxValue {
				more = strings.HasSuffix(strings.TrimSuffix(lines[i], "\r"), `\`)
				continue
			}
			raw = strings.TrimSuffix(strings.TrimSuffix(raw, "\r"), `\`) + lines[i]
			e.value, more = parseValue(raw)
		}
		out = append(out, e)
	}
	return out
}

// maxValue is how many bytes of a value are read that goes on over lines; the
// rest is passed over. Each line has all before it read again.
const maxValue = 4 << 10

// name says whether a key is one.
func name(key string) bool {
	return key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// parseHeader reads [section], [section "subsection"] or [section.subsection].
func parseHeader(line string) (section, subsection, rest string, ok bool) {
	i := 1
	for i < len(line) && line[i] != ']' && line[i] != '"' && line[i] != ' ' && line[i] != '\t' {
		i++
	}
	section = strings.ToLower(line[1:i])
	section, subsection, _ = strings.Cut(section, ".")
	rest = strings.TrimLeft(line[i:], " \t")
	if strings.HasPrefix(rest, `"`) {
		var b strings.Builder
		for i = 1; i < len(rest) && rest[i] != '"'; i++ {
			if rest[i] == '\\' && i+1 < len(rest) {
				i++
			}
			b.WriteByte(rest[i])
		}
		if i >= len(rest) {
			return "", "", "", false
		}
		subsection, rest = b.String(), strings.TrimLeft(rest[i+1:], " \t")
	}
	rest, ok = strings.CutPrefix(rest, "]")
	return section, subsection, rest, ok
}

// parseValue reads what stands behind the "=": quotes, escapes and a comment
// taken off. It says whether the value goes on in the next line.
func parseValue(raw string) (value string, more bool) {
	raw = strings.TrimLeft(strings.TrimSuffix(raw, "\r"), " \t")
	var b strings.Builder
	quoted, end := false, 0 // spaces after end are dropped
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\' && i+1 == len(raw):
			return b.String(), true
		case c == '\\':
			i++
			switch raw[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'b':
				b.WriteByte('\b')
			default:
				b.WriteByte(raw[i])
			}
			end = b.Len()
		case c == '"':
			quoted = !quoted
			end = b.Len()
		case (c == '#' || c == ';') && !quoted:
			return b.String()[:end], false
		default:
			b.WriteByte(c)
			if quoted || c != ' ' && c != '\t' {
				end = b.Len()
			}
		}
	}
	return b.String()[:end], false
}

// Settings reads what a configuration file sets, by section.subsection.key,
// section and key in lower case; of a key that is set more than once, all its
// values. The file may be hostile.
func Settings(data []byte) map[string]string {
	out := map[string]string{}
	for _, e := range parseConfig(data[:min(len(data), maxConfig)]) {
		key := e.section + "." + e.key
		if e.subsection != "" {
			key = e.section + "." + e.subsection + "." + e.key
		}
		out[key] += e.value + "\x00"
	}
	return out
}
