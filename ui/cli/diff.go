package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

// differ is the diff command.
type differ struct {
	command
	paths         []string
	stat, names   bool
	screen, plain bool // standard output is a terminal; without colour
}

func diff(connect Connect) *cobra.Command {
	var d differ
	var action int
	var home bool
	cmd := wrap(connect, "diff [SESSION[@MOMENT]] [ACTION|A..B] [PATH...]", "Show what a session or one of its actions changed, or what differs between two moments", cobra.ArbitraryArgs, func(c command, args []string) error {
		d.command = c
		if home {
			return diffHome(c, args)
		}
		s, in, paths, err := c.scope(args)
		if err != nil {
			return err
		}
		d.paths = append(d.paths, paths...)
		for _, p := range d.paths {
			if !doublestar.ValidatePattern(p) {
				return usage("%q is no pattern of paths", api.Escape(p))
			}
		}
		if action != 0 && in != (api.Scope{}) && in.Action != action {
			return usage("one action at a time, or two moments")
		}
		if action != 0 {
			in.Action = action
		}
		if c.json {
			return d.asJSON(c.client.Diffs(c.ctx, s.ID, in))
		}
		return d.shown(true, func(cols int) error { return d.write(s, in, cols) })
	})
	cmd.Long = "Show what a session or one of its actions changed. On a terminal the differences are shown in colour and\n" +
		"through a pager ($STEPBOX_PAGER, $PAGER or less); elsewhere they are a patch that git apply takes.\n" +
		"SESSION@12 is what had changed when action 12 had ended, SESSION 3..12^ what changed between two moments:\n" +
		"12 is after action 12, 12^ before it, +1h2m that long after the start, and there are start and end."
	cmd.Example = "  stepbox diff fix-tests 12\n  stepbox diff fix-tests 3..12 src/main.go\n  stepbox diff fix-tests@+10m --stat"
	f := cmd.Flags()
	f.StringArrayVar(&d.paths, "path", nil, "only paths that match this pattern, as src/**; may be repeated")
	f.IntVar(&action, "action", 0, "only what this action changed")
	f.BoolVar(&d.stat, "stat", false, "only how many lines of each file changed")
	f.BoolVar(&home, "home", false, "what it changed in its home folder, if that is its own (run --home session)")
	f.BoolVar(&d.names, "name-status", false, "only the files, with git's letters")
	cmd.MarkFlagsMutuallyExclusive("stat", "name-status", "json")
	return cmd
}

// shown has something written for a screen, through a pager, or for what reads it.
func (d *differ) shown(pager bool, write func(cols int) error) error {
	cols := 80
	if d.screen = isTerminal(d.out); d.screen {
		cols, _ = Size()
	}
	d.plain = !d.screen || noColour()
	if d.screen && pager {
		out, done := page(d.ctx, d.out)
		d.out = out
		return errors.Join(write(cols), done())
	}
	return write(cols)
}

func (d *differ) write(s api.Session, in api.Scope, cols int) error {
	if d.stat || d.names {
		return d.list(s, in, cols)
	}
	if !d.screen {
		return copyPatch(d.command, s, api.PatchRequest{Scope: in, Selection: api.Selection{Globs: d.paths}}, d.out)
	}
	return d.read(d.client.Diffs(d.ctx, s.ID, in))
}

// read writes differences for reading.
func (d *differ) read(all iter.Seq2[api.FileDiff, error]) error {
	internal := 0
	err := d.each(all, func(w io.Writer, f api.FileDiff) error {
		if d.internal(f.Change) {
			internal++
			return nil
		}
		d.print(w, f)
		return nil
	})
	if err == nil && internal > 0 {
		_, err = fmt.Fprintln(d.out, internalWords(internal))
	}
	return err
}

// lostError names the files that a patch lacks, since the record lost what was in them.
type lostError string

func (e lostError) Error() string {
	return "this isn't all that was changed, the rest of it is there; lost from the record:" + string(e)
}

// copyPatch writes a patch, byte for byte.
func copyPatch(c command, s api.Session, r api.PatchRequest, w io.Writer) error {
	p, err := c.client.Patch(c.ctx, s.ID, r)
	if err != nil {
		return err
	}
	return copyLines(p, w)
}

// copyLines writes an answer, byte for byte, and closes it. Of a patch that lacks
// something a lostError comes after all of it.
func copyLines(p io.ReadCloser, w io.Writer) error {
	defer p.Close()
	in, begins, lost := bufio.NewReaderSize(p, 64<<10), true, ""
	for {
		part, err := in.ReadSlice('\n')
		if what, ok := bytes.CutPrefix(part, []byte(api.PatchLost)); ok && begins {
			lost += "\n  " + strings.TrimSpace(string(what))
		}
		begins = err == nil
		if _, werr := w.Write(part); werr != nil {
			err = werr
		}
		switch {
		case err == io.EOF && lost != "":
			return lostError(lost)
		case err == io.EOF:
			return nil
		case err != nil && err != bufio.ErrBufferFull:
			return fmt.Errorf("cannot write all of it: %w", err)
		}
	}
}

// each gives the differences one by one as they come, so that a long list neither
// waits for its end nor is held in memory.
func (d *differ) each(all iter.Seq2[api.FileDiff, error], f func(io.Writer, api.FileDiff) error) error {
	out := bufio.NewWriterSize(d.out, 64<<10)
	for v, err := range all {
		if err == nil && d.wanted(v.Change) {
			err = f(out, v)
		}
		if err != nil {
			return errors.Join(out.Flush(), err)
		}
	}
	return out.Flush()
}

// wanted says whether --path leaves a change.
func (d *differ) wanted(c api.Change) bool {
	for _, p := range d.paths {
		if doublestar.MatchUnvalidated(p, c.Path) || c.From != "" && doublestar.MatchUnvalidated(p, c.From) {
			return true
		}
	}
	return len(d.paths) == 0
}

func (d *differ) asJSON(all iter.Seq2[api.FileDiff, error]) error {
	before := "[\n  "
	err := d.each(all, func(w io.Writer, v api.FileDiff) error {
		b, err := json.MarshalIndent(v, "  ", "  ")
		if err != nil {
			return fmt.Errorf("cannot encode a difference: %w", err)
		}
		_, _ = io.WriteString(w, before) // what fails is told by the flush
		_, err = inert{w}.Write(b)
		before = ",\n  "
		return err
	})
	if err != nil {
		return err
	}
	end := "\n]\n"
	if before[0] == '[' {
		end = "[]\n"
	}
	_, err = io.WriteString(d.out, end)
	return err
}

// list writes a line for each file.
func (d *differ) list(s api.Session, in api.Scope, cols int) error {
	got, err := d.client.Changes(d.ctx, s.ID, in, 0)
	if err != nil {
		return err
	}
	var list []api.Change
	added, removed, wide, most, internal := 0, 0, 0, 1, 0
	for _, c := range got.Files {
		if !d.wanted(c) {
			continue
		}
		if d.internal(c) {
			internal++
			continue
		}
		list = append(list, c)
		added, removed = added+c.Added, removed+c.Removed
		wide, most = max(wide, len([]rune(both(c)))), max(most, c.Added+c.Removed)
	}
	out := bufio.NewWriter(d.out)
	if d.names {
		for _, c := range list {
			fmt.Fprintf(out, "%s\t%s", c.Status, strings.ReplaceAll(both(c), " → ", "\t"))
			if c.Inherited && d.screen { // elsewhere a program reads it
				fmt.Fprint(out, "\tinherited")
			}
			fmt.Fprintln(out)
		}
		return out.Flush()
	}
	wide = min(wide, max(cols-30, 20))
	room := max(cols-wide-14, 5)
	for _, c := range list {
		what := fmt.Sprint(c.Added + c.Removed)
		switch {
		case c.Binary:
			what = fmt.Sprintf("binary %d → %d bytes", c.OldSize, c.NewSize)
		case !c.Counted:
			what = cmp.Or(c.Words, "not counted")
		case c.Kind != "file":
			what = cmp.Or(c.Words, c.Kind)
		default:
			scale := func(n int) int { return (n*min(room, most) + most - 1) / most }
			what = fmt.Sprintf("%4s %s%s", what, d.paint(green, strings.Repeat("+", scale(c.Added))), d.paint(red, strings.Repeat("-", scale(c.Removed))))
		}
		if c.Inherited && !strings.HasSuffix(what, "inherited") {
			what += " inherited"
		}
		fmt.Fprintf(out, " %s %-*s | %s\n", c.Status, wide, both(c), what)
	}
	fmt.Fprintf(out, " %s changed, %s added, %d removed\n", paint.Files(len(list)), paint.Count(added, "line", "lines"), removed)
	if internal > 0 {
		fmt.Fprintln(out, " "+internalWords(internal))
	}
	return out.Flush()
}

// internal says whether a change is one of git's own files, which are only counted
// unless they were asked for.
func (d *differ) internal(c api.Change) bool { return c.Group == "git" && len(d.paths) == 0 }

func internalWords(n int) string { return "and " + paint.Files(n) + " of git's own, below .git" }

// both is a change's path, with the old one of a rename.
func both(c api.Change) string {
	if c.From != "" {
		return c.From + " → " + c.Path
	}
	return c.Path
}

// print writes one difference for reading: unified, with the headers that people
// know from git, and everything else in words.
func (d *differ) print(w io.Writer, f api.FileDiff) {
	c := f.Change
	from, a, b := c.Path, "a/", "b/"
	if c.From != "" {
		from = c.From
	}
	head := func(format string, args ...any) { fmt.Fprintln(w, d.paint(bold, fmt.Sprintf(format, args...))) }
	head("diff --git a/%s b/%s", from, c.Path)
	what := map[string]string{"A": "new " + c.Kind, "D": "deleted " + c.Kind, "T": "another kind of file", "R": "renamed from " + from}[c.Status]
	for _, words := range []string{what, c.Words, f.Note} {
		if words != "" {
			head("%s", words)
		}
	}
	if len(f.Hunks) == 0 {
		return
	}
	if c.Status == "A" {
		a, from = "", "/dev/null"
	}
	to := c.Path
	if c.Status == "D" {
		b, to = "", "/dev/null"
	}
	head("--- %s%s", a, from)
	head("+++ %s%s", b, to)
	for _, h := range f.Hunks {
		fmt.Fprintln(w, d.paint(cyan, fmt.Sprintf("@@ -%s +%s @@", span(h.OldLine, h.OldCount), span(h.NewLine, h.NewCount)))+d.paint(dim, sectionOf(h)))
		for _, l := range h.Lines {
			colour := map[string]string{"+": green, "-": red}[l.Op]
			fmt.Fprintln(w, d.paint(colour, l.Op+l.Text))
		}
	}
}

func sectionOf(h api.Hunk) string {
	if h.Section == "" {
		return ""
	}
	return " " + h.Section
}

func span(line, count int) string {
	if count == 1 {
		return strconv.Itoa(line)
	}
	return fmt.Sprintf("%d,%d", line, count)
}
