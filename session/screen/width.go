package screen

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

const (
	emojiSelector = '\ufe0f'
	joiner        = "\u200d"
)

// runeWidth is how many columns a character takes alone, as the C library counts.
func runeWidth(r rune) int {
	switch {
	case r == 0xad, unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return 1 // format characters that are seen
	case r >= 0x1160 && r < 0x1200, r >= 0xd7b0 && r < 0xd800:
		return 0 // vowels and finals of Korean, which go into the syllable before
	}
	return ansi.WcWidth.StringWidth(string(r))
}

// clusterWidth is how many columns a whole character with its marks takes where
// there is room.
func clusterWidth(v string) int {
	r, n := utf8.DecodeRuneInString(v)
	w := runeWidth(r)
	for _, r := range v[n:] {
		switch {
		case indicator(r), tone(r):
			return 2
		case r == emojiSelector:
			return max(w, ansi.GraphemeWidth.StringWidth(v))
		}
	}
	return w
}

// indicator says that r is half of a flag.
func indicator(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }

// tone says that r colours the skin of the emoji before it.
func tone(r rune) bool { return r >= 0x1f3fb && r <= 0x1f3ff }

// ofEmoji says whether r, which has a width of its own, can belong to what is
// before it: half of a flag to the other half, a tone, and what a joiner binds.
func ofEmoji(before []byte, r rune) bool {
	first, n := utf8.DecodeRune(before)
	switch {
	case indicator(r):
		return indicator(first) && n == len(before)
	case tone(r) || bytes.HasSuffix(before, []byte(joiner)):
		return pictographic(first)
	}
	return false
}

// pictographic says whether a joiner binds r to another of its kind (UAX 29, GB11).
func pictographic(r rune) bool {
	v := string(r) + joiner + "\u2764"
	cluster, _ := ansi.FirstGraphemeCluster(v, ansi.GraphemeWidth)
	return len(cluster) == len(v)
}

// wholeCluster says that v is what one cell may hold: a single visible character
// with its marks, valid, bounded, without controls.
func wholeCluster(v string) bool {
	if len(v) == 0 || len(v) > maxCluster || !utf8.ValidString(v) || strings.ContainsFunc(v, unicode.IsControl) {
		return false
	}
	r, n := utf8.DecodeRuneInString(v)
	if runeWidth(r) < 1 {
		return false
	}
	for i, r := range v[n:] {
		if runeWidth(r) > 0 && !ofEmoji([]byte(v[:n+i]), r) {
			return false
		}
	}
	return true
}
