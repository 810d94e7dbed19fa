package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"stepbox/session/api"

	"github.com/spf13/cobra"
)

func diff(connect Connect) *cobra.Command {
	return onMaybe(connect, "diff", "Show what a session or one of its actions changed", command.printDiffs)
}

// printDiffs prints each difference as it comes, so that a long list neither
// waits for its end nor is held in memory.
func (c command) printDiffs(s api.Session, n int) error {
	out := bufio.NewWriterSize(c.out, 64<<10)
	before := "[\n  "
	for d, err := range c.client.Diffs(c.ctx, s.ID, api.Scope{Action: n}) {
		if err != nil {
			return errors.Join(out.Flush(), err)
		}
		if c.json {
			b, err := json.MarshalIndent(d, "  ", "  ")
			if err != nil {
				return fmt.Errorf("cannot encode a difference: %w", err)
			}
			_, _ = out.WriteString(before) // what fails is told by Flush
			_, _ = out.Write(b)
			before = ",\n  "
		} else {
			printDiff(out, d)
		}
	}
	if c.json {
		end := "\n]\n"
		if before[0] == '[' {
			end = "[]\n"
		}
		_, _ = out.WriteString(end)
	}
	return out.Flush()
}

func printDiff(w io.Writer, d api.FileDiff) {
	fmt.Fprintf(w, "%s %s", d.Change.Status, d.Change.Path)
	if d.Change.From != "" {
		fmt.Fprintf(w, " (from %s)", d.Change.From)
	}
	for _, x := range []string{d.Change.Words, d.Note} {
		if x != "" {
			fmt.Fprintf(w, "  %s", x)
		}
	}
	fmt.Fprintln(w)
	for _, h := range d.Hunks {
		fmt.Fprintf(w, "@@ -%s +%s @@\n", span(h.OldLine, h.OldCount), span(h.NewLine, h.NewCount))
		for _, l := range h.Lines {
			fmt.Fprintf(w, "%s%s\n", l.Op, l.Text)
		}
	}
}

func span(line, count int) string {
	if count == 1 {
		return strconv.Itoa(line)
	}
	return fmt.Sprintf("%d,%d", line, count)
}
