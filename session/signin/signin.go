// Package signin finds, on an agent's screen, the address of a page for signing in that
// leads back to a port of its own, as OAuth's native applications have it (RFC 8252). The
// text is hostile: what is found is only ever offered to a person.
package signin

import (
	"strings"
	"unicode/utf8"

	"stepbox/session/api"
)

const (
	maxText = 5000 // bytes of a text that may be an address
	maxSeen = 8    // addresses that are looked at
)

// Find looks for the last one on a screen, given by its rows; the zero Page is none. An
// address goes on in the next row where it fills the one that it is in; within a frame,
// the room in it.
func Find(rows []string) (found api.WebPage) {
	lines := unframed(rows)
	for i, seen := 0, 0; i < len(lines) && seen < maxSeen; i++ {
		_, rest, ok := strings.Cut(lines[i].text, "https://")
		if !ok {
			continue
		}
		seen++
		for n := i; n+1 < len(lines) && lines[n].full && len(rest) < maxText; n++ {
			more, same := strings.CutPrefix(lines[n+1].text, lines[i].indent())
			if !same {
				break
			}
			rest += more
		}
		if end := strings.IndexFunc(rest, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r) }); end >= 0 {
			rest = rest[:end]
		}
		if p, err := api.ParseWebPage("https://" + rest); err == nil && p.Port != 0 {
			found = p
		}
	}
	return found
}

// line is a row without the frame around it.
type line struct {
	text   string
	framed bool
	full   bool // a text that was broken goes on in the next one
}

func (l line) indent() string { return l.text[:len(l.text)-len(strings.TrimLeft(l.text, " "))] }

// sides are what a frame's left and right is drawn with.
const sides = "│┃║|"

func unframed(rows []string) []line {
	out := make([]line, len(rows))
	for i, r := range rows {
		r = strings.TrimRight(r, " ")
		out[i].text = r
		if inner := strings.TrimLeft(r, " "); utf8.RuneCountInString(inner) > 1 {
			_, left := utf8.DecodeRuneInString(inner)
			last, right := utf8.DecodeLastRuneInString(inner)
			if strings.ContainsRune(sides, last) && strings.Contains(sides, inner[:left]) {
				out[i] = line{text: strings.TrimRight(inner[left:len(inner)-right], " "), framed: true}
			}
		}
	}
	for from := 0; from < len(out); { // rows that are framed alike have the same room
		to, wide := from, 0
		for ; to < len(out) && out[to].framed == out[from].framed; to++ {
			wide = max(wide, utf8.RuneCountInString(out[to].text))
		}
		for ; from < to; from++ {
			out[from].full = from+1 < to && utf8.RuneCountInString(out[from].text) == wide
		}
	}
	return out
}
