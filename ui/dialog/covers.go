package dialog

import (
	"cmp"
	"fmt"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

func subject(s api.Subject) string {
	switch s {
	case api.SubjectNested:
		return "nested program"
	case api.SubjectEdit:
		return "edit"
	case api.SubjectConnection:
		return "connection"
	case api.SubjectRequest:
		return "request"
	case api.SubjectLimit:
		return "action at its limit"
	case api.SubjectCall:
		return "question of the agent's"
	}
	return "command"
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
		return text{"! " + d.Off, themes.Warn}
	case d.notice != "":
		return text{d.notice, themes.Warn}
	case d.pending:
		return text{"⋯ the answer is on its way", themes.Info}
	case reason != "" && !(d.changed && f.Wait > 0):
		return text{"! " + reason, themes.Warn}
	case d.changed:
		return text{"! this question changed while it was open: look again", themes.Warn}
	case f.Wait > 0:
		return waiting(f)
	}
	return text{"✓ keys answer this question", themes.OK}
}

func (d *Decision) parts(dst uv.Screen, c *api.Command, width int) []row {
	if len(c.Parts) < 2 && (len(c.Parts) == 0 || c.Parts[0].Verdict != api.Deny) {
		return nil
	}
	var out []row
	for _, p := range c.Parts {
		glyph, k, word := "◆", themes.Held, "ask"
		switch p.Verdict {
		case api.Allow:
			glyph, k, word = "✓", themes.OK, "allow"
		case api.Deny:
			glyph, k, word = "✗", themes.Denied, "deny"
		}
		words := padCells(dst, word, 6)
		rows, first := paint.Script(dst, p.Text, width-10), len(out)
		out = append(out, row{spans: []text{{glyph + " " + words + " ", k}, {rows[0], themes.Surface}}})
		for _, r := range rows[1:] {
			out = append(out, row{indent: 9, spans: []text{{r, themes.Surface}}})
		}
		onward(out[first:])
		if p.Rule != "" && (p.Verdict != api.Allow || strings.HasPrefix(p.Rule, "allow ")) { // else no rule is about it
			out = append(out, row{indent: 9, spans: []text{{paint.Shorten(dst, paint.Reason(dst, p.Rule, width-10), width-10), themes.SurfaceMuted}}})
		}
	}
	return out
}

// command is the block that shows a command whole, with what could deceive marked.
func command(dst uv.Screen, line string, width int) []row {
	var out []row
	prompt := "$ "
	for _, r := range paint.Script(dst, paint.Spelled(dst, line), width-4) {
		spans := []text{{" ", themes.Inset}, {prompt, themes.Held}}
		for _, part := range paint.Marked(r) {
			k := themes.Inset
			if part.Odd {
				k = themes.Odd
			}
			spans = append(spans, text{part.Text, k})
		}
		out = append(out, row{inset: true, spans: spans})
		prompt = "  "
	}
	return onward(out)
}

func change(dst uv.Screen, c api.Change, width int) row {
	name := c.Path
	if c.From != "" {
		name = c.From + " → " + c.Path
	}
	counts := ""
	if c.Counted && c.Added+c.Removed > 0 { // git's own files have no lines
		counts = fmt.Sprintf("  +%d −%d", c.Added, c.Removed)
	}
	if c.Words != "" {
		counts += "  " + c.Words
	}
	return row{spans: []text{
		{paint.Shorten(dst, c.Status, 1) + " ", statusToken(c.Status)},
		{paint.ShortenLeft(dst, name, max(10, width-2-paint.Width(dst, counts))), themes.Surface},
		{counts, themes.SurfaceMuted},
	}}
}

func statusToken(s string) themes.Token {
	switch s {
	case "A":
		return themes.AddedWord
	case "D":
		return themes.RemovedWord
	}
	return themes.Warn
}
