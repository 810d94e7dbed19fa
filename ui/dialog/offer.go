package dialog

import (
	"cmp"
	"fmt"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// Offered is the pattern of a rule that the question itself offers to allow by, in a
// few words; "" when it offers none.
func Offered(q api.Question) string {
	if q.Offer == nil || q.Offer.Answer == api.AnswerDeny {
		return ""
	}
	return cmp.Or(paint.Clean(q.Offer.Pattern), "this")
}

// offer says that the same was answered the same several times, and how it is answered
// for longer.
func (b *body) offer(q api.Question) {
	o := q.Offer
	if o == nil {
		return
	}
	said, how := "allowed", keys.First(intent.Always{}, keys.Decision)+" makes that a rule"
	if o.Answer == api.AnswerDeny {
		said = "denied"
		how = fmt.Sprintf("%s, then %s, has that hold for longer", keys.First(intent.Deny{}, keys.Decision), keys.First(intent.Extent{By: 1}, keys.Denial))
	}
	words := fmt.Sprintf("↻ you %s this %s: %s", said, paint.Count(o.Times, "time", "times"), how)
	if p := cmp.Or(paint.Clean(o.Pattern), paint.Clean(o.Means)); p != "" && o.Answer != api.AnswerDeny {
		words += " (" + p + ")"
	}
	b.say(words, themes.Info)
}
