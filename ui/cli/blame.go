package cli

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

func blame(connect Connect) *cobra.Command {
	var at string
	cmd := wrap(connect, "blame PATH [SESSION]", "Show which action wrote each line of a file", cobra.RangeArgs(1, 2), func(c command, args []string) error {
		b, err := c.blame(args, at)
		if err != nil {
			return err
		}
		if !c.json && b.Note != "" {
			return fmt.Errorf("cannot tell the lines of %q apart: %s", b.Path, b.Note)
		}
		if c.json {
			return c.print(b, nil)
		}
		out := bufio.NewWriter(c.out)
		printBlame(out, b)
		return out.Flush()
	})
	cmd.Long = "Show which action wrote each line of a file: its number, its command, what the agent said of it, and when.\n" +
		"PATH alone is a file of the project as it is here and now: lines that were applied are the action's, of whichever\n" +
		"session it was; all others are the project's, or of a session that was removed from the record. With a session it is the file as that session has it, or had it at MOMENT."
	cmd.Example = "  stepbox blame src/main.go\n  stepbox blame src/main.go fix-tests\n  stepbox blame fix-tests:src/main.go@12"
	cmd.Flags().StringVar(&at, "at", "", "the moment of the session")
	return cmd
}

// blame asks for what the arguments name. What is a file here is meant as one, whatever
// its name is.
func (c command) blame(args []string, at string) (api.Blame, error) {
	var none api.Blame
	_, missing := os.Lstat(args[0])
	if len(args) == 1 && missing != nil && strings.Contains(args[0], ":") {
		s, path, m, err := c.fileAt(args[0], at)
		if err != nil {
			return none, err
		}
		return c.client.Blame(c.ctx, s.ID, api.KeyOf(path), m)
	}
	name, err := filepath.Abs(args[0])
	if err == nil {
		var dir string
		if dir, err = filepath.EvalSymlinks(filepath.Dir(name)); err != nil && len(args) == 2 {
			dir, err = filepath.Dir(name), nil // the session may have made the folder
		}
		name = filepath.Join(dir, filepath.Base(name))
	}
	if err != nil {
		return none, fmt.Errorf("cannot find %q: %w", args[0], err)
	}
	if len(args) == 1 {
		if at != "" {
			return none, usage("--at is a moment of a session: name one")
		}
		return c.client.BlameToday(c.ctx, api.KeyOf(name))
	}
	s, err := c.toRead(args[1])
	if err != nil {
		return none, err
	}
	path, err := filepath.Rel(s.Folder, name)
	if err != nil || !filepath.IsLocal(path) || path == "." {
		return none, usage("%q isn't in the project of session %s, %s", api.Escape(args[0]), s.Name, s.Workspace)
	}
	return c.client.Blame(c.ctx, s.ID, api.KeyOf(path), api.Moment(at))
}

// printBlame writes a line for each of the file's, behind who wrote it: with the
// session's name, but when all are of the one that was asked for.
func printBlame(out *bufio.Writer, b api.Blame) {
	sessions := map[string]bool{}
	if b.Session != "" {
		sessions[b.Session] = true
	}
	for _, a := range b.By[1:] {
		sessions[a.Session] = true
	}
	labels, wide := make([][3]string, len(b.By)), [3]int{}
	for i, a := range b.By {
		l := &labels[i]
		l[0] = "project"
		if b.Removed {
			l[0] = "project or removed"
		}
		switch {
		case a.Action == 0 && a.Session != "":
			l[0], l[1] = a.Name, a.Title
		case a.Action != 0:
			l[0] = fmt.Sprint(a.Action)
			if len(sessions) > 1 || b.Session == "" {
				l[0] = a.Name + " " + l[0]
			}
			for _, n := range a.With {
				l[0] += fmt.Sprintf("/%d", n)
			}
			l[1], l[2] = cut(a.Title, 28), cut(a.Said, 28)
		}
		for k := range l {
			wide[k] = max(wide[k], len([]rune(l[k])))
		}
	}
	digits := len(fmt.Sprint(len(b.Lines)))
	for i, line := range b.Lines {
		for k, text := range labels[line.By] {
			if wide[k] > 0 {
				fmt.Fprintf(out, "%-*s  ", wide[k], text)
			}
		}
		fmt.Fprintf(out, "%-11s  %*d) %s\n", clock(b.By[line.By].At), digits, i+1, line.Text)
	}
}

// clock is when something was, as short as it says which day.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("01-02 15:04")
}
