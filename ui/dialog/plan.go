package dialog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// Work is what a plan is for: exactly one of Apply, Undo and Back.
type Work struct {
	Title string               // as a question
	Yes   string               // what yes does
	Apply *api.ApplyRequest    // write to the project folder
	Undo  int64                // undo this apply
	Back  *api.RollbackRequest // roll back in the sandbox, or bring again
	Scope *api.Scope           // whose differences are those of the planned files; nil: none are
}

// check is one that may run before an apply.
type check struct {
	command string
	on      bool
}

// Plan shows what work would do to files, takes the choices that it leaves, and
// asks once before it is carried out; then how that goes, and what came of it.
// Each choice makes another plan: yes is for the plan that is shown, with the
// choices it was made for.
type Plan struct {
	board
	work    Work
	shown   Planned
	choices map[string]*api.Resolution
	checks  []check
	own     bool   // the checks are the person's, not the project's
	looked  string // at which unreviewed changes the person has looked

	wanted, planned int  // counts of the choices: as they are, and of the plan that is shown
	asking          bool // a plan is under way
	running         bool // it is carried out
	stopping        bool // that is being cancelled
	progress        api.Progress
	over            bool   // it was carried out
	applied         int64  // as this apply
	notice, failure string // what is said above the keys

	diff    api.FileDiff
	diffOf  string
	diffErr string
}

// NewPlan opens a plan that isn't made yet.
func NewPlan(w Work) *Plan { return &Plan{work: w, choices: map[string]*api.Resolution{}, wanted: 1} }

func (p *Plan) Scope() keys.Scope { return keys.Plan }

// Target is the plan that is shown, with the choices that it was made for.
func (p *Plan) Target() state.Target {
	if p.over || p.planned != p.wanted {
		return state.Target{}
	}
	return state.Target{Hash: fmt.Sprint(p.shown.Hash, " ", p.planned), Place: "plan"}
}

func (p *Plan) Care(i intent.Intent) state.Care {
	switch i.(type) {
	case intent.Yes, intent.Seen:
		if p.Why(i) == "" {
			return state.Quiet
		}
	}
	return state.AtOnce
}

func (p *Plan) Fail(words string) {
	p.failure, p.running, p.stopping, p.asking = words, false, false, false
}

func (p *Plan) Leave() string {
	switch {
	case p.running && p.work.Back != nil:
		return "closes this; it goes on"
	case p.running:
		return "cancels it: what was begun is taken back"
	case p.over:
		return "close"
	}
	return "leaves everything as it is"
}

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
			return "scroll to them first: they aren't all in view yet (↓)"
		}
	case intent.Choose:
		switch {
		case p.over || it.what != "conflict" && it.what != "clash":
			return "choose a conflict first (↑↓): only there are m, w and t to be chosen"
		case i.Way == api.WayMerge && it.what == "clash":
			return "for one place it is w or t; m on the file joins them"
		case i.Way == api.WayMerge && p.shown.Conflicts[it.n].Clean:
		case i.Way == api.WayMerge && len(p.shown.Conflicts[it.n].Clashes) == 0:
			return "it isn't text that could be merged: w or t"
		}
	case intent.Toggle:
		if p.over || !slices.Contains([]string{"conflict", "clash", "check", "commits"}, it.what) {
			return "nothing to choose here: space is for conflicts, checks and commits"
		}
	case intent.Open:
		if it.what != "check" || p.over {
			return "y carries it out; enter only edits a check"
		}
	case intent.AddCheck, intent.Commits:
		if p.over || p.work.Apply == nil {
			return "that is for an apply"
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
		return paint.Count(p.unseen(), "more thing", "more things") + " to look at below: go through them first (↓)"
	case p.work.Apply != nil && len(p.shown.Unreviewed) > 0 && !p.work.Apply.Looked:
		return paint.Count(len(p.shown.Unreviewed), "change is", "changes are") + " of no reviewed action: v says that you have looked"
	case p.shown.Blocked != "":
		return p.shown.Blocked
	case len(p.shown.Files) == 0 && p.shown.More == 0 && len(p.shown.Commits) == 0:
		return "there is nothing to do"
	}
	return ""
}

// Handle takes the person's choices.
func (p *Plan) Handle(i intent.Intent) intent.Intent {
	it := p.selected()
	switch i := i.(type) {
	case intent.Yes:
		if p.whyNot() != "" {
			return nil
		}
		p.running, p.notice, p.progress = true, "", api.Progress{}
		return intent.CarryOut{}
	case intent.Back:
		if !p.running || p.work.Back != nil {
			return i
		}
		p.stopping = true
		return intent.Stop{}
	case intent.Again:
		p.over, p.failure, p.notice = false, "", ""
		return p.choose()
	case intent.Applies:
		return intent.UndoApply{ID: p.applied}
	case intent.Seen:
		p.work.Apply.Looked, p.looked = true, fmt.Sprint(p.shown.Unreviewed)
		return p.choose()
	case intent.Choose:
		return p.resolve(it, i.Way)
	case intent.Toggle:
		switch it.what {
		case "check":
			p.own, p.checks[it.n].on = true, !p.checks[it.n].on
			return p.choose()
		case "commits":
			return p.Handle(intent.Commits{})
		}
		return p.resolve(it, p.next(it))
	case intent.Commits:
		p.work.Apply.Commits = !p.work.Apply.Commits
		return p.choose()
	case intent.AddCheck:
		return intent.AskCheck{At: len(p.checks)}
	case intent.Open:
		if it.what == "check" {
			return intent.AskCheck{At: it.n, Command: p.checks[it.n].command}
		}
	case intent.SetCheck:
		p.own = true
		switch command := strings.TrimSpace(i.Command); {
		case i.At < len(p.checks) && command == "":
			p.checks = slices.Delete(p.checks, i.At, i.At+1)
		case i.At < len(p.checks):
			p.checks[i.At] = check{command, true}
		case command == "":
			return nil
		default:
			p.checks = append(p.checks, check{command, true})
		}
		return p.choose()
	}
	return p.board.Handle(i)
}

// choose notes that the choices aren't those of the plan any more.
func (p *Plan) choose() intent.Intent {
	p.wanted++
	p.notice, p.failure = "", ""
	p.put(p.list())
	return intent.Replan{}
}

// way is what was chosen for a conflict, or for one of its clashes; "" is nothing yet.
func (p *Plan) way(it item) api.Way {
	if it.what == "clash" {
		c, k := it.n>>16, it.n&0xffff
		if r := p.choices[p.shown.Conflicts[c].Key]; r != nil && r.Way == api.WayMerge && k < len(r.Sides) {
			return r.Sides[k]
		}
		return ""
	}
	if r := p.choices[p.shown.Conflicts[it.n].Key]; r != nil {
		return r.Way
	}
	return ""
}

// next is the choice after the one that is made.
func (p *Plan) next(it item) api.Way {
	ways := []api.Way{api.WayMerge, api.WayWanted, api.WayThere}
	if it.what == "clash" || !p.shown.Conflicts[it.n].Clean {
		ways = ways[1:]
	}
	return ways[(slices.Index(ways, p.way(it))+1)%len(ways)]
}

// resolve takes a choice for a conflict, or for a place of it.
func (p *Plan) resolve(it item, w api.Way) intent.Intent {
	n := it.n
	if it.what == "clash" {
		n >>= 16
	}
	c := p.shown.Conflicts[n]
	r := p.choices[c.Key]
	if r == nil || it.what == "conflict" || r.Way != api.WayMerge {
		r = &api.Resolution{Key: c.Key, Way: w}
		if it.what == "clash" || w == api.WayMerge && !c.Clean {
			r.Way, r.Sides = api.WayMerge, make([]api.Way, len(c.Clashes))
		}
		p.choices[c.Key] = r
	}
	if it.what == "clash" {
		r.Sides[it.n&0xffff] = w
	}
	return p.choose()
}

// open is how many places of a merge wait for a choice.
func open(r *api.Resolution) (n int) {
	for _, s := range r.Sides {
		if s == "" {
			n++
		}
	}
	return n
}

// Ask begins a plan, if one is wanted and none is under way: it returns the work
// with the choices as they are, and their count.
func (p *Plan) Ask() (Work, int, bool) {
	if p.asking || p.running || p.over || p.planned == p.wanted {
		return Work{}, 0, false
	}
	p.asking = true
	return p.chosen(), p.wanted, true
}

// Carry is the work with the choices that it was planned with, and the plan's hash.
func (p *Plan) Carry() (Work, string) { return p.chosen(), p.shown.Hash }

func (p *Plan) chosen() Work {
	var resolve []api.Resolution
	for _, r := range p.choices {
		if open(r) == 0 {
			resolve = append(resolve, *r)
		}
	}
	slices.SortFunc(resolve, func(a, b api.Resolution) int { return cmp.Compare(a.Key, b.Key) })
	w := p.work
	switch {
	case w.Apply != nil:
		r := *w.Apply
		r.Resolve = resolve
		if p.own {
			r.Checks = nil
			for _, c := range p.checks {
				if c.on {
					r.Checks = append(r.Checks, c.command)
				}
			}
			r.NoChecks = len(r.Checks) == 0
		}
		w.Apply = &r
	case w.Back != nil:
		r := *w.Back
		r.Resolve = resolve
		w.Back = &r
	}
	return w
}

// SetPlan shows a plan that was made for that count of choices, or why there is none.
func (p *Plan) SetPlan(count int, shown Planned, problem string) {
	p.asking = false
	if problem != "" {
		p.Fail(problem)
		p.planned = count
		return
	}
	p.shown, p.planned = shown, count
	if p.work.Apply != nil && p.work.Apply.Looked && fmt.Sprint(shown.Unreviewed) != p.looked {
		p.work.Apply.Looked = false // these are others
		p.wanted++
	}
	if !p.own {
		p.checks = nil
		for _, c := range shown.Checks {
			p.checks = append(p.checks, check{c, true})
		}
	}
	p.put(p.list())
}

// Stale says that the plan isn't true any more, so that another is to be made.
func (p *Plan) Stale(words string) {
	p.running, p.stopping, p.seen = false, false, nil
	p.choose()
	p.notice = words
}

// SetProgress tells how the work goes.
func (p *Plan) SetProgress(x api.Progress) { p.progress = x }

// Wants is the changed file whose differences should be shown and aren't yet.
func (p *Plan) Wants() (key string, in api.Scope, ok bool) {
	it := p.selected()
	if it.key == "" || it.key == p.diffOf || p.work.Scope == nil {
		return "", api.Scope{}, false
	}
	return it.key, *p.work.Scope, true
}

// SetDiff takes a file's differences, or why there are none. Of hunks that were
// selected only those are shown.
func (p *Plan) SetDiff(key string, d api.FileDiff, problem string) {
	p.diffOf, p.diff, p.diffErr = key, d, problem
	var sel api.Selection
	switch w := p.work; {
	case w.Apply != nil:
		sel = w.Apply.Selection
	case w.Back != nil && w.Back.Selection != nil:
		sel = *w.Back.Selection
	}
	for _, c := range sel.Files {
		if c.Key != key || len(c.Hunks) == 0 {
			continue
		}
		p.diff.Hunks = nil
		for _, n := range c.Hunks {
			if n < len(d.Hunks) {
				p.diff.Hunks = append(p.diff.Hunks, d.Hunks[n])
			}
		}
		if c.Of != d.Hash {
			p.diff.Hunks, p.diffErr = nil, "it has changed since its hunks were selected"
		}
	}
}

func (p *Plan) Draw(dst uv.Screen, area uv.Rectangle, f paint.Frame) *tea.Cursor {
	width := p.measure(area, 190)
	title := paint.Line{{Text: p.work.Title, Style: f.P.S(themes.Strong)}}
	p.show(dst, area, f, title, p.head(dst, width), p.hints(f), p.note(f))
	return nil
}

// hints are the keys that mean something now.
func (p *Plan) hints(f paint.Frame) []paint.Hint {
	var out []paint.Hint
	for _, b := range keys.In(keys.Plan) {
		h := paint.Hint{Key: b.First(), Words: b.Short}
		switch b.Intent.(type) {
		case intent.Yes:
			if p.over || p.running {
				continue
			}
			h.Words, h.Off = p.work.Yes, p.whyNot() != "" || f.Wait > 0
		case intent.Back:
			h.Words = p.Leave()
		case intent.Again:
			if p.running || p.failure == "" && !(p.over && p.failed()) {
				continue
			}
		case intent.Seen:
			h.Off = p.unseen() > 0 || f.Wait > 0
			if p.over || p.running || p.work.Apply == nil || p.work.Apply.Looked || len(p.shown.Unreviewed) == 0 {
				continue
			}
		case intent.Applies:
			if p.applied == 0 {
				continue
			}
		case intent.Open:
			if p.selected().what != "check" || p.over || p.running {
				continue
			}
		default:
			if b.Short == "" || p.over || p.Why(b.Intent) != "" {
				continue
			}
		}
		out = append(out, h)
	}
	return out
}

// failed says whether the work came to nothing.
func (p *Plan) failed() bool { return p.failure != "" }

// note is what stands above the keys.
func (p *Plan) note(f paint.Frame) text {
	switch why := p.whyNot(); {
	case p.running:
		return text{"⋯ " + p.going(), themes.Info}
	case p.failure != "":
		return text{"! " + p.failure, themes.Warn}
	case p.over:
		return text{p.notice, themes.OK}
	case p.asking || p.planned != p.wanted:
		return text{"⋯ " + cmp.Or(p.notice, "making the plan"), themes.Info}
	case p.notice != "":
		return text{"! " + p.notice, themes.Warn}
	case why != "":
		return text{"! " + why, themes.Warn}
	case f.Wait > 0:
		return text{"⋯ keys answer in a moment", themes.SurfaceMuted}
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
