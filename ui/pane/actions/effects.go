package actions

import (
	"cmp"
	"fmt"
	"strings"

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
// for what is lost, and words.
func did(a api.Action) (out []word) {
	e := cmp.Or(a.Effects, &api.Effects{})
	switch {
	case e.Deleted > 0:
		out = append(out, word{fmt.Sprintf(" −%d ", e.Deleted), themes.Loss})
	case e.Grave:
		out = append(out, word{" ! ", themes.Loss})
	}
	for i, w := range e.Words {
		if a.Kind == api.KindEdit && w == "changes "+strings.TrimPrefix(a.Title, "edit ") {
			continue // its title says that
		}
		if i > 0 {
			w = "· " + w
		}
		k := themes.Muted
		if i == 0 && e.Grave {
			k = themes.Warn
		}
		out = append(out, word{" " + w, k})
	}
	return out
}

// saidLeast is the room that it takes to tell what the agent said.
const saidLeast = 20

// share divides the room for a title: what the action did has what the title
// leaves of it, and three fifths of it at least; what the agent said has what is left.
func share(dst uv.Screen, a api.Action, room int) (title int, words []word) {
	words = append([]word{{"  ", themes.Text}}, did(a)...)
	width, before := 0, ""
	for _, w := range words {
		width += paint.Width(dst, w.text)
	}
	if title = room; len(words) > 1 {
		title, before = max(room*2/5, room-width), " · "
	}
	if w := paint.Width(dst, paint.Shorten(dst, a.Title, room)); w < title {
		title = w
	}
	if s := a.Said(); s != "" && s != a.Title && room-title-width >= saidLeast {
		words = append(words, word{before + "said: " + s, themes.Muted})
	}
	if len(words) == 1 {
		words = nil
	}
	return title, words
}
