// Package merge puts changes of texts together, line by line: two changes of one
// text (Three), or some of the hunks of a difference (Pick). It is where texts are
// compared, too (Edits), so that what is shown and what is merged is the same.
//
// It works on values in the caller's goroutine and writes nothing. Texts are
// hostile: how much of them is looked at is bounded, and what can't be merged says
// why. It is safe for concurrent use.
package merge

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"stepbox/session/api"
)

// Bounds of a merge. Beyond them two changes are in conflict as a whole.
const (
	maxBytes   = 4 << 20 // each text
	maxClashes = 1000    // places
	maxShown   = 20_000  // lines of all clashes
)

// Result is what two changes of one text come to.
type Result struct {
	Why     string      // why they can't be merged by lines, in words; "" when they can
	Clean   bool        // they don't meet, and Text has both
	Text    []byte      // when Clean
	Clashes []api.Clash // the places where they meet, in order

	parts []part
}

// part is a run of the merged text: text, or there and wanted where they clash.
type part struct {
	clash               bool
	text, there, wanted string
}

// Three merges what there and wanted each changed of base, by the rules of
// git-merge-file(1): changes that overlap or touch clash, unless they are the
// same; a last line without a newline is another line than one with it. A file
// that isn't there is an empty text.
func Three(base, there, wanted []byte) Result {
	for _, text := range [][]byte{base, there, wanted} {
		switch {
		case len(text) > maxBytes:
			return Result{Why: "too large to be merged"}
		case Binary(text):
			return Result{Why: "binary"}
		}
	}
	m := merging{base: string(base)}
	m.run(joined(Edits(m.base, string(there))), joined(Edits(m.base, string(wanted))))
	switch {
	case m.Why != "":
		return Result{Why: m.Why}
	case len(m.Clashes) == 0:
		m.Clean = true
		m.Text, _ = m.Resolve(nil) // there is nothing to be resolved
	}
	return m.Result
}

// Resolve is the merged text with one side, api.WayThere or api.WayWanted, for
// each clash.
func (r *Result) Resolve(sides []api.Way) ([]byte, error) {
	if r.Why != "" {
		return nil, api.Problemf(api.CodeInvalid, "this can't be merged: %s", r.Why)
	}
	if len(sides) != len(r.Clashes) {
		return nil, api.Problemf(api.CodeInvalid, "a merge of %d clashes needs a side for each, not %d", len(r.Clashes), len(sides))
	}
	var out []byte
	for _, p := range r.parts {
		if !p.clash {
			out = append(out, p.text...)
			continue
		}
		switch sides[0] {
		case api.WayThere:
			out = append(out, p.there...)
		case api.WayWanted:
			out = append(out, p.wanted...)
		default:
			return nil, api.Problemf(api.CodeInvalid, "the side of a clash is %q or %q", api.WayThere, api.WayWanted)
		}
		sides = sides[1:]
	}
	return out, nil
}

// merging is a merge on its way through the base.
type merging struct {
	Result
	base  string
	line  int // of the text that is there, how many lines came before
	shown int // lines of clashes
}

// run goes through the changes of both sides in order.
func (m *merging) run(there, wanted []udiff.Edit) {
	at := 0
	for (len(there) > 0 || len(wanted) > 0) && m.Why == "" {
		start := len(m.base)
		for _, side := range [][]udiff.Edit{there, wanted} {
			if len(side) > 0 {
				start = min(start, side[0].Start)
			}
		}
		m.keep(m.base[at:start])
		// All that overlap or touch each other are one place.
		t, w, end := 0, 0, start
		for {
			if t < len(there) && there[t].Start <= end {
				end = max(end, there[t].End)
				t++
			} else if w < len(wanted) && wanted[w].Start <= end {
				end = max(end, wanted[w].End)
				w++
			} else {
				break
			}
		}
		m.place(start, end, there[:t], wanted[:w])
		there, wanted, at = there[t:], wanted[w:], end
	}
	m.keep(m.base[at:])
}

// keep adds what both sides have.
func (m *merging) keep(text string) {
	m.parts = append(m.parts, part{text: text})
	m.line += strings.Count(text, "\n")
}

// place decides what becomes of one place of the base.
func (m *merging) place(start, end int, there, wanted []udiff.Edit) {
	t, w := changed(m.base, start, end, there), changed(m.base, start, end, wanted)
	switch {
	case len(wanted) == 0 || t == w:
		m.keep(t)
		return
	case len(there) == 0:
		m.parts = append(m.parts, part{text: w}) // which isn't there
		m.line += strings.Count(t, "\n")
		return
	}
	c := api.Clash{Line: m.line + 1, Base: lines(m.base[start:end]), There: lines(t), Wanted: lines(w)}
	m.line += strings.Count(t, "\n")
	m.parts = append(m.parts, part{clash: true, there: t, wanted: w})
	m.Clashes = append(m.Clashes, c)
	if m.shown += len(c.Base) + len(c.There) + len(c.Wanted); m.shown > maxShown || len(m.Clashes) > maxClashes {
		m.Why = "too different"
	}
}

// changed is a part of a text as some edits in it make it.
func changed(text string, start, end int, edits []udiff.Edit) string {
	var b strings.Builder
	for _, e := range edits {
		b.WriteString(text[start:e.Start])
		b.WriteString(e.New)
		start = e.End
	}
	b.WriteString(text[start:end])
	return b.String()
}

// joined makes edits that touch each other one.
func joined(edits []udiff.Edit) []udiff.Edit {
	var out []udiff.Edit
	for _, e := range edits {
		if n := len(out); n > 0 && out[n-1].End == e.Start {
			out[n-1].End = e.End
			out[n-1].New += e.New
			continue
		}
		out = append(out, e)
	}
	return out
}

// lines are a text's, as they are shown.
func lines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, api.EscapeLine(line))
	}
	return out
}

// Pick is before with some hunks of its difference from after, and no others.
// The chosen are indices in hunks.
func Pick(before, after []byte, hunks []api.Hunk, chosen []int) ([]byte, error) {
	b, a := offsets(before), offsets(after)
	wanted := make([]bool, len(hunks))
	for _, i := range chosen {
		if i < 0 || i >= len(hunks) {
			return nil, api.Problemf(api.CodeInvalid, "there is no hunk %d: the file has %d", i, len(hunks))
		}
		wanted[i] = true
	}
	var out []byte
	at := 0 // in before
	for i, h := range hunks {
		if !wanted[i] {
			continue
		}
		b0, b1, okB := within(b, h.OldLine, h.OldCount)
		a0, a1, okA := within(a, h.NewLine, h.NewCount)
		if !okB || !okA || b0 < at {
			return nil, fmt.Errorf("cannot take hunk %d: it isn't one of these texts", i)
		}
		out = append(append(out, before[at:b0]...), after[a0:a1]...)
		at = b1
	}
	return append(out, before[at:]...), nil
}

// Drop is after without some hunks of its difference from before.
func Drop(before, after []byte, hunks []api.Hunk, chosen []int) ([]byte, error) {
	back := make([]api.Hunk, len(hunks))
	for i, h := range hunks {
		back[i] = api.Hunk{OldLine: h.NewLine, OldCount: h.NewCount, NewLine: h.OldLine, NewCount: h.OldCount}
	}
	return Pick(after, before, back, chosen)
}

// offsets are where a text's lines begin, and its end.
func offsets(text []byte) []int {
	out := []int{0}
	for line := range strings.Lines(string(text)) {
		out = append(out, out[len(out)-1]+len(line))
	}
	return out
}

// within is where count lines from one on begin and end. Of none, line is the
// one after which they would stand.
func within(offsets []int, line, count int) (from, to int, ok bool) {
	if count > 0 {
		line--
	}
	if line < 0 || count < 0 || line+count >= len(offsets) {
		return 0, 0, false
	}
	return offsets[line], offsets[line+count], true
}
