package paint

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
)

// Signs is how our own signs are drawn: lines, marks, arrows. What a terminal shows of
// the agent is drawn as it is.
type Signs int

const (
	Unicode Signs = iota
	ASCII         // with ordinary characters alone
	Words         // without boxes, and with words: for ears and braille
)

// Screen is cells on which signs are drawn in one of these ways.
type Screen struct {
	uv.ScreenBuffer
	Signs Signs
	Point *uv.Position // of Words: where what has the focus begins, as it was drawn last
}

// SignsOf is how signs are drawn on a screen.
func SignsOf(dst uv.Screen) Signs {
	if s, ok := dst.(Screen); ok {
		return s.Signs
	}
	return Unicode
}

// Point says where what has the focus begins, for those whose reader follows the cursor.
func Point(dst uv.Screen, at uv.Position) {
	if s, ok := dst.(Screen); ok && s.Point != nil {
		*s.Point = at
	}
}

// plainly is the one table of signs: what stands for each in ASCII, and in words. Every
// character of ours above 0x7e is here.
var plainly = [][3]string{
	{"…", "~", "..."}, {"·", "-", ","}, {"⋯", "~", "..."}, {"—", "-", "-"}, {"–", "-", "-"}, {"−", "-", "-"},
	{"✓", "+", "ok"}, {"✗", "x", "no"}, {"◆", "*", "held"}, {"◇", "o", ""}, {"↶", "<", "rolled back"}, {"≠", "!=", "not equal"}, {"⚠", "!", "warning:"},
	{"●", "*", "(*)"}, {"○", "o", "( )"}, {"◐", "o", "(-)"}, {"•", ".", "."}, {"‖", "=", "paused"}, {"∅", "0", "none"}, {"≡", "=", "same:"}, {"↻", "@", ""}, {"⇑", "^", "applied"},
	{"▸", ">", ">"}, {"▾", "v", ""}, {"▶", ">", ""}, {"›", ">", ">"}, {"‹", "<", "<"}, {"»", ">", ">"},
	{"↓", "v", " down "}, {"↑", "^", " up "}, {"→", ">", "to"}, {"←", "<", "from"}, {"↗", ">", "to"}, {"×", "x", "x"}, {"±", "~", "about "},
	{"─", "-", "-"}, {"━", "=", "-"}, {"│", "|", " "}, {"▐", "#", " "}, {"▌", "|", " "}, {"▮", "#", "#"}, {"▯", ".", "."}, {"▪", ".", ""}, {"■", "#", ""},
	{"“", `"`, `"`}, {"”", `"`, `"`}, {"’", "'", "'"}, {"█", "#", ""}, {"┼", "+", ""}, {"┴", "+", ""}, {"┬", "+", ""}, {"┤", "+", ""}, {"⎯", "-", ""}, {api.Break, "^J", "^J"},
}

// writers are two for each way: the first writes text with ASCII signs, or with words, the
// second what isn't ours, so that it isn't taken for either.
// Made on first use: most processes draw nothing.
var writers = sync.OnceValues(func() (r, s [Words + 1]*strings.Replacer) {
	for way := ASCII; way <= Words; way++ {
		var to, spelled []string
		if way == Words { // what is said in words beside it needs no sign
			to = append(to, " · ", ", ", " › ", ", ", " — ", " - ")
			for _, mark := range []string{"✓", "✗", "◆", "◇", "↶", "‖", "⇑"} {
				to = append(to, mark+" ", "")
			}
		}
		for _, sign := range plainly {
			to = append(to, sign[0], sign[way])
			if sign[0] != api.Break {
				spelled = append(spelled, sign[0], fmt.Sprintf(`\u%04x`, []rune(sign[0])[0]))
			}
		}
		r[way], s[way] = strings.NewReplacer(to...), strings.NewReplacer(spelled...)
	}
	return r, s
})

// bare marks stand alone: in a list's column, where the row says the same in words, or
// before what doesn't.
var bare = sync.OnceValue(func() map[string]string {
	out := map[string]string{"●": "*", "·": "-"}
	for _, mark := range strings.Fields("✓ ✗ ◆ ◇ ↶ ‖ ⇑ ⋯ ○ ◐") {
		out[mark] = " "
	}
	for _, sign := range plainly {
		out[sign[0]+" "] = strings.TrimSuffix(sign[Words]+" ", "  ")
	}
	return out
})

// shown is clean text as it is drawn on a screen.
func shown(dst uv.Screen, s string) string {
	way := SignsOf(dst)
	if way == Unicode || ascii(s) {
		return s
	}
	if word, ok := bare()[s]; ok && way == Words {
		return word
	}
	own, _ := writers()
	s = own[way].Replace(s)
	return strings.Map(func(r rune) rune {
		if r >= 0x2800 && r <= 0x28ff { // of what turns
			return '*'
		}
		return r
	}, s)
}

// InASCII is text with our signs as ASCII has them, and a ? for what else it doesn't have.
func InASCII(s string) string {
	own, _ := writers()
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return '?'
		}
		return r
	}, own[ASCII].Replace(s))
}

// Spelled is text of the agent's in which nothing is drawn as a sign of ours, or as what
// stands for one.
func Spelled(dst uv.Screen, s string) string {
	if way := SignsOf(dst); way != Unicode && !ascii(s) {
		_, others := writers()
		return others[way].Replace(Clean(s))
	}
	return s
}
