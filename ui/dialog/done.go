package dialog

import (
	"fmt"
	"slices"
	"strings"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// Done shows what came of an apply, or of undoing one.
func (p *Plan) Done(a api.Apply) {
	p.running, p.stopping, p.over, p.at, p.first = false, false, true, 0, 0
	p.failure, p.diffOf = "", ""
	var out []item
	say := func(k themes.Token, words string) {
		out = append(out, item{id: fmt.Sprint("result ", len(out)), rows: says(words, k)})
	}
	defer func() { p.put(out); p.fresh = true }()
	files := paint.Files(a.Files)
	switch {
	case a.State == api.ApplyUndone:
		a.Checks, a.Fetched = nil, nil // of the apply that isn't any more
		p.came, p.notice = "Undone", "✓ undone: the project folder has "+files+" as they were"
		if len(a.Left) > 0 {
			p.notice = "✓ undone: the project folder has " + files + " again, not all as they were"
		}
	case a.State == api.ApplyDone && p.work.Undo == 0:
		p.came, p.notice = "Applied", "✓ applied: "+files+" of this session written to the project folder"
	default:
		p.came, p.failure = "Nothing was written", strings.TrimSuffix("nothing was written: "+a.Failure, ": ")
	}
	checks := slices.Clone(a.Checks)
	slices.SortStableFunc(checks, func(x, y api.CheckResult) int { // what failed comes first
		switch {
		case x.Passed() == y.Passed():
			return 0
		case y.Passed():
			return -1
		}
		return 1
	})
	for _, c := range checks {
		mark, k := checkWords(c)
		words := paint.Took(c.Duration)
		switch {
		case c.Failure != "":
			words = c.Failure
		case c.Exit != nil:
			words = c.Exit.Words() + ", " + words
		}
		say(k, mark+c.Command+"  "+words)
		out[len(out)-1].about, out[len(out)-1].tail = output(c), true
	}
	if n := len(a.Fetched); n > 0 {
		say(themes.Strong, paint.Count(n, "commit", "commits")+" of the agent's, in your repository below "+a.Ref)
		tips := map[string]bool{} // the newest commit of each branch comes first
		for _, c := range a.Fetched {
			hash := c.Hash[:min(len(c.Hash), 12)]
			say(themes.Surface, "  "+hash+" "+c.Subject+" — "+c.Author)
			if how := howTo(c.Ref); !tips[c.Folder+c.Ref] {
				say(themes.Strong, how+hash)
			}
			tips[c.Folder+c.Ref] = true
		}
		if a.Files > 0 {
			say(themes.Surface, "  git refuses that over the files that were just written: undo this first (Z), and apply the rest after it")
		}
	}
	for _, path := range a.Paths {
		say(themes.SurfaceMuted, "  "+path)
	}
	if n := a.Files - len(a.Paths); n > 0 && len(a.Paths) > 0 {
		say(themes.SurfaceMuted, fmt.Sprintf("  ⋯ and %d more", n))
	}
	if p.failure == "" && p.work.Undo == 0 {
		p.applied = a.ID
	}
}

// output shows what a check printed, its end first in view.
func output(c api.CheckResult) passage {
	return func(b *paper) {
		for _, l := range strings.Split(strings.TrimRight(c.Output, "\n"), "\n") {
			b.line(text{b.short(strings.ReplaceAll(l, "\t", "    "), b.width), themes.Surface})
		}
	}
}

// howTo is how what a reference led to is taken over.
func howTo(ref string) string {
	switch {
	case api.IsStash(ref):
		return "    to apply:  git stash apply "
	case api.IsNotes(ref):
		return "    to merge:  git notes merge "
	}
	return "    to merge:  git merge "
}
