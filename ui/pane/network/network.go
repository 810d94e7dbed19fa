// Package network is the pane that lists what the agent tried to reach. Attempts
// at the same destination by the same program with the same verdict fold into
// one row with a count.
package network

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/find"
	"stepbox/ui/intent"
	"stepbox/ui/paint"
	"stepbox/ui/pane/rows"
	"stepbox/ui/state"
)

// Pane lists a session's attempts.
type Pane struct {
	State *state.State
	rows.List

	filter find.Filter
	found  int  // attempts that it has
	sifted bool // the rows are those of it

	list    []Fold // the rows: folded attempts, then what is asked about
	folds   []Fold // the former
	denied  int
	built   bool
	tried   uint64 // of the attempts that were folded
	version uint64 // of the state whose questions are listed
}

// Fold is a row: attempts at one destination.
type Fold struct {
	Last           api.Attempt
	Count          int
	Sent, Received int64
	Open           int
	IDs            []int64       // the newest ones, at most maxIDs; none of a question
	Question       *api.Question // it is asked about, and this is what of it; else nil
	held           bool
	refused        int // requests that no credential was put into
}

const maxIDs = 500

type destination struct {
	verdict                          api.Verdict
	protocol, name, address, program string
	port                             int
	failed                           bool
}

func (p *Pane) rows() []Fold {
	if p.built && p.sifted && p.version == p.State.Version && p.tried == p.State.Tried {
		return p.list
	}
	var keep int64 // what the selection stays on while rows come and go
	if p.built && !p.List.Follows() && p.List.At() < len(p.list) {
		keep = p.list[p.List.At()].id()
	}
	if !p.built || !p.sifted || p.tried != p.State.Tried {
		attempts := p.sift()
		p.folds, p.denied, p.found = foldsOf(attempts), 0, len(attempts)
		for i := range p.folds {
			if a := p.folds[i].Last; a.Verdict == api.Deny && !a.GaveUp() { // as all of its attempts have
				p.denied += p.folds[i].Count
			}
		}
	}
	p.built, p.sifted, p.tried, p.version = true, true, p.State.Tried, p.State.Version
	p.list = withHeld(p.list[:0], p.folds, p.State.Questions)
	for i := range p.list {
		if keep != 0 && (p.list[i].id() == keep || slices.Contains(p.list[i].IDs, keep)) {
			p.List.Select(i)
		}
	}
	return p.list
}

// foldsOf folds attempts, in the order in which their destinations were first tried.
func foldsOf(attempts []api.Attempt) []Fold {
	where := map[destination]int{}
	var out []Fold
	for n := range attempts {
		a := &attempts[n]
		d := destination{a.Verdict, a.Protocol, a.Name, a.Address, a.Program, a.Port, a.Failure != ""}
		if a.Name != "" {
			d.address = ""
		}
		i, ok := where[d]
		if !ok {
			i = len(out)
			where[d] = i
			out = append(out, Fold{})
		}
		f := &out[i]
		f.Last = *a
		f.Count++
		f.Sent += a.Sent
		f.Received += a.Received
		f.refused += a.Refused
		if a.Open {
			f.Open++
		}
		f.held = a.Verdict == api.Ask
		if len(f.IDs) < maxIDs {
			f.IDs = append(f.IDs, a.ID)
		}
	}
	return out
}

// Handle moves in the list.
func (p *Pane) Handle(i intent.Intent) (why string) {
	p.List.Handle(i, len(p.rows()))
	return ""
}

// Empty says whether nothing is listed.
func (p *Pane) Empty() bool { return len(p.rows()) == 0 }

// Selected is the selected row, if there is any.
func (p *Pane) Selected() (Fold, bool) {
	folds := p.rows()
	if len(folds) == 0 {
		return Fold{}, false
	}
	return folds[p.List.In(len(folds))], true
}

func (p *Pane) Draw(area uv.Rectangle, f paint.Frame) *tea.Cursor {
	folds := p.rows()
	box := paint.Box{Title: rows.Title("Network", p.filter, p.found, len(p.State.Attempts))}
	box.Facts = p.facts(f)
	if !p.filter.Narrows() {
		box.Right = p.List.State(len(folds), p.List.Follows(), area.Dx(), f)
	}
	inner := box.Draw(area, f)
	p.List.Draw(area, inner, len(folds), f, false, p.none(), func(r uv.Rectangle, n int) { p.row(r, f, folds[n]) })
	return nil
}

// none is what is said where there are no rows.
func (p *Pane) none() string {
	switch {
	case p.filter.Narrows():
		return "nothing here has that: " + paint.Clean(p.filter.String())
	case p.State.Session.State != "" && !p.State.Session.Live():
		return "none: the agent tried no connection"
	}
	return "nothing yet: each connection the agent tries appears here"
}

// facts are the counts in the upper edge.
func (p *Pane) facts(f paint.Frame) (out paint.Line) {
	if n := p.asked(); n > 0 {
		out = out.Fact(f.P, strconv.Itoa(n)+" held", themes.Held)
	}
	if p.denied > 0 {
		out = out.Fact(f.P, strconv.Itoa(p.denied)+" denied", themes.Fail)
	}
	if n := len(p.State.Attempts); n > 0 && !p.filter.Narrows() {
		words := paint.Count(n, "attempt", "attempts")
		if p.State.Attempts[0].ID > 1 { // the screen begins with the newest; stepbox log has all
			words = "newest " + words
		}
		out = out.Fact(f.P, words, themes.Muted)
	}
	return out
}

func (p *Pane) row(r uv.Rectangle, f paint.Frame, fold Fold) {
	a := fold.Last
	y, x, end := r.Min.Y, r.Min.X+1, r.Max.X-1
	if fold.Question != nil {
		heldRow(r, f, fold.Question)
		return
	}
	glyph, token, words := verdict(fold)
	x = f.Text(x, y, end, glyph+" ", token)
	start := p.State.Session.StartedAt
	if r.Dx() >= 34 {
		at := "--:--"
		if !start.IsZero() && !a.At.IsZero() {
			at = paint.Clock(a.At.Sub(start).Truncate(time.Second))
		}
		x = f.Text(x, y, end, at+" ", themes.Muted)
	}
	right := paint.Line{f.Span(words, token)}
	if words == "" {
		right = traffic(f, fold, r.Dx() >= 60)
	}
	if fold.refused > 0 {
		right = append(paint.Line{f.Span(strconv.Itoa(fold.refused)+" refused ", themes.Warn)}, right...)
	}
	if fold.Count > 1 {
		right = append(right, f.Span(fmt.Sprintf(" ×%d", fold.Count), themes.Info))
	}
	w := f.LineWidth(right)
	stop := end
	if w+14 < end-x {
		stop = end - w - 1
		f.Line(end-w, y, end, right)
	}
	host := Destination(a)
	title := f.P.S(themes.Text)
	if a.Verdict == api.Deny && !a.GaveUp() {
		title = f.P.S(themes.Strong)
	}
	program := paint.Clean(a.Program)
	program = program[strings.LastIndexByte(program, '/')+1:]
	if a.Program != "" && stop-x > f.Width(host)+len(program)+3 {
		x = paint.Text(f.Screen, x, y, stop, host, title)
		f.Clip(x+2, y, stop, program, themes.Faint)
		return
	}
	paint.Clip(f.Screen, x, y, stop, host, title)
}

// traffic is a row's bytes; those of a connection that is open look alive.
func traffic(f paint.Frame, fold Fold, roomy bool) paint.Line {
	st := f.P.S(themes.Muted)
	if fold.Open > 0 {
		st = f.P.S(themes.Running)
	}
	l := paint.Line{
		{Text: paint.Bytes(fold.Sent) + "↑ ", Style: st},
		{Text: paint.Bytes(fold.Received) + "↓", Style: st},
	}
	if fold.Open > 0 && roomy {
		l = append(l, f.Span(" open", themes.Running))
	}
	return l
}

// verdict is the mark and the word of a row. An allowed one has no word: its
// bytes say more.
func verdict(fold Fold) (glyph string, token themes.Token, words string) {
	switch {
	case fold.Last.GaveUp():
		return "∅", themes.Muted, "gave up"
	case fold.Last.Verdict == api.Deny:
		return "✗", themes.Denied, "denied"
	case fold.held:
		return "◆", themes.Held, "HELD"
	case fold.Last.Failure != "":
		return "!", themes.Warn, "failed"
	}
	return "✓", themes.OK, ""
}

// Destination is where an attempt went, as a person would write it.
func Destination(a api.Attempt) string {
	host := a.Host()
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = paint.Clean(host)
	if a.Port != 0 {
		host = net.JoinHostPort(host, strconv.Itoa(a.Port))
	}
	if a.Protocol != "" && a.Protocol != "tcp" {
		host += " " + paint.Clean(a.Protocol)
	}
	return host
}

// Filter lists only the attempts that a filter has, and what is held.
func (p *Pane) Filter(f find.Filter) {
	if n := len(p.rows()); !f.Narrows() && n > 0 {
		p.List.Select(p.List.In(n))
	}
	p.filter, p.sifted = f, false
	if n := len(p.rows()); p.List.At() == n-1 {
		p.List.Follow()
	}
}

// Select selects the row of an attempt, if it is listed.
func (p *Pane) Select(id int64) {
	if i := slices.IndexFunc(p.rows(), func(f Fold) bool { return slices.Contains(f.IDs, id) }); i >= 0 {
		p.List.Select(i)
	}
}

// Match goes to the next or previous row that the filter has.
func (p *Pane) Match(by int) {
	folds := p.rows()
	p.List.Step(by, len(folds), func(n int) bool { return folds[n].Question == nil })
}

// sift are the attempts that the filter has.
func (p *Pane) sift() []api.Attempt {
	if !p.filter.Narrows() {
		return p.State.Attempts
	}
	var out []api.Attempt
	for i := range p.State.Attempts {
		if r := find.OfAttempt(&p.State.Attempts[i]); p.filter.Has(&r) {
			out = append(out, p.State.Attempts[i])
		}
	}
	return out
}
