package changes

import (
	"unicode"
	"unicode/utf8"
)

// Bounds of what is compared within lines: for a whole diff, in pairs of words,
// and for one pair of lines.
const (
	maxWords     = 4 << 20
	maxLineWords = 64 << 10
)

// match finds the lines that went and came as another: all in order when there
// are as many, else those that are alike.
func (b *preparing) match(gone, came []text) {
	from := 0
	for i := range gone {
		if len(gone) == len(came) {
			gone[i].pair, came[i].pair = i, i
			continue
		}
		for j := from; j < len(came) && j < from+50 && b.words > 0; j++ {
			b.words -= 64
			if alike(gone[i].string, came[j].string) {
				gone[i].pair, came[j].pair = j, i
				from = j + 1
				break
			}
		}
	}
}

// alike says whether most of two lines is the same at their starts and ends.
func alike(a, b string) bool {
	from, to := differs(a, b)
	return (from+len(a)-to)*2 > max(len(a), len(b))
}

// span is a part of a line, in bytes.
type span struct{ from, to int }

// differs is the parts of a line that aren't in the one beside it, by words;
// none when so little is common that marks would say nothing.
func (b *preparing) differs(line, other string) []span {
	from, to := differs(line, other)
	tail := len(line) - to
	if from >= to {
		return nil
	}
	var out []span
	mine, theirs := words(line[from:to]), words(other[from:max(from, len(other)-tail)])
	cost := len(mine) * len(theirs)
	if cost > maxLineWords || cost > b.words {
		out = []span{{from, to}}
	} else {
		b.words -= cost
		out = missing(mine, theirs, from)
	}
	marked := 0
	for _, s := range out {
		marked += s.to - s.from
	}
	if (len(line)-marked)*10 < len(line)*3 {
		return nil
	}
	return out
}

// missing is the parts of the first list of words that aren't in the longest
// list of words that both have in order.
func missing(a, b []string, at int) []span {
	n := len(b) + 1
	best := make([]int32, (len(a)+1)*n) // the longest of what is left of both
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				best[i*n+j] = best[(i+1)*n+j+1] + 1
			} else {
				best[i*n+j] = max(best[(i+1)*n+j], best[i*n+j+1])
			}
		}
	}
	var out []span
	j := 0
	for i, w := range a {
		for j < len(b) && a[i] != b[j] && best[i*n+j+1] >= best[i*n+j] {
			j++
		}
		if j < len(b) && a[i] == b[j] {
			j++
		} else if k := len(out) - 1; k >= 0 && out[k].to == at {
			out[k].to += len(w)
		} else {
			out = append(out, span{at, at + len(w)})
		}
		at += len(w)
	}
	return out
}

// words splits text into names and numbers, runs of blanks, and single other
// characters.
func words(s string) []string {
	var out []string
	start, last := 0, 0 // of the word that is being read
	for i, r := range s {
		kind := 0
		switch {
		case letter(r):
			kind = 1
		case r == ' ':
			kind = 2
		}
		if i > start && (kind == 0 || kind != last) {
			out = append(out, s[start:i])
			start = i
		}
		last = kind
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

func letter(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// mark splits pieces so that parts of the line are marked.
func mark(pieces []Piece, parts []span) []Piece {
	if len(parts) == 0 {
		return pieces
	}
	var out []Piece
	at := 0
	for _, p := range pieces {
		end := at + len(p.Text)
		for at < end {
			for len(parts) > 0 && parts[0].to <= at {
				parts = parts[1:]
			}
			to, marked := end, false
			if len(parts) > 0 {
				if marked = parts[0].from <= at; marked {
					to = min(end, parts[0].to)
				} else {
					to = min(end, parts[0].from)
				}
			}
			rest := len(p.Text) - (end - at)
			out = append(out, Piece{Text: p.Text[rest : rest+to-at], Kind: p.Kind, Marked: marked})
			at = to
		}
	}
	return out
}

// differs is the part of a, in bytes and between words, that isn't its common
// start or end with b.
func differs(a, b string) (from, to int) {
	for from < len(a) && from < len(b) {
		r, n := utf8.DecodeRuneInString(a[from:])
		s, _ := utf8.DecodeRuneInString(b[from:])
		if r != s {
			break
		}
		from += n
	}
	for from > 0 && (inWord(a, from) || inWord(b, from)) {
		_, n := utf8.DecodeLastRuneInString(a[:from])
		from -= n
	}
	to = len(a)
	end := len(b)
	for to > from && end > from {
		r, n := utf8.DecodeLastRuneInString(a[:to])
		s, m := utf8.DecodeLastRuneInString(b[:end])
		if r != s || to-n < from || end-m < from {
			break
		}
		to -= n
		end -= m
	}
	for to < len(a) && (inWord(a, to) || inWord(b, end)) {
		_, n := utf8.DecodeRuneInString(a[to:])
		to += n
		end += n
	}
	return from, to
}

// inWord says whether a place in a text is in the middle of a word.
func inWord(s string, at int) bool {
	if at <= 0 || at >= len(s) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _ := utf8.DecodeRuneInString(s[at:])
	return letter(before) && letter(after)
}
