package find

import (
	"bytes"
	"iter"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/text/unicode/norm"

	"stepbox/session/api"
	"stepbox/store"
)

// lineMost bounds a line of what was printed, but for a word at its end, and shownMost what is told of one, in bytes.
const (
	lineMost  = 4096
	shownMost = 200
)

// line is a piece of text and when it came to be.
type line struct {
	at   time.Duration // since the terminal's record began
	text string
}

// piece is a file of a record, after the line that the file before ends in: that one may
// go on.
func piece(r *store.Recording, n int64) iter.Seq2[store.Frame, error] {
	return func(yield func(store.Frame, error) bool) {
		var before []byte
		var at time.Duration
		for f, err := range r.File(n - 1) {
			if err == nil && f.Kind == store.FrameOutput { // what is damaged is told by whoever reads that file
				before, at = append(before, f.Data...), f.At
			}
		}
		before = before[max(0, len(before)-lineMost):]
		begun, state := 0, byte(0)
		for pos := 0; pos < len(before); {
			seq, width, size, now := ansi.DecodeSequence(before[pos:], state, nil)
			if pos, state = pos+max(size, 1), now; width == 0 && ends(seq) {
				begun = pos
			}
		}
		if begun == len(before) || yield(store.Frame{Kind: store.FrameOutput, At: at, Data: before[begun:]}, nil) {
			r.File(n)(yield)
		}
	}
}

// printed makes lines of what was printed: the text between the sequences of a
// terminal, those that move the cursor elsewhere ending a line. Lines that came before
// are left out: a program that draws its screen again and again has said nothing new.
// It stops when yield does.
func printed(frames func(func(store.Frame, error) bool), yield func(line) bool) (err error) {
	var all []byte
	type mark struct {
		from int
		at   time.Duration
	}
	var marks []mark
	frames(func(f store.Frame, ferr error) bool {
		if err = ferr; err == nil && f.Kind == store.FrameOutput {
			marks, all = append(marks, mark{len(all), f.At}), append(all, f.Data...)
		}
		return err == nil // what came before the damage is text as well
	})
	seen := make(map[string]bool)
	var text strings.Builder
	begun, next := 0, 0
	flush := func() bool {
		s := strings.TrimSpace(text.String())
		text.Reset()
		if s == "" || seen[s] {
			return true
		}
		seen[s] = true
		for next < len(marks) && marks[next].from <= begun {
			next++
		}
		return yield(line{marks[next-1].at, s})
	}
	var state byte
	for pos := 0; pos < len(all); {
		seq, width, n, now := ansi.DecodeSequence(all[pos:], state, nil)
		n = max(n, 1)
		switch {
		case width == 0 && ends(seq), text.Len() > lineMost && width > 0 && between(bytes.Runes(seq)[0]), text.Len() > 2*lineMost:
			if !flush() {
				return err
			}
		case width == 0 && len(seq) > 1 && seq[len(seq)-1] == 'C', len(seq) == 1 && seq[0] == '\t':
			text.WriteByte(' ')
		}
		if width > 0 {
			if text.Len() == 0 {
				begun = pos
			}
			text.Write(seq)
		}
		pos, state = pos+n, now
	}
	flush()
	return err
}

// ends says whether a sequence ends the line that was printed: the cursor goes on
// somewhere else.
func ends(seq []byte) bool {
	if len(seq) < 2 || seq[0] != 0x1b {
		return len(seq) == 1 && strings.IndexByte("\n\r\v\f\b", seq[0]) >= 0
	}
	last := seq[len(seq)-1]
	switch {
	case len(seq) == 2:
		return strings.IndexByte("DEM8c", last) >= 0
	case seq[1] != '[':
		return false
	case last == 'J', last == 'K': // what is before the cursor is erased
		return bytes.ContainsAny(seq, "12")
	case last == 'h', last == 'l': // the other screen
		return bytes.Contains(seq, []byte("47")) || bytes.Contains(seq, []byte("1049"))
	case last == 'u':
		return len(seq) == 3
	}
	return strings.IndexByte("ABDEFGHIZ`adefr", last) >= 0
}

// between says whether a letter is no part of a word.
func between(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }

// tokens takes text apart as the index does: into runs of letters and digits, without
// case and marks.
func tokens(s string) []string {
	ascii := true
	for i := range len(s) {
		ascii = ascii && s[i] < 0x80
	}
	if !ascii {
		s = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFD.String(s))
	}
	return strings.FieldsFunc(strings.ToLower(s), between)
}

// in says whether a text has the word.
func (w word) in(text []string) bool {
	want := w.tokens
next:
	for i := 0; len(want) > 0 && i+len(want) <= len(text); i++ {
		for k, t := range want {
			if text[i+k] != t && !(w.begun && k == len(want)-1 && strings.HasPrefix(text[i+k], t)) {
				continue next
			}
		}
		return true
	}
	return false
}

// shown is a line as it is told: escaped, and of a long one the part around a word.
func shown(s string, ws []word) string {
	if len(s) > shownMost {
		at := -1
		for _, w := range ws {
			if len(w.tokens) > 0 && at < 0 {
				at = strings.Index(strings.ToLower(s), w.tokens[0])
			}
		}
		if from := min(max(0, at-shownMost/4), len(s)); from > 0 { // cases may differ in length
			s = "…" + strings.ToValidUTF8(s[from:], "")
		}
	}
	return api.Trim(api.Escape(s), shownMost)
}
