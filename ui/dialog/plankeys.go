package dialog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
)

// Why says why a key does nothing now.
func (p *Plan) Why(i intent.Intent) string {
	if _, back := i.(intent.Back); p.running && !back {
		switch i.(type) {
		case intent.Move, intent.Page, intent.Top, intent.Bottom:
			return ""
		}
		return "it is being carried out: esc cancels it"
	}
	it := p.selected()
	switch i := i.(type) {
	case intent.Yes:
		return p.whyNot()
	case intent.Applies:
		if p.applied == 0 {
			return "nothing is applied yet: y does"
		}
	case intent.Seen:
		switch {
		case p.over || p.work.Apply == nil || len(p.shown.Unreviewed) == 0:
			return "there is nothing unreviewed here"
		case p.unseen() > 0:
			return paint.Count(p.unseen(), "more thing", "more things") + " to look at " + p.toSee()
		}
	case intent.Choose:
		switch {
		case p.over || it.choose == nil:
			return "choose a conflict first (↑↓): only there are m, w and t to be chosen"
		case !slices.Contains(it.ways, i.Way):
			return fmt.Sprintf("here it is %s or %s; %s is for a file whose text can be merged", keys.First(intent.Choose{Way: api.WayWanted}, keys.Plan),
				keys.First(intent.Choose{Way: api.WayThere}, keys.Plan), keys.First(intent.Choose{Way: api.WayMerge}, keys.Plan))
		}
	case intent.Toggle:
		if p.over || it.toggle == nil {
			return "nothing to choose here: space is for conflicts, checks and commits"
		}
	case intent.Open:
		if p.over || it.edit == nil {
			return "y carries it out; enter only edits a check"
		}
	case intent.AddCheck, intent.Commits:
		if p.over || p.work.Apply == nil {
			return "that is for an apply"
		}
		git := func(t api.Trouble) bool { return strings.HasSuffix(t.Path, ".git") }
		if _, asks := i.(intent.Commits); asks && !p.work.Apply.Commits && len(p.shown.Commits) == 0 && !slices.ContainsFunc(p.shown.Left, git) {
			return "nothing changed in git's own folder: there are no commits to fetch"
		}
	}
	return ""
}

// whyNot says why yes does nothing now.
func (p *Plan) whyNot() string {
	switch {
	case p.over:
		return "it is done: esc closes this"
	case p.failure != "":
		return p.failure
	case p.planned != p.wanted || p.asking:
		return "the plan is being made"
	case p.unseen() > 0:
		return paint.Count(p.unseen(), "more thing", "more things") + " to look at " + p.toSee()
	case p.work.Apply != nil && len(p.shown.Unreviewed) > 0 && !p.work.Apply.Looked:
		return paint.Count(len(p.shown.Unreviewed), "change isn't", "changes aren't") + " reviewed: " + keys.First(intent.Seen{}, keys.Plan) + " says that you have looked"
	case p.shown.Blocked != "":
		return p.shown.Blocked
	case p.empty():
		if len(p.shown.Conflicts) > 0 {
			return "all of it is in conflict: choose what becomes of it, or there is nothing to do"
		}
		return "there is nothing to do"
	}
	return ""
}

// empty says whether the plan does nothing as it is.
func (p *Plan) empty() bool {
	return len(p.shown.Files) == 0 && p.shown.More == 0 && len(p.shown.Commits) == 0
}

// nothing says whether no choice would make it do something either.
func (p *Plan) nothing() bool {
	return p.planned > 0 && p.planned == p.wanted && p.empty() && len(p.shown.Conflicts) == 0 && len(p.shown.Unreviewed) == 0
}

// hints are the keys that mean something now.
func (p *Plan) hints(f paint.Frame) []paint.Hint {
	var out []paint.Hint
	for _, b := range keys.In(keys.Plan) {
		h := paint.Hint{Key: b.First(), Words: b.Short}
		switch b.Intent.(type) {
		case intent.Yes:
			if p.over || p.running || p.nothing() {
				continue
			}
			h.Words, h.Off = p.work.Yes, p.whyNot() != "" || f.Wait > 0
		case intent.Back:
			h.Words = p.Leave()
		case intent.Again:
			if p.running || p.failure == "" {
				continue
			}
		case intent.Seen:
			h.Off = p.unseen() > 0 || f.Wait > 0
			if p.over || p.running || p.work.Apply == nil || p.work.Apply.Looked || len(p.shown.Unreviewed) == 0 {
				continue
			}
			out = slices.Insert(out, 0, h) // yes comes after it
			continue
		case intent.Applies:
			if p.applied == 0 {
				continue
			}
		default:
			if b.Short == "" || p.over || p.Why(b.Intent) != "" || p.nothing() && (b.Intent != intent.Intent(intent.Commits{}) || p.work.Apply.Commits) {
				continue
			}
			wanted, there := p.sides()
			switch b.Intent {
			case intent.Choose{Way: api.WayWanted}:
				h.Words = wanted
			case intent.Choose{Way: api.WayThere}:
				h.Words = there
			}
		}
		out = append(out, h)
	}
	return out
}

// note is what stands above the keys.
func (p *Plan) note(f paint.Frame) text {
	switch why := p.whyNot(); {
	case p.running:
		return text{"⋯ " + p.going(), themes.Info}
	case p.failure != "":
		return warning(p.failure)
	case p.over:
		return text{p.notice, themes.OK}
	case p.asking || p.planned != p.wanted:
		return text{"⋯ " + cmp.Or(p.notice, "making the plan"), themes.Info}
	case p.notice != "":
		return warning(p.notice)
	case why != "":
		return warning(why)
	case f.Wait > 0:
		return waiting(f)
	}
	return text{"✓ this plan is as things are; it is checked again when it is carried out", themes.OK}
}

// going says how the work goes, with a bar.
func (p *Plan) going() string {
	x := p.progress
	words, known := map[string]string{"check": "checking", "write": "writing", "undo": "undoing", "fetch": "fetching commits"}[x.Stage]
	if !known {
		words = cmp.Or(x.Stage, "under way")
	}
	if p.stopping {
		words = "cancelling: " + words
	}
	if x.Whole > 0 {
		const cells = 20
		part := max(0, min(x.Part, x.Whole))
		full := int(part * cells / x.Whole)
		words += fmt.Sprintf("  %s%s %d%%", strings.Repeat("▮", full), strings.Repeat("▯", cells-full), part*100/x.Whole)
	}
	if x.Text != "" {
		words += "  " + x.Text
	}
	return words
}
