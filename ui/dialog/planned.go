package dialog

import (
	"cmp"
	"fmt"
	"strings"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// Planned is a plan of any work, as it is shown.
type Planned struct {
	api.ApplyPlan
	Counts   []Count
	Warnings []string
}

// Count is one of the numbers that sum a plan up. Grave ones stand out.
type Count struct {
	Words     string
	Grave     bool
	Conflicts bool // Words are those of conflicts in which nothing was chosen: how many is counted when it is drawn
}

// OfApply is the plan of an apply, or of undoing one.
func OfApply(a api.ApplyPlan) Planned {
	p := Planned{ApplyPlan: a}
	if a.Git != "" {
		p.Warnings = []string{a.Git}
	}
	for _, c := range []struct {
		n     int
		words string
		grave bool
	}{
		{a.Written, "to write", false}, {a.Deleted, "to delete", true}, {a.Renamed, "to rename", false}, {a.Retyped, "to change in type", false},
		{len(a.Conflicts), "", true}, {a.Dangerous, "dangerous", true},
	} {
		switch {
		case c.n > 0 && c.words == "":
			p.Counts = append(p.Counts, Count{"in conflict", true, true})
		case c.n > 0:
			p.Counts = append(p.Counts, Count{Words: fmt.Sprint(c.n, " ", c.words), Grave: c.grave})
		}
	}
	return p
}

// OfRollback is the plan of a roll back.
func OfRollback(r api.RollbackPlan) Planned {
	p := Planned{ApplyPlan: api.ApplyPlan{Hash: r.Hash, More: r.More, Conflicts: r.Conflicts, Left: r.Problems}}
	for _, c := range r.Files {
		p.Files = append(p.Files, api.ApplyFile{Change: c})
	}
	p.Counts = append(p.Counts, Count{Words: "restores " + paint.Files(r.Restores)})
	if r.Removes > 0 {
		p.Counts = append(p.Counts, Count{Words: "removes " + paint.Files(r.Removes), Grave: true})
	}
	if len(r.Conflicts) > 0 {
		p.Counts = append(p.Counts, Count{"in conflict with later changes", true, true})
	}
	if len(r.Actions) > 1 {
		p.Counts = append(p.Counts, Count{Words: api.Numbered(r.Actions)})
	}
	if r.Home != nil {
		p.Warnings = []string{"for good: nothing of a home is in the record, to be had again"}
	} else if len(r.Ends) > 0 {
		p.Warnings = []string{"still running and killed first: " + api.Numbered(r.Ends)}
	} else {
		p.Counts = append(p.Counts, Count{Words: "ends nothing: what runs lives on"})
	}
	return p
}

// head sums the plan up; it is always in view.
func (p *Plan) head(b *paper) {
	b.gap()
	if p.planned == 0 || p.over {
		return
	}
	used := 0
	for i, c := range p.counts() {
		gap, k := " · ", themes.Strong
		if c.Grave {
			k = themes.Loss
		}
		over := used+paint.Width(b.dst, c.Words) > b.width
		if over {
			b.gap()
			used = 0
		}
		if over || i == 0 {
			gap = ""
		}
		sum := &b.rows[len(b.rows)-1]
		sum.spans = append(sum.spans, text{gap, themes.SurfaceMuted}, text{c.Words, k})
		used += len(c.Words) + 3
	}
	for _, w := range p.shown.Warnings {
		b.say("⚠ "+w, themes.Warn)
	}
}

// counts are the plan's numbers, with the person's choices.
func (p *Plan) counts() (out []Count) {
	chosen := 0
	for _, c := range p.shown.Conflicts {
		if r := p.choices[c.Key]; r != nil && open(r) == 0 {
			chosen++
		}
	}
	for _, c := range p.shown.Counts {
		if n := len(p.shown.Conflicts) - chosen; c.Conflicts && n > 0 {
			out = append(out, Count{Words: fmt.Sprint(n, " ", c.Words), Grave: true})
		}
		switch {
		case !c.Conflicts:
			out = append(out, c)
		case chosen > 0:
			out = append(out, Count{Words: paint.Count(chosen, "conflict", "conflicts") + " decided"})
		}
	}
	return out
}

// list is all there is in the plan: first what needs the person, then the rest.
func (p *Plan) list() (out []item) {
	for _, c := range p.shown.Conflicts {
		out = append(out, p.conflict(c)...)
	}
	for _, f := range p.shown.Files {
		if len(f.Dangers) > 0 {
			it := p.file(f.Change, text{})
			it.rows = both(it.rows, dangers(f.Dangers...))
			it.must = fmt.Sprint("danger", f.Key, f.Status, f.Dangers)
			out = append(out, it)
		}
	}
	for _, c := range p.shown.Commits {
		if c.Danger != "" {
			out = append(out, item{id: "commit " + c.Hash + c.Ref, must: "danger" + c.Hash + c.Danger, rows: both(commits(c), dangers(c.Danger))})
		}
	}
	for _, c := range p.shown.Unreviewed {
		mark := text{"? " + c.Why + "  ", themes.Warn}
		if p.work.Apply != nil && p.work.Apply.Looked {
			mark = text{"✓ you have looked at it  ", themes.OK}
		}
		it := p.file(c.Change, mark)
		it.must = fmt.Sprint("unreviewed", c.Key, c.Status, c.NewSize)
		out = append(out, it)
	}
	if p.work.Apply != nil {
		out = append(out, p.extras()...)
	}
	words := "⚠ left out: "
	if p.work.Back != nil {
		words = "⚠ can't be put back: "
		if p.work.Back.Home != nil {
			words = "⚠ "
		}
	}
	for _, t := range p.shown.Left {
		out = append(out, item{id: "left " + t.Path, rows: says(words+t.String(), themes.Warn)})
	}
	named := make(map[string]bool, len(p.shown.Unreviewed)+len(p.shown.Conflicts)) // above
	for _, c := range p.shown.Conflicts {
		named[c.Key] = true
	}
	for _, c := range p.shown.Unreviewed {
		named[c.Key] = true
	}
	for _, f := range p.shown.Files {
		if len(f.Dangers) == 0 && !named[f.Key] {
			out = append(out, p.file(f.Change, text{}))
		}
	}
	if p.work.Apply != nil && p.work.Apply.All() {
		out = append(out, item{id: "part", rows: says("To write a part of it, leave this: "+keys.First(intent.Toggle{}, keys.Actions)+
			" in Actions and in Changes selects what "+keys.First(intent.Apply{}, keys.Panes)+" plans.", themes.SurfaceMuted)})
	}
	if p.shown.More > 0 {
		out = append(out, item{id: "more", rows: says(fmt.Sprintf("⋯ and %d more", p.shown.More), themes.SurfaceMuted)})
	}
	return out
}

// dangers are the rows of what is dangerous about something.
func dangers(list ...string) passage {
	return func(b *paper) {
		for _, d := range list {
			mark, indent := "DANGER", 4
			for _, s := range paint.Wrap(b.dst, d, b.width-indent-len(mark)-1) {
				b.add(row{indent: indent, spans: []text{{mark, themes.Denied}, {" " + s, themes.Warn}}})
				mark, indent = "", indent+len(mark)
			}
		}
	}
}

// box is a thing that can be on or off.
func box(on bool, what, words string) passage {
	mark := text{"[ ] " + what, themes.SurfaceMuted}
	if on {
		mark = text{"[x] " + what, themes.OK}
	}
	return func(b *paper) { b.line(mark, text{b.short(words, b.width-len(mark.s)), themes.Surface}) }
}

// extras are the checks and the commits of an apply.
func (p *Plan) extras() (out []item) {
	for i, c := range p.checks {
		out = append(out, item{id: fmt.Sprint("check ", i), rows: box(c.on, "check: ", c.command),
			edit: intent.AskCheck{At: i, Command: c.command},
			toggle: func() intent.Intent {
				p.own, p.checks[i].on = true, !c.on
				return p.choose()
			},
			about: says("It runs in a sandbox of its own that has exactly the state which would be in the project folder. "+
				"If it fails, nothing is written. enter edits it; an empty line takes it away.", themes.SurfaceMuted)})
	}
	if n := len(p.shown.Commits); n > 0 {
		out = append(out, item{id: "commits", toggle: p.toggleCommits, rows: both(
			box(p.work.Apply.Commits, "fetch: ", "the agent's "+paint.Count(n, "commit", "commits")+", to be merged by you"),
			commits(p.shown.Commits...))})
	}
	return out
}

func commits(list ...api.Commit) passage {
	return func(b *paper) {
		for _, c := range list {
			hash := c.Hash[:min(len(c.Hash), 9)]
			words := c.Subject + " — " + c.Author + ", " + strings.TrimPrefix(c.Ref, "refs/heads/")
			if c.Folder != "" {
				words += " in " + c.Folder
			}
			b.add(row{indent: 4, spans: []text{{hash + " ", themes.Info}, {b.short(words, b.width-15), themes.Surface}}})
		}
	}
}

// file is a changed file after a mark, with its differences beside it.
func (p *Plan) file(c api.Change, mark text) item {
	it := item{id: "file " + c.Key + mark.s, rows: func(b *paper) { b.change(c, mark) }}
	if p.work.Scope == nil {
		return it
	}
	undone, undoes := p.undoes[c.Key]
	if !undoes {
		it.key = c.Key
	}
	it.about = func(b *paper) {
		b.line(text{paint.ShortenLeft(b.dst, c.Path, b.width), themes.Strong})
		switch d := p.diff; {
		case undoes:
			b.say(undone.Words, themes.SurfaceMuted)
			b.hunks(undone.Hunks, mostRows)
		case p.diffOf != c.Key:
			b.muted("reading its differences…")
		case p.diffErr != "":
			b.say(p.diffErr, themes.Warn)
		case len(d.Hunks) == 0:
			words := cmp.Or(d.Note, "no lines differ")
			if c.Words != "" {
				words += " · " + c.Words
			}
			b.say(words, themes.SurfaceMuted)
		default:
			b.hunks(d.Hunks, mostRows)
		}
	}
	return it
}
