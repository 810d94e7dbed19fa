package dialog

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/paint"
)

// What a screen says of a key that doesn't answer.
const (
	WatchingOnly = "you are watching only: attach without --read-only decides" // there is room for it on 80 columns, beside what is held
	TooSoon      = "too soon: keys count 0.4 s after it came into view and after any key"
	Unread       = "read it whole first: the row can't show all of it"
	OnItsWay     = "the answer is on its way"
)

// Called is what a question is called where it is spoken of, and with so many that read the same.
func Called(q api.Question, equal int) string {
	words := fmt.Sprintf("#%d", q.Action)
	if q.Apart() {
		words = paint.Wants(q)
	}
	switch equal {
	case 0:
		return words
	case 1:
		return words + " and its equal"
	}
	return fmt.Sprintf("%s and %d equal ones", words, equal)
}

// Differences are the first files' of all, as many as a question shows.
func Differences(all iter.Seq2[api.FileDiff, error]) (some []api.FileDiff, err error) {
	for f, err := range all {
		if err != nil || len(some) == maxDiffs {
			return some, err
		}
		some = append(some, f)
	}
	return some, nil
}

// Told is what is said of an answer that a question took, and how it looks.
func Told(q api.Question, a api.Answer) (words string, token themes.Token) {
	switch a {
	case api.AnswerApprove:
		if q.Apart() { // as its keys have it
			return "✓ allowed", themes.OK
		}
		return "✓ approved", themes.OK
	case api.AnswerApproveKeep:
		return "✓ approved and kept", themes.OK
	case api.AnswerDeny:
		return "✗ denied", themes.Denied
	case api.AnswerStepInto:
		return "✓ stepping into", themes.OK
	case api.AnswerStepOver:
		return "✓ stepping over", themes.OK
	case api.AnswerKeep:
		return "✓ kept", themes.OK
	case api.AnswerRollback:
		return "↶ rolled back", themes.Undone
	}
	return "answered", themes.OK
}

// Answer is what follows from a key that answers a question as it was shown: Decide, AskReason,
// AskRule or AskBack, or nil. It is for those that read the same, too, where they were shown.
func Answer(i intent.Intent, q api.Question, print string, equal bool) intent.Intent {
	switch i.(type) {
	case intent.Rollback:
		return intent.AskBack{Question: q.ID}
	case intent.Deny:
		return intent.AskReason{Question: q.ID, Print: print, Equal: equal}
	case intent.Always:
		if q.Request != nil {
			return intent.Decide{Question: q.ID, Hash: q.Hash, Answer: api.AnswerApprove, For: api.ExtentSession}
		}
		return intent.AskRule{Question: q.ID, Print: print}
	}
	if a := intent.AnswerTo(i); a != "" {
		return intent.Decide{Question: q.ID, Hash: q.Hash, Answer: a, Equal: equal}
	}
	return nil
}

// Settles says whether a key answers a question at once, and opens nothing that asks once more.
func Settles(i intent.Intent, q api.Question) bool {
	_, at := Answer(i, q, "", false).(intent.Decide)
	return at
}

// RowAnswers says whether a key may answer a question in its row, which shows all of that or
// doesn't.
func RowAnswers(i intent.Intent, q api.Question, whole bool) bool {
	return whole && Plain(q) || namesOne(i, q)
}

// namesOne says whether a key leads to a rule that names one of the many that are asked
// about: they needn't have been read.
func namesOne(i intent.Intent, q api.Question) bool {
	_, always := i.(intent.Always)
	return always && q.Connection != nil && q.Connection.Host == ""
}

// WhyNot says why an answer isn't one to a question, or "".
func WhyNot(i intent.Intent, q api.Question) string {
	approve, ok := i.(intent.Approve)
	_, always := i.(intent.Always)
	if q.Subject == api.SubjectEdit {
		switch i.(type) {
		case intent.Approve, intent.Always, intent.StepInto, intent.StepOver:
			return "changes are kept (y) or rolled back (u)"
		}
		return ""
	}
	if q.Subject == api.SubjectLimit && (always || !ofConnections(i)) {
		return "it is an action at its limit: a lets it go on, d ends it"
	}
	if r := q.Request; r != nil {
		switch {
		case !ofConnections(i):
			return "it is a request: a allows it, d denies it"
		case always && !r.Lasts:
			return "it isn't known well enough what this is for: a allows it once"
		}
		return ""
	}
	if q.Subject == api.SubjectCall && (always || !ofConnections(i)) {
		return "the agent asks: a says yes, d says no, with a reason if you like"
	}
	if q.Connection == nil {
		if ok && approve.Keep && q.Subject == api.SubjectNested {
			return "its changes are its action's: approve it (a)"
		}
		return ""
	}
	switch {
	case !ofConnections(i):
		return "it is a connection: a allows it, d denies it"
	case always && q.Connection.Limit != "":
		return "it is at a limit: a allows as much once more, d ends it"
	case ok && q.Connection.Host == "":
		return "too many to allow at once: d denies them all, A makes a rule for one"
	}
	return ""
}

// ofConnections says whether an answer can be one to a connection.
func ofConnections(i intent.Intent) bool {
	switch i := i.(type) {
	case intent.Approve:
		return !i.Keep
	case intent.StepInto, intent.StepOver:
		return false
	}
	return true
}

// warnings says what needs care in a question before it is answered.
func warnings(q api.Question) []string {
	var out []string
	texts := []string{q.Title}
	if c := q.Command; c != nil {
		texts = nil
		for _, c := range c.All() {
			texts = append(texts, c.Line, c.Program, c.Cwd)
			texts = append(texts, c.Env...)
		}
	}
	if c := q.Connection; c != nil {
		texts = append([]string{c.Host, c.Program}, c.Many...)
	}
	escapes, foreign := false, false
	for _, t := range texts {
		e, f := paint.Unusual(t)
		escapes, foreign = escapes || e, foreign || f
	}
	if c := q.Command; c != nil { // an escape may be what was typed
		escapes = slices.ContainsFunc(c.All(), func(c *api.Command) bool { return c.Unclear && !c.Clear })
	}
	if escapes {
		out = append(out, "tabs, line breaks or invisible characters are in it; they are shown as marked escapes")
	}
	if foreign {
		out = append(out, "letters outside of ASCII are in it; some look like others, so they are marked")
	}
	if c := q.Connection; c != nil && c.Written {
		out = append(out, "this session wrote the program that connects: "+c.Program)
	}
	if q.Request != nil {
		out = append(out, q.Request.Warn...)
	}
	c := q.Command
	if c == nil {
		return out
	}
	for _, c := range c.All() {
		if c.Truncated {
			out = append(out, "its arguments or variables are too large to be shown whole: you can't see all that would run")
		}
		if c.Written {
			out = append(out, "this session wrote the program that would run: "+c.Program)
		}
		for _, u := range c.Unpinned {
			out = append(out, "what runs may differ from what you see: "+u)
		}
		if len(c.Sources) > 0 {
			out = append(out, "it first reads a file that the agent can write: "+strings.Join(c.Sources, ", "))
		}
	}
	return out
}

// Plain says whether a question is only its command's line: nothing else in it
// needs to be read, so that a row which shows the line whole shows all.
func Plain(q api.Question) bool {
	if q.Connection != nil {
		return q.Connection.Host != "" && len(warnings(q)) == 0
	}
	c := q.Command
	return q.Subject != api.SubjectEdit && c != nil && len(warnings(q)) == 0 &&
		len(c.Env) == 0 && len(c.Pipeline) == 0 && len(c.Parts) < 2 && c.Title() == q.Title
}
