package keys

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stepbox/ui/intent"
)

// Astray says what to press in place of a key that means nothing in a place: the key
// that does there what this one does elsewhere, the way to where it is bound, or else
// what there is. Why says why an intent does nothing now, or "", and says what the place's
// own last line says of a key, or "" where it says what the bindings do; it may be nil.
func Astray(k fmt.Stringer, why func(intent.Intent) string, says func(key string) string, place ...Scope) string {
	name := Pretty(k.String())
	panes := slices.Contains(place, Panes)
	led, to, off := "", "", "" // the way by the leader, or to another pane; why it does nothing there either
	for _, s := range Scopes {
		b, ok := Find(k, s)
		if _, back := b.Intent.(intent.Back); !ok || back || slices.Contains(place, s) {
			continue
		}
		words := " (" + b.Help().Desc + ")"
		for _, here := range place {
			if own := First(b.Intent, here); own != "" && why(b.Intent) == "" {
				return name + " does nothing here: " + own + " does that" + words
			}
		}
		if !panes {
			continue
		}
		if then := First(b.Intent, Leader); then != "" && led == "" && why(b.Intent) == "" {
			led = name + " does nothing here: " + LeaderKey() + " " + then + " does that" + words
		}
		for _, p := range intent.Panes {
			if s != Scope(p.String()) || to != "" {
				continue
			}
			if no := why(b.Intent); no != "" {
				off = cmp.Or(off, name+" is for "+string(s)+", and not now: "+no)
			} else {
				to = name + " is for " + string(s) + ": " + First(intent.Focus{Pane: p}, Panes) + " goes there" + words
			}
		}
	}
	return cmp.Or(to, led, off, name+" does nothing here: "+instead(why, says, place))
}

// mostInstead bounds how many keys are named in place of one.
const mostInstead = 4

// instead names keys that do something in a place: the one for help, where there is
// one, else the first, and the one that leaves.
func instead(why func(intent.Intent) string, says func(key string) string, place []Scope) string {
	for _, s := range place {
		if k := First(intent.Help{}, s); k != "" && s != Decision && s != Confirm {
			return k + " shows what does"
		}
	}
	var out []string
	leave := ""
	for _, b := range In(place[0]) {
		words := b.Short
		if says != nil {
			words = cmp.Or(says(b.First()), words)
		}
		words = b.First() + " " + words
		switch _, back := b.Intent.(intent.Back); {
		case b.Short == "":
		case back:
			leave = words
		case len(out) < mostInstead-1 && why(b.Intent) == "":
			out = append(out, words)
		}
	}
	if leave != "" {
		out = append(out, leave)
	}
	return strings.Join(out, " · ")
}
