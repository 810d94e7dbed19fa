package screen

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// titleEvery is how often the title that is told may change: the person's own
// terminal shows it.
const titleEvery = 250 * time.Millisecond

const maxTitles = 8 // on the stack of XTWINOPS 22 and 23

// title is the guest's, sanitised when it comes.
type title struct {
	now   string
	stack []string
	told  string
	at    time.Time
}

func (t *title) clear() { t.now, t.stack = "", nil }

func (t *title) push() {
	if len(t.stack) == maxTitles {
		t.stack = t.stack[1:]
	}
	t.stack = append(t.stack, t.now)
}

func (t *title) pop() {
	if n := len(t.stack); n > 0 {
		t.now, t.stack = t.stack[n-1], t.stack[:n-1]
	}
}

// Title is the title that the guest set: one line of at most 256 characters
// without controls or characters that reorder text. What it says changes at
// most four times a second, however fast the guest changes it.
func (s *Screen) Title() string {
	t := &s.title
	if t.told != t.now {
		if now := s.now(); now.Sub(t.at) >= titleEvery {
			t.told, t.at = t.now, now
		}
	}
	return t.told
}

// sanitize makes one line of plain characters of v, as long as a title may be.
func sanitize(v string) string { return sanitizeTo(v, maxTitle) }

// sanitizeTo makes one line of at most so many plain characters of v.
func sanitizeTo(v string, most int) string {
	var b strings.Builder
	n := 0
	for _, r := range v {
		if n == most {
			break
		}
		// Not graphic are controls, directions, invisible marks, tags and what
		// is for private use. The joiner makes emoji.
		if r == utf8.RuneError || !unicode.IsGraphic(r) && r != '\u200d' {
			continue
		}
		b.WriteRune(r)
		n++
	}
	return strings.TrimSpace(b.String())
}
