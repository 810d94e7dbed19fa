package dialog

import (
	"cmp"
	"fmt"
	"strconv"
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
	}
	return "command"
}

// foot is the keys and, above them, what stands in their way.
func (d *Decision) foot(f paint.Frame) ([]paint.Hint, text) {
	edit, wait := d.shown.Subject == api.SubjectEdit, f.Wait
	var hints []paint.Hint
	var reason string
	for _, b := range keys.In(keys.Decision) {
		if b.Short == "" || (d.over != "" || d.Off != "") && intent.Decides(b.Intent) {
			continue
		}
		switch b.Intent.(type) {
		case intent.Approve, intent.Deny, intent.StepInto, intent.StepOver:
			if edit {
				continue
			}
		case intent.Keep, intent.Rollback:
			if !edit {
				continue
			}
		case intent.Raw:
			if d.shown.Command == nil {
				continue
			}
		case intent.HeldStep:
			if d.of < 2 {
				continue
			}
		}
		why := d.Why(b.Intent)
		off := why != ""
		if off && reason == "" {
			reason = why
		}
		words := b.Short
		if _, back := b.Intent.(intent.Back); back && d.over != "" {
			words = "close"
		}
		if _, ok := b.Intent.(intent.Raw); ok && d.raw {
			words = "hide raw argv"
		}
		off = off || intent.Decides(b.Intent) && wait > 0
		hints = append(hints, paint.Hint{Key: b.First(), Words: words, Off: off})
	}
	switch {
	case d.over != "":
		return hints, text{"✗ " + d.over, themes.Warn}
	case d.Off != "":
		return hints, text{"! " + d.Off, themes.Warn}
	case d.notice != "":
		return hints, text{d.notice, themes.Warn}
	case d.pending:
		return hints, text{"⋯ the answer is on its way", themes.Info}
	case reason != "" && !(d.changed && wait > 0):
		return hints, text{"! " + reason, themes.Warn}
	case wait > 0 && !d.changed:
		return hints, waiting(f)
	case d.changed:
		return hints, text{"! this question changed while it was open: look again", themes.Warn}
	}
	return hints, text{"✓ keys answer this question", themes.OK}
}

// rows are the body, and how many of them, from the first on, show what a
// decision covers.
func (d *Decision) rows(dst uv.Screen, width int) (out []row, covered int) {
	q := d.shown
	out = append(out, row{})
	for _, w := range Warnings(q) {
		out = append(out, wrapped(dst, "⚠ "+w, width, themes.Warn)...)
	}
	if len(out) > 1 {
		out = append(out, row{})
	}
	if c := q.Command; c != nil {
		for i, c := range c.All() {
			if i > 0 {
				out = append(out, row{}, muted("together with, as one job:"))
			}
			out = append(out, command(dst, c.Line, width)...)
			out = append(out, row{})
			out = append(out, d.parts(dst, c, width)...)
			out = append(out, pair(dst, "folder", c.Cwd, width, themes.Surface)...)
			out = append(out, pair(dst, "program", cmp.Or(c.Program, "—"), width, themes.Surface)...)
			for i, e := range c.Env {
				name := ""
				if i == 0 {
					name = "variables"
				}
				out = append(out, pair(dst, name, e, width, themes.Surface)...)
			}
		}
	} else if len(q.Changes) == 0 {
		out = append(out, command(dst, q.Title, width)...)
	}
	for i := range q.Changes {
		out = append(out, change(dst, q.Changes[i], width))
	}
	if q.Command == nil {
		out = append(out, row{})
	}
	covered = len(out)
	if d.raw && q.Command != nil {
		out = append(out, row{}, muted("arguments as they are executed"))
		for _, c := range q.Command.All() {
			for i, a := range c.Argv {
				out = append(out, pair(dst, "  "+strconv.Itoa(i), a, width, themes.Surface)...)
			}
		}
	}
	out = append(out, pair(dst, "asked by", cmp.Or(q.Rule, "—"), width, themes.Surface)...)
	if d.said != nil {
		out = append(out, pair(dst, "said", d.said.Text+" ("+d.said.Source+")", width, themes.Surface)...)
	}
	if c := q.Command; c != nil {
		if len(c.Parents) > 0 {
			out = append(out, pair(dst, "started by", strings.Join(c.Parents, " ← "), width, themes.SurfaceMuted)...)
		}
		if c.LastTime != "" {
			out = append(out, pair(dst, "last time", c.LastTime, width, themes.SurfaceMuted)...)
		}
		if c.Before != 0 {
			out = append(out, pair(dst, "undo", fmt.Sprintf("can be rolled back to checkpoint %d", c.Before), width, themes.SurfaceMuted)...)
		}
	}
	return append(out, row{}), covered
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
		rows := paint.Wrap(dst, p.Text, width-10)
		out = append(out, row{spans: []text{{glyph + " " + words + " ", k}, {rows[0], themes.Surface}}})
		for _, r := range rows[1:] {
			out = append(out, row{indent: 9, spans: []text{{r, themes.Surface}}})
		}
		if p.Rule != "" {
			out = append(out, row{indent: 9, spans: []text{{paint.Shorten(dst, p.Rule, width-10), themes.SurfaceMuted}}})
		}
	}
	return append(out, row{})
}

// command is the block that shows a command whole, with what could deceive marked.
func command(dst uv.Screen, line string, width int) []row {
	var out []row
	prompt := "$ "
	for _, r := range paint.Wrap(dst, line, width-4) {
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
	return out
}

func change(dst uv.Screen, c api.Change, width int) row {
	name := c.Path
	if c.From != "" {
		name = c.From + " → " + c.Path
	}
	counts := ""
	if c.Counted {
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
