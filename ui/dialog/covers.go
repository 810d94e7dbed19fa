package dialog

import (
	"cmp"
	"strings"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

func subject(s api.Subject) string {
	return cmp.Or(map[api.Subject]string{
		api.SubjectNested:     "nested program",
		api.SubjectEdit:       "edit",
		api.SubjectConnection: "connection",
		api.SubjectRequest:    "request",
		api.SubjectLimit:      "action at its limit",
		api.SubjectCall:       "question of the agent's",
	}[s], "command")
}

// foot is the keys and, above them, what stands in their way.
func (d *Decision) foot(f paint.Frame) ([]paint.Hint, text) {
	var hints []paint.Hint
	var reason string
	for _, b := range keys.In(keys.Decision) {
		if !d.offers(b) {
			continue
		}
		why := d.Why(b.Intent)
		reason = cmp.Or(reason, why)
		hints = append(hints, paint.Hint{Key: b.First(), Words: d.wordsFor(b), Off: why != "" || Settles(b.Intent, d.shown) && f.Wait > 0})
	}
	return hints, d.note(reason, f)
}

// offers says whether a key is one for what is asked about.
func (d *Decision) offers(b keys.Binding) bool {
	if closed := d.over != "" || d.Off != ""; b.Short == "" || closed && intent.Decides(b.Intent) {
		return false
	}
	edit := d.shown.Subject == api.SubjectEdit
	if a, ok := b.Intent.(intent.Approve); ok && a.Keep && d.shown.Subject == api.SubjectNested {
		return false // its changes are its action's
	}
	if d.shown.Subject == api.SubjectCall && intent.Decides(b.Intent) && WhyNot(b.Intent, d.shown) != "" {
		return false
	}
	switch b.Intent.(type) {
	case intent.Approve, intent.Always, intent.StepInto, intent.StepOver:
		return !edit && (!d.shown.Apart() || ofConnections(b.Intent))
	case intent.Deny:
		return true
	case intent.Keep, intent.Rollback:
		return edit
	case intent.Raw:
		return d.shown.Command != nil
	case intent.HeldStep:
		return d.of > 1
	}
	return true
}

// wordsFor is what a key is called.
func (d *Decision) wordsFor(b keys.Binding) string {
	switch b.Intent.(type) {
	case intent.Approve:
		switch {
		case d.shown.Apart():
			return "allow once"
		case d.shown.Subject == api.SubjectCall:
			return "say yes"
		}
	case intent.StepOver:
		if d.shown.Subject == api.SubjectNested {
			return "all it starts"
		}
	case intent.Deny:
		if d.shown.Subject == api.SubjectEdit {
			return "roll back, why…"
		}
	case intent.Always:
		if d.shown.Request != nil {
			return "for the session"
		}
	case intent.Back:
		if d.over != "" {
			return "close"
		}
	case intent.Raw:
		if d.raw {
			return "hide raw argv"
		}
	}
	return b.Short
}

// note is what stands in the way of an answer. Reason is why some key does nothing.
func (d *Decision) note(reason string, f paint.Frame) text {
	switch {
	case d.over != "":
		return text{"✗ " + d.over, themes.Warn}
	case d.Off != "":
		return warning(d.Off)
	case d.notice != "":
		return text{d.notice, themes.Warn}
	case d.pending:
		return text{"⋯ the answer is on its way", themes.Info}
	case reason != "" && !(d.changed && f.Wait > 0):
		return warning(reason)
	case d.changed:
		return text{"! this question changed while it was open: look again", themes.Warn}
	case f.Wait > 0:
		return waiting(f)
	}
	return text{"✓ keys answer this question", themes.OK}
}

// parts are the commands of a line, each with what rules say of it.
func (b *paper) parts(c *api.Command) {
	if len(c.Parts) < 2 && (len(c.Parts) == 0 || c.Parts[0].Verdict != api.Deny) {
		return
	}
	for _, p := range c.Parts {
		glyph, k, word := "◆", themes.Held, "ask"
		switch p.Verdict {
		case api.Allow:
			glyph, k, word = "✓", themes.OK, "allow"
		case api.Deny:
			glyph, k, word = "✗", themes.Denied, "deny"
		}
		first := len(b.rows)
		for i, r := range paint.Script(b.dst, p.Text, b.width-10) {
			if i == 0 {
				b.line(text{glyph + " " + b.pad(word, 6) + " ", k}, text{r, themes.Surface})
			} else {
				b.add(row{indent: 9, spans: []text{{r, themes.Surface}}})
			}
		}
		onward(b.rows[first:])
		if p.Rule != "" && (p.Verdict != api.Allow || strings.HasPrefix(p.Rule, "allow ")) { // else no rule is about it
			b.add(row{indent: 9, spans: []text{{b.short(paint.Reason(b.dst, p.Rule, b.width-10), b.width-10), themes.SurfaceMuted}}})
		}
	}
}
