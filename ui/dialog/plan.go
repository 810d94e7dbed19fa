package dialog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/state"
)

// Work is what a plan is for: exactly one of Apply, Undo and Back.
type Work struct {
	Title string               // as a question
	Yes   string               // what yes does
	Done  string               // what is said once it was done
	Apply *api.ApplyRequest    // write to the project folder
	Undo  int64                // undo this apply
	Back  *api.RollbackRequest // roll back in the sandbox, or bring again
	Edit  int64                // the question about an edit that this takes back; 0: it is of none
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
	undoes  map[string]api.ApplyFile // of shown, what undoes an earlier apply
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
	came            string // what came of that, in a word or two
	applied         int64  // as this apply
	notice, failure string // what is said above the keys

	diff    api.FileDiff
	diffOf  string
	diffErr string
}

// NewPlan opens a plan that isn't made yet. The person's checks are those of the
// plan before it, if there was one: leaving a plan doesn't lose them.
func NewPlan(w Work, before *Plan) *Plan {
	p := &Plan{work: w, choices: map[string]*api.Resolution{}, wanted: 1}
	if w.Edit != 0 {
		p.dock = dockRows
	}
	if before != nil {
		p.own, p.checks = before.own, slices.Clone(before.checks)
	}
	return p
}

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
		return "cancels it: what was begun is undone"
	case p.over:
		return "close"
	}
	return "leaves everything as it is"
}

// Handle takes the person's choices.
func (p *Plan) Handle(i intent.Intent) intent.Intent {
	if p.Why(i) != "" {
		return nil
	}
	it := p.selected()
	switch i := i.(type) {
	case intent.Yes:
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
		return it.choose(i.Way)
	case intent.Toggle:
		return it.toggle()
	case intent.Commits:
		return p.toggleCommits()
	case intent.AddCheck:
		return intent.AskCheck{At: len(p.checks)}
	case intent.Open:
		return it.edit
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

func (p *Plan) toggleCommits() intent.Intent {
	p.work.Apply.Commits = !p.work.Apply.Commits
	return p.choose()
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
	for i, c := range p.shown.Conflicts { // what was resolved stays, to be resolved another way
		if at := slices.IndexFunc(shown.Conflicts, func(x api.Conflict) bool { return x.Key == c.Key }); at < 0 && p.choices[c.Key] != nil {
			shown.Conflicts = slices.Insert(slices.Clone(shown.Conflicts), min(i, len(shown.Conflicts)), c)
		}
	}
	p.shown, p.planned, p.undoes = shown, count, map[string]api.ApplyFile{}
	for _, f := range shown.Files {
		if f.Undoes {
			p.undoes[f.Key] = f
		}
	}
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
	if p.work.Back != nil {
		p.diff.Hunks = slices.Clone(p.diff.Hunks)
		for i, h := range p.diff.Hunks {
			p.diff.Hunks[i] = turned(h)
		}
	}
}

func (p *Plan) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	b, title := p.begin(f, area, 190), p.work.Title
	if p.over {
		title = p.came
	}
	p.head(b)
	p.show(b, area, f, titled(title), p.hints(f), p.note(f))
	return nil
}
