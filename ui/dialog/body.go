package dialog

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	uv "github.com/charmbracelet/ultraviolet"

	"stepbox/session/api"
	"stepbox/themes"
	"stepbox/ui/paint"
)

// rows are the body, and how many of them, from the first on, show what a decision
// covers. What is needed to answer comes first: what it is, by which rule it is asked,
// what it did the last time. Long lists come last.
func (d *Decision) rows(dst uv.Screen, width int, now time.Time) (out []row, covered int) {
	q := d.shown
	for _, w := range warnings(q) {
		out = append(out, wrapped(dst, "⚠ "+w, width, themes.Warn)...)
	}
	if n := len(d.equal); n > 0 {
		out = append(out, wrapped(dst, "≡ and "+paint.Count(n, "equal one", "equal ones")+", answered with it: "+actions(d.equal), width, themes.Info)...)
	}
	if d.also != "" {
		out = append(out, wrapped(dst, "≡ "+paint.Clean(d.also), width, themes.Info)...)
	}
	out = append(out, offer(dst, q, width)...)
	switch {
	case q.Connection != nil:
		out = append(out, connection(dst, q, d.action, width, now)...)
		if covered = len(out); q.Connection.Host != "" {
			out = append(out, tries(dst, q.Connection, width, now)...)
			out = append(out, pair(dst, "so far", d.sofar, width, themes.SurfaceMuted)...)
		}
		return out, covered
	case q.Request != nil:
		out = append(out, request(dst, q, d.action, width)...)
		return out, len(out)
	case q.Command != nil:
		return d.commands(dst, out, width)
	}
	return d.edit(dst, out, width)
}

func actions(qs []api.Question) string {
	var out []string
	for _, q := range qs {
		out = append(out, "#"+strconv.Itoa(q.Action))
	}
	return strings.Join(out, ", ")
}

// commands is the body of a question about what is to run.
func (d *Decision) commands(dst uv.Screen, out []row, width int) (rows []row, covered int) {
	all := d.shown.Command.All()
	for i, c := range all {
		if i > 0 {
			out = append(out, muted("together with, as one job:"))
		}
		out = append(out, command(dst, c.Title(), width)...)
		out = append(out, d.parts(dst, c, width)...)
		if c.Written {
			out = append(out, pair(dst, "program", c.Program+", which this session wrote", width, themes.Warn)...)
		} else {
			out = append(out, pair(dst, "program", cmp.Or(c.Program, "—"), width, themes.Surface)...)
		}
		out = append(out, pair(dst, "folder", c.Cwd, width, themes.Surface)...)
	}
	out = append(out, d.facts(dst, width)...)
	usual, label := 0, "variables"
	for _, c := range all {
		usual += len(c.EnvUsual)
		name := "variables"
		for _, e := range c.Env {
			out = append(out, pair(dst, name, e, width, themes.Surface)...)
			name, label = "", ""
		}
	}
	covered = len(out)
	if usual > 0 && !d.raw {
		words := strconv.Itoa(usual) + " that all of its commands have (v)"
		if label == "" {
			words = "and " + words
		}
		out = append(out, pair(dst, label, words, width, themes.SurfaceMuted)...)
	}
	if d.raw {
		out = append(out, d.arguments(dst, width)...)
	}
	return out, covered
}

// facts are why a command is asked about, and what is known of it.
func (d *Decision) facts(dst uv.Screen, width int) (out []row) {
	q, c := d.shown, d.shown.Command
	add := adder(dst, &out, width)
	add("asked by", cmp.Or(q.Rule, "—"), themes.Surface)
	if why := uncounted(q); why != "" {
		add("rules", "none that allows counts: "+why, themes.Surface)
	}
	for i, s := range c.Sends {
		add([2]string{"sends", ""}[min(i, 1)], s, themes.Warn)
	}
	add("last time", c.LastTime, themes.Surface)
	if d.said != "" {
		add("said", d.said, themes.Surface)
	}
	add("started by", strings.Join(c.Parents, " ← "), themes.SurfaceMuted)
	if c.Before != 0 {
		// Of the home folder, and of what is sent, nothing is kept.
		add("roll back", fmt.Sprintf("the project to checkpoint %d, nothing else", c.Before), themes.SurfaceMuted)
	}
	return out
}

// uncounted is why no rule that allows counts for what a question is about; "": they do.
func uncounted(q api.Question) string {
	if q.Command == nil {
		return ""
	}
	for _, c := range q.Command.All() {
		if c.Uncounted != "" {
			return c.Uncounted
		}
	}
	return ""
}

// arguments are those of each program as they are, and the variables that aren't shown
// with each question.
func (d *Decision) arguments(dst uv.Screen, width int) []row {
	out := []row{{}, muted("arguments as they are executed")}
	for _, c := range d.shown.Command.All() {
		for i, a := range c.Argv {
			out = append(out, pair(dst, "  "+strconv.Itoa(i), a, width, themes.Surface)...)
		}
		for i, e := range c.EnvUsual {
			if i == 0 {
				out = append(out, muted("variables that all of its commands have"))
			}
			out = append(out, pair(dst, "", e, width, themes.Surface)...)
		}
	}
	return out
}

// edit is the body of a question about changes: all of them, which is what a decision
// covers, and below them their differences.
func (d *Decision) edit(dst uv.Screen, out []row, width int) (rows []row, covered int) {
	q := d.shown
	if len(q.Changes) == 0 {
		out = append(out, wrapped(dst, q.Title, width, themes.Strong)...)
	}
	alone := len(q.Changes) == 1 && len(d.diffs) == 1 // its difference needs no name
	for _, c := range q.Changes {
		if alone {
			f := d.diffs[0].Change
			c.Counted, c.Added, c.Removed = f.Counted, f.Added, f.Removed
		}
		out = append(out, change(dst, c, width))
	}
	covered = len(out)
	if d.kind == api.KindCommand {
		out = append(out, pair(dst, "made by", "$ "+d.action, width, themes.Surface)...)
	}
	out = append(out, pair(dst, "asked by", cmp.Or(q.Rule, "—"), width, themes.Surface)...)
	if d.said != "" {
		out = append(out, pair(dst, "said", d.said, width, themes.Surface)...)
	}
	out = append(out, differences(dst, d.diffs, alone, width, mostRows)...)
	if d.unread != "" {
		out = append(out, wrapped(dst, d.unread, width, themes.SurfaceMuted)...)
	}
	return out, covered
}

// differences are those of files, each below its name; alone is one that is named already.
func differences(dst uv.Screen, diffs []api.FileDiff, alone bool, width, most int) (out []row) {
	for _, f := range diffs {
		if !alone {
			out = append(out, row{}, change(dst, f.Change, width))
		}
		if f.Note != "" {
			out = append(out, muted("  "+f.Note))
		}
		out = append(out, hunks(dst, f.Hunks, width, most)...)
	}
	return out
}

// Lacks is the action whose differences the question about its changes lacks, or 0.
// It says so once for each text of the question.
func (d *Decision) Lacks() int {
	if d.shown.Subject != api.SubjectEdit || d.over != "" || d.asked == d.print {
		return 0
	}
	d.asked = d.print
	return d.shown.Action
}

// maxDiffs is how many files' differences a question shows at most.
const maxDiffs = 50

// SetDiffs takes the differences that Lacks asked for: of how many files more there are
// some, or why they can't be had.
func (d *Decision) SetDiffs(diffs []api.FileDiff, problem string) {
	d.diffs, d.unread, d.made = diffs, "", made{}
	switch n := len(d.shown.Changes) - len(diffs); {
	case problem != "":
		d.unread = "the differences can't be read: " + problem
	case n > 0 && len(diffs) == maxDiffs:
		d.unread = "⋯ and " + paint.Count(n, "file", "files") + " more; Changes has all of them"
	}
}
