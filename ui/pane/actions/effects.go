package actions

import (
	"cmp"
	"fmt"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// word is a part of what a row says an action did.
type word struct {
	text  string
	token themes.Token
}

// did says what an action did to the files, weightiest first: a sign with weight
// for what is lost, a mark for what wasn't announced, and words.
func did(a api.Action) (out []word) {
	e := cmp.Or(a.Effects, &api.Effects{})
	switch {
	case e.Deleted > 0:
		out = append(out, word{fmt.Sprintf(" −%d ", e.Deleted), themes.Loss})
	case e.Grave:
		out = append(out, word{" ! ", themes.Loss})
	}
	mismatch := a.Said != nil && a.Said.Mismatch != ""
	if mismatch {
		out = append(out, word{" ≠", themes.Denied})
	}
	for i, w := range e.Words {
		if i > 0 {
			w = "· " + w
		}
		k := themes.Muted
		if i == 0 && e.Grave {
			k = themes.Warn
		}
		out = append(out, word{" " + w, k})
	}
	if mismatch {
		out = append(out, word{" · said: " + a.Said.Text, themes.Muted})
	}
	return out
}

// share divides the room for a title: what the action did has what the title
// leaves of it, and three fifths of it at least.
func share(dst uv.Screen, a api.Action, room int) (title int, words []word) {
	words = did(a)
	if len(words) == 0 {
		return room, nil
	}
	width := 2 // the gap
	for _, w := range words {
		width += paint.Width(dst, w.text)
	}
	title = max(room*2/5, room-width)
	if w := paint.Width(dst, paint.Shorten(dst, a.Title, room)); w < title {
		title = w
	}
	return title, append([]word{{"  ", themes.Text}}, words...)
}
