package find

import (
	"iter"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"stepbox/session/api"
	"stepbox/session/screen"
	"stepbox/store"
)

// shownMost is what is told of a line, in bytes.
const shownMost = 200

// A line is found when it left the screen, or rested there: when nothing was printed for
// that long, and else once a second.
const (
	still  = 250 * time.Millisecond
	moving = time.Second
)

// line is a line that was printed, and when it was there.
type line struct {
	at   time.Duration // since the terminal's record began
	text string
}

// printed yields the lines of a file of a record, those of which that were on the screen
// before and those that came already left out: a program that draws its screen again and
// again has said nothing new. It stops when yield does, and when there is too much.
func printed(frames iter.Seq2[store.Frame, error], yield func(line) bool) {
	seen := make(map[string]bool)
	size, more := 0, false // before the first frame nothing is new
	var at, rested time.Duration
	pass := func(text string) {
		if text = strings.Join(strings.Fields(text), " "); text == "" || seen[text] || !more {
			return
		}
		seen[text], size = true, size+len(text)
		more = yield(line{at, text}) && size < printedMost
	}
	lines := screen.NewLines(80, 24, nil, pass) // a file whose keyframe was too large doesn't say how large it is
	more = true
	for f, err := range frames {
		if err != nil { // what came before the damage is text as well
			break
		}
		switch f.Kind {
		case store.FrameKey:
			more, lines = false, screen.NewLines(f.Cols, f.Rows, f.Data, pass)
			lines.Rest()
			more = true
		case store.FrameResize:
			lines.Resize(f.Cols, f.Rows)
		case store.FrameOutput:
			if f.At-at >= still || f.At-rested >= moving {
				lines.Rest()
				rested = f.At
			}
			at = f.At
			_, _ = lines.Write(f.Data) // it takes everything
		}
		if !more {
			return
		}
	}
	lines.Rest()
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
