package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"stepbox/session/api"
	"stepbox/ui/config"
	"stepbox/ui/paint"
)

// NoMode is the error for a mode that there isn't.
func NoMode(m api.Mode) error {
	return usage("there is no mode %q: use step, policy or watch", api.Escape(string(m)))
}

// ParseSize reads a number of bytes with an optional K, M, G or T (powers of 1024).
func ParseSize(s string) (int64, error) {
	n, err := config.ParseSize(s)
	if err != nil {
		err = usage("%w", err)
	}
	return n, err
}

// started says what there is to know of a session that was started and isn't shown.
func started(ctx context.Context, w io.Writer, c *api.Client, id string) error {
	if err := detached(ctx, w, c, id); err != nil {
		return err
	}
	s, err := c.Session(ctx, id)
	for _, name := range s.Lacks {
		fmt.Fprintf(w, "beware: %s isn't passed to the agent; --env %s does\n", name, name)
	}
	return err
}

// detached says where a session went on.
func detached(ctx context.Context, w io.Writer, c *api.Client, id string) error {
	s, err := c.Session(ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s (%d) runs on; stepbox attach %s joins it, stepbox kill %s ends it\n", s.Name, s.Number, s.ID, s.ID)
	held, err := c.Questions(ctx, id)
	if err != nil {
		return err
	}
	for _, q := range held {
		fmt.Fprintln(w, heldLine(id, q))
	}
	if os.Getenv("XDG_SESSION_ID") != "" && !lingers("/var/lib/systemd/linger") {
		fmt.Fprintln(w, "logging out ends it, unless lingering is on: loginctl enable-linger")
	}
	return nil
}

// lingers says whether what the person left running stays when they log out; logind has a
// file for each whose does.
func lingers(folder string) bool {
	u, err := user.Current()
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(folder, u.Username))
	return err == nil
}

// unapplied says on one line what becomes of an ended session's changes; nothing
// when there are none.
func unapplied(w io.Writer, s api.Session) {
	if words := toApply(s); words != "" {
		fmt.Fprintf(w, "stepbox: %s\n", words)
	}
	sayTraps(w, s)
}

// sayTraps says what an ended session left in its home for the next one to keep.
func sayTraps(w io.Writer, s api.Session) {
	if words := s.HomeLeft.Traps(); words != "" && !s.Live() {
		fmt.Fprintf(w, "stepbox: %s: stepbox diff --home %s\n", words, s.ID)
	}
}

func toApply(s api.Session) string {
	if s.Live() || s.Unapplied == 0 {
		return ""
	}
	return fmt.Sprintf("%s changed and not applied: stepbox diff %s · stepbox apply %s · stepbox resume %s", paint.Files(s.Unapplied), s.ID, s.ID, s.ID)
}

// ended says on one line, where a session's screen was, how it ended and what becomes of
// its changes.
func ended(w io.Writer, s api.Session) {
	words := fmt.Sprintf("session %s (%d) ended", s.Name, s.Number)
	if how := s.Exit.Words(); how != "" {
		words += ": " + how
	}
	if what := toApply(s); what != "" {
		words += "; " + what
	}
	fmt.Fprintf(w, "stepbox: %s\n", words)
	sayTraps(w, s)
}

// Check is one of doctor's findings.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Fatal  bool   `json:"fatal"`
	Detail string `json:"detail"`
	Why    string `json:"why,omitempty"`
	Fix    string `json:"fix,omitempty"`
}

// PrintChecks writes doctor's findings.
func PrintChecks(w io.Writer, checks []Check, asJSON bool) error {
	return write(w, asJSON, checks, func(w io.Writer) {
		for _, c := range checks {
			mark := "ok"
			switch {
			case !c.OK && c.Fatal:
				mark = "MISSING"
			case !c.OK:
				mark = "weaker"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", mark, c.Name, c.Detail)
			if !c.OK {
				fmt.Fprintf(w, "\t\twhy: %s\n", c.Why)
				if c.Fix != "" {
					fmt.Fprintf(w, "\t\tdo: %s\n", strings.ReplaceAll(c.Fix, "\n", "\n\t\t    "))
				}
			}
		}
	})
}
