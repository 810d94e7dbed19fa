package cli

import (
	"fmt"
	"io"
	"strings"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// printPlan prints what would be written, by what becomes of it.
func (a *applying) printPlan(w io.Writer, s api.Session, p api.ApplyPlan, what string) {
	fmt.Fprintf(w, "%s: session %s (%s), %s\n", what, s.Name, s.ID, s.Workspace)
	if p.Git != "" {
		fmt.Fprintf(w, "git %s\n", p.Git)
	}
	for _, part := range []struct {
		name, statuses string
		n              int
	}{{"to write", "AM", p.Written}, {"to delete", "D", p.Deleted}, {"to rename", "R", p.Renamed}, {"to change the type of", "T", p.Retyped}} {
		if part.n == 0 {
			continue
		}
		fmt.Fprintf(w, "%s %d\n", part.name, part.n)
		for _, f := range p.Files {
			if strings.Contains(part.statuses, f.Status) {
				fmt.Fprintf(w, "  %s %s%s\n", f.Status, f.Path, aside(f))
			}
		}
	}
	if p.More > 0 {
		fmt.Fprintf(w, "  … and %d more\n", p.More)
	}
	if p.Dangerous > 0 {
		fmt.Fprintf(w, "dangerous %d\n", p.Dangerous)
		for _, f := range p.Files {
			for _, d := range f.Dangers {
				fmt.Fprintf(w, "  %s: %s\n", f.Path, d)
			}
		}
		for _, c := range p.Commits {
			if c.Danger != "" {
				fmt.Fprintf(w, "  %s up to %s: %s\n", c.Ref, c.Hash[:min(12, len(c.Hash))], c.Danger)
			}
		}
	}
	if len(p.Conflicts) > 0 {
		fmt.Fprintf(w, "in conflict %d\n", len(p.Conflicts))
		for _, c := range p.Conflicts {
			a.printConflict(w, c)
		}
	}
	switch n := len(p.Unreviewed); {
	case n > 0 && n == len(p.Files)+p.More:
		fmt.Fprintln(w, "not reviewed: all of it; stepbox diff "+s.ID+" shows it")
	case n > 0:
		fmt.Fprintf(w, "not reviewed %d\n", len(p.Unreviewed))
		for _, c := range p.Unreviewed {
			fmt.Fprintf(w, "  %s %s: %s\n", c.Status, c.Path, c.Why)
		}
	}
	if len(p.Left) > 0 {
		fmt.Fprintf(w, "left out %d\n", len(p.Left))
		for _, t := range p.Left {
			fmt.Fprintf(w, "  %s\n", t)
		}
	}
	if p.There > 0 {
		fmt.Fprintf(w, "%s already as they would be\n", paint.Files(p.There))
	}
	if len(p.Commits) > 0 {
		fmt.Fprintf(w, "commits %d\n", len(p.Commits))
		for _, c := range p.Commits {
			fmt.Fprintf(w, "  %s %s (%s, %s)\n", c.Hash[:min(12, len(c.Hash))], c.Subject, c.Author, c.Ref)
		}
	}
	for _, c := range p.Checks {
		fmt.Fprintf(w, "check %s\n", c)
	}
	if p.Blocked != "" && (a.dry || len(p.Unreviewed) == 0) { // else the question or the error says it
		fmt.Fprintf(w, "as it is, %s\n", p.Blocked)
	}
	fmt.Fprintf(w, "hash %s\n", p.Hash)
}

// aside is what a path doesn't say of a change.
func aside(f api.ApplyFile) string {
	var out []string
	if f.From != "" {
		out = append(out, "from "+f.From)
	}
	if f.Words != "" {
		out = append(out, f.Words)
	}
	if len(out) == 0 {
		return ""
	}
	return "  (" + strings.Join(out, ", ") + ")"
}

func (a *applying) printConflict(w io.Writer, c api.Conflict) {
	how := "stays as it is"
	for _, r := range a.request.Resolve {
		if r.Key == c.Key {
			how = map[api.Way]string{api.WayMerge: "is merged", api.WayWanted: "becomes as the session has it", api.WayThere: "stays as it is"}[r.Way]
		}
	}
	switch {
	case c.Clean:
		how += "; both changes can be had: --resolve " + c.Path + "=merge"
	case len(c.Clashes) > 0:
		how += fmt.Sprintf("; they meet in %s", paint.Count(len(c.Clashes), "place", "places"))
	}
	fmt.Fprintf(w, "  %s: %s; it %s\n", c.Path, c.Why, how)
	for _, h := range c.Merged {
		fmt.Fprintf(w, "    @@ -%s +%s @@\n", span(h.OldLine, h.OldCount), span(h.NewLine, h.NewCount))
		for _, l := range h.Lines {
			fmt.Fprintf(w, "    %s%s\n", l.Op, l.Text)
		}
	}
	for _, x := range c.Clashes {
		fmt.Fprintf(w, "    line %d\n", x.Line)
		for _, side := range []struct {
			name  string
			lines []string
		}{{"before ", x.Base}, {"there  ", x.There}, {"wanted ", x.Wanted}} {
			for _, l := range side.lines {
				fmt.Fprintf(w, "      %s| %s\n", side.name, l)
			}
		}
	}
}

// appliedWords say what came of an apply.
func appliedWords(w io.Writer, s api.Session, x api.Apply) {
	for _, c := range x.Checks {
		fmt.Fprintf(w, "check %s: %s\n", c.Command, c.Exit.Words())
	}
	if x.Journal == "" {
		fmt.Fprintln(w, "applied: no files, so there is nothing to be undone")
	} else {
		fmt.Fprintf(w, "applied: %s; stepbox apply %s --undo=%d undoes it\n", paint.Files(x.Files), s.ID, x.ID)
	}
	if len(x.Fetched) > 0 {
		fmt.Fprintf(w, "%s below %s\n", paint.Count(len(x.Fetched), "commit", "commits"), x.Ref)
		for _, h := range x.How {
			fmt.Fprintf(w, "  %s\n", h)
		}
		if x.Files > 0 {
			fmt.Fprintf(w, "git refuses these over the files that were just written: stepbox apply %s --undo=%d first, and apply the rest after it\n", s.ID, x.ID)
		}
	}
	leftBehind(w, x)
}

// leftBehind says what isn't as it should be.
func leftBehind(w io.Writer, x api.Apply) {
	if x.Failure != "" {
		fmt.Fprintf(w, "but %s\n", x.Failure)
	}
	for _, t := range x.Left {
		fmt.Fprintf(w, "but %s: %s\n", t.Path, t.Why)
	}
}
