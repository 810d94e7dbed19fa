// Package actions is the pane that lists what the agent did, one row each, with
// the agent's housekeeping folded away.
package actions

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/find"
	"stepbox/ui/intent"
	"stepbox/ui/keys"
	"stepbox/ui/paint"
	"stepbox/ui/pane/rows"
	"stepbox/ui/state"
)

// Pane lists a session's actions.
type Pane struct {
	State *state.State
	rows.List
	Notice  paint.Line // shown in the lower edge
	Loading bool
	Auto    bool       // the selection was led to what is held, so the list still follows
	Wrote   find.Wrote // who wrote the files that the filter asks for, as Filter takes it

	filter find.Filter
	found  int  // actions that the filter has
	sifted bool // the rows are those of the filter

	unfolded bool
	marked   map[int]bool // actions that were selected, for what can be done with several
	items    []item
	version  uint64
	built    bool
}

// item is a row: an action, a run of folded ones, those before the first that the
// state has, or a question about what is to be reached.
type item struct {
	index    int // of the action, or of the run's first
	n        int // its number
	folded   int // how many are folded here; 0 for an action
	earlier  bool
	question int64 // 0: it isn't one
	kept     bool  // the filter hasn't it; it is held, though
}

// Handle moves in the list, selects actions, and unfolds housekeeping.
func (p *Pane) Handle(i intent.Intent) (why string) {
	switch i.(type) {
	case intent.Fold:
		p.Fold()
	case intent.Toggle:
		p.mark()
	default:
		p.List.Handle(i, p.Total())
	}
	return ""
}

// Empty says whether nothing is listed.
func (p *Pane) Empty() bool { return p.Total() == 0 }

// Fold shows or folds housekeeping.
func (p *Pane) Fold() {
	n := p.Selected()
	p.unfolded = !p.unfolded
	p.built = false
	if !p.List.Follows() {
		p.Select(n)
	}
}

// mark selects the action that the cursor is on, or no longer.
func (p *Pane) mark() {
	n := p.Selected()
	p.Select(n)
	if p.marked[n] {
		delete(p.marked, n)
	} else {
		if p.marked == nil {
			p.marked = map[int]bool{}
		}
		p.marked[n] = true
	}
}

// Marked are the selected actions, by number.
func (p *Pane) Marked() []int { return slices.Sorted(maps.Keys(p.marked)) }

// Clear selects none, and says whether any was.
func (p *Pane) Clear() bool {
	any := len(p.marked) > 0
	p.marked = nil
	return any
}

// NextOpen goes to the first action after the selected one whose changes wait for
// a word, if there is one.
func (p *Pane) NextOpen() {
	items := p.rows()
	for i := p.List.In(len(items)) + 1; i < len(items); i++ {
		if it := items[i]; it.folded == 0 && it.question == 0 && p.State.Actions[it.index].Review == api.ReviewOpen {
			p.List.Select(i)
			return
		}
	}
}

// Total is how many rows there are.
func (p *Pane) Total() int { return len(p.rows()) }

// Selected is the selected action's number, or 0.
func (p *Pane) Selected() int {
	items := p.rows()
	if len(items) == 0 {
		return 0
	}
	i := p.List.In(len(items))
	if items[i].folded > 0 {
		return 0
	}
	return items[i].n
}

// Question is the question whose row is selected, or 0.
func (p *Pane) Question() int64 {
	items := p.rows()
	if len(items) == 0 {
		return 0
	}
	return items[p.List.In(len(items))].question
}

// SelectQuestion selects the row of what is asked about: the question's own, or its
// action's.
func (p *Pane) SelectQuestion(q api.Question) bool {
	for i, it := range p.rows() {
		if it.question == q.ID {
			p.List.Select(i)
			return true
		}
	}
	return p.Select(q.Action)
}

// Select selects an action by its number, if it is listed.
func (p *Pane) Select(n int) bool {
	for i, it := range p.rows() {
		if it.folded == 0 && it.question == 0 && it.n == n {
			p.List.Select(i)
			return true
		}
	}
	return false
}

func (p *Pane) rows() []item {
	if p.built && p.sifted && p.version == p.State.Version {
		return p.items
	}
	keep := item{n: -1} // what the selection stays on while rows come and go
	if p.built && !p.List.Follows() && p.List.At() < len(p.items) {
		keep = p.items[p.List.At()]
	}
	p.items, p.version, p.built, p.sifted, p.found = p.items[:0], p.State.Version, true, true, 0
	has := p.sift()
	for i := range p.State.Actions {
		a := &p.State.Actions[i]
		if i == 0 && a.N > 1 {
			p.items = append(p.items, item{folded: a.N - 1, earlier: true})
		}
		found, held := has(a)
		if found {
			p.found++
		} else if !held {
			continue
		}
		if !a.Housekeeping || p.unfolded || a.State == api.ActionHeld {
			p.items = append(p.items, item{index: i, n: a.N, kept: !found})
			continue
		}
		if n := len(p.items); n > 0 && p.items[n-1].folded > 0 && !p.items[n-1].earlier {
			p.items[n-1].folded++
			continue
		}
		p.items = append(p.items, item{index: i, n: a.N, folded: 1})
	}
	for _, q := range p.State.Questions {
		if q.Apart() {
			p.items = append(p.items, item{n: q.Action, question: q.ID, kept: p.filter.Narrows()})
		}
	}
	if keep.n < 0 {
		return p.items
	}
	at := slices.IndexFunc(p.items, func(it item) bool { return it.n == keep.n && it.question == keep.question })
	if at < 0 && p.filter.Narrows() { // the next that is listed
		at = slices.IndexFunc(p.items, func(it item) bool { return it.n >= keep.n })
	}
	if at >= 0 {
		p.List.Select(at)
	}
	return p.items
}

// WholeQuestion says whether a row of its own shows all that a decision on what is to
// be reached covers.
func (p *Pane) WholeQuestion(dst uv.Screen, q api.Question) bool {
	if p.Area.Empty() || !q.Apart() {
		return false
	}
	room, _ := p.columns(p.Area.Dx()).title(p.Area.Dx(), true)
	return paint.Width(dst, paint.Wants(q)) <= room
}

// Whole says whether the action's title was drawn whole in its row, so that the
// row shows what a decision on it covers.
func (p *Pane) Whole(dst uv.Screen, a api.Action) bool {
	if p.Area.Empty() {
		return false
	}
	a.Title = paint.Spelled(dst, a.Title)
	c := p.columns(p.Area.Dx())
	room, _ := c.title(p.Area.Dx(), a.State == api.ActionHeld)
	room, _ = share(dst, a, room)
	if len(a.Title) > 4*room {
		return false // no column takes more bytes
	}
	return paint.Width(dst, a.Title) <= room
}

func (p *Pane) digits() int {
	if n := len(p.State.Actions); n > 0 {
		return max(2, len(strconv.Itoa(p.State.Actions[n-1].N))) + 1
	}
	return 3
}

func (p *Pane) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	items := p.rows()
	box := paint.Box{Title: rows.Title("Actions", p.filter, p.found, len(p.State.Actions)), Foot: p.Notice, Facts: p.facts(f)}
	if !p.filter.Narrows() { // then the title counts, and nothing new pulls along
		box.Right = p.List.State(len(items), p.List.Follows() || p.Auto, area.Dx(), f)
	}
	inner := box.Draw(area, f)
	p.List.Draw(area, inner, len(items), f, true, p.none(), func(r uv.Rectangle, n int) { p.row(r, f, items[n]) })
	return nil
}

// none is what is said where there are no rows.
func (p *Pane) none() string {
	switch {
	case p.Loading:
		return "reading the record…"
	case p.filter.Narrows():
		return "nothing here has that: " + paint.Clean(p.filter.String())
	case p.State.Session.State != "" && !p.State.Session.Live():
		return "none: the agent started no command"
	}
	return "nothing yet: each command the agent starts appears here"
}

func (p *Pane) facts(f paint.Frame) (out paint.Line) {
	add := func(n int, words string, k themes.Token) {
		if n > 0 {
			out = out.Fact(f.P, strconv.Itoa(n)+" "+words, k)
		}
	}
	add(len(p.State.Questions), "held", themes.Held)
	add(p.State.Unreviewed(), "unreviewed", themes.Info)
	add(len(p.marked), "selected", themes.Strong)
	return out
}

func (p *Pane) row(r uv.Rectangle, f paint.Frame, it item) {
	y, end := r.Min.Y, r.Max.X-1
	c := p.columns(r.Dx())
	x := r.Min.X + 1 + c.mark
	if it.folded > 0 {
		f.Clip(x, y, end, "⋯", themes.Faint)
		words := paint.Count(it.folded, "housekeeping step", "housekeeping steps") + " folded"
		if it.earlier {
			words = paint.Count(it.folded, "earlier action isn't", "earlier actions aren't") + " on this screen: " + keys.First(intent.Related{To: intent.Actions}, keys.Lists) + " goes to one by its number"
		}
		f.Clip(x+3+c.digits, y, end, words, themes.Faint)
		return
	}
	if it.question != 0 {
		p.asked(r, f, c, it)
		return
	}
	a := p.State.Actions[it.index]
	a.Title = paint.Spelled(f.Screen, a.Title)
	glyph, token := Glyph(a)
	q, asked := p.State.QuestionOf(a.N)
	if asked {
		glyph, token = "◆", themes.Held
	}
	if p.marked[a.N] {
		f.Text(r.Min.X, y, end, "●", themes.Key)
	}
	f.Text(x, y, end, glyph, token)
	x += 2
	num := fmt.Sprintf("%*s", c.digits, "#"+strconv.Itoa(a.N))
	f.Text(x, y, end, num, themes.Muted)
	x += c.digits + 2
	title, held := themes.Text, a.State == api.ActionHeld
	switch {
	case held:
		title = themes.Strong
	case a.Housekeeping, a.State == api.ActionAbandoned:
		title = themes.Muted
	}
	room, alone := c.title(r.Dx(), held)
	full := min(end, x+room)
	room, words := share(f.Screen, a, room)
	x = f.Clip(x, y, min(end, x+room), a.Title, title)
	for _, w := range words {
		x = f.Clip(x, y, full, w.text, w.token)
	}
	if alone {
		return
	}

	right := r.Max.X - 1
	if held {
		p.heldWords(right-c.heldWidth(), y, right, a, f)
		return
	}
	at := right - c.width()
	status, token := fitting(a, c.status-1), StatusToken(a)
	if asked { // an edit, or a program that it started
		status, token = heldSince(q.HeldAt, f), themes.Held
	}
	f.Clip(at, y, at+c.status-1, status, token)
	at += c.status
	if a.State == api.ActionDenied && a.Reason != "" {
		f.Clip(at, y, right, a.Reason, themes.Muted)
		return
	}
	if c.took > 0 {
		if t := took(a, f.Now); t != "" {
			f.Right(at, y, at+c.took-2, paint.Line{f.Span(t, themes.Muted)})
		}
		at += c.took
	}
	if c.lines > 0 {
		if a.Added > 0 || a.Removed > 0 {
			n := f.Text(at, y, at+c.lines, "+"+strconv.Itoa(a.Added), themes.AddedWord)
			f.Text(n+1, y, at+c.lines, "−"+strconv.Itoa(a.Removed), themes.RemovedWord)
		} else if a.Files > 0 {
			f.Text(at, y, at+c.lines, paint.Files(a.Files), themes.Muted)
		}
	}
}

func (p *Pane) heldWords(x, y, end int, a api.Action, f paint.Frame) {
	since := a.StartedAt
	if q, ok := p.State.QuestionOf(a.N); ok {
		since = q.HeldAt
	}
	x = f.Text(x, y, end, heldSince(since, f), themes.Held)
	if a.Rule != "" {
		f.Clip(x+2, y, end, paint.Reason(f.Screen, a.Rule, end-x-2), themes.Muted)
	}
}

func heldSince(t time.Time, f paint.Frame) string { return "HELD" + f.Since(t) }
