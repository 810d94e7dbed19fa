package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"

	"stepbox/session/api"
)

var nameForm = regexp.MustCompile(`^[\pL\pN._-]{1,64}$`)

// ValidName says whether a session may be called so.
func ValidName(s string) bool { return nameForm.MatchString(s) && api.Escape(s) == s }

// ParseSize reads a number of bytes with an optional K, M, G or T (powers of 1024).
func ParseSize(s string) (int64, error) {
	bad := fmt.Errorf("%w: %q is no size: use a number with K, M, G or T, like 512M", ErrUsage, api.Escape(s))
	digits := strings.TrimSuffix(strings.TrimSuffix(strings.ToUpper(s), "B"), "I")
	shift := 0
	if digits != "" {
		if i := strings.IndexByte("KMGT", digits[len(digits)-1]); i >= 0 {
			digits, shift = digits[:len(digits)-1], 10*(i+1)
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n < 0 || math.IsNaN(n) || n*math.Pow(2, float64(shift)) > math.MaxInt64/2 {
		return 0, bad
	}
	return int64(n * math.Pow(2, float64(shift))), nil
}

// Detached says where a session went on.
func Detached(ctx context.Context, w io.Writer, c *api.Client, id string) error {
	s, err := c.Session(ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s (%d) runs on; stepbox attach %s joins it, stepbox kill %s ends it\n", s.Name, s.Number, s.ID, s.ID)
	if os.Getenv("XDG_SESSION_ID") != "" {
		fmt.Fprintln(w, "logging out ends it, unless lingering is on: loginctl enable-linger")
	}
	return nil
}

// Follow is run without a terminal: the agent's output goes to out as it is,
// input comes from in, and what is held is said on diag.
func Follow(ctx context.Context, c *api.Client, id string, in io.Reader, out, diag io.Writer) error {
	conn, err := c.Output(ctx, id)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := in.Read(buf)
			if n > 0 && conn.Input(bytes.Clone(buf[:n])) != nil {
				return
			}
			if err != nil {
				_ = conn.Input([]byte{4}) // end of input, as a terminal says it; the session may be over
				return
			}
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	said := make(chan struct{})
	go func() {
		defer close(said)
		for e, err := range c.Events(ctx, id, 0) {
			if err != nil {
				return
			}
			if q := e.Question; q != nil && q.Open() {
				verbs := fmt.Sprintf("stepbox approve %s %d, or deny", id, q.Action)
				if q.Subject == api.SubjectEdit {
					verbs = fmt.Sprintf("stepbox keep %s %d, or rollback --to-before %d", id, q.Action, q.Action)
				}
				fmt.Fprintf(diag, "stepbox: held: %s (%s)\n", q.Title, verbs)
			}
		}
	}()
	for {
		f, err := conn.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot follow the session: %w", err)
		}
		if f.Kind == api.FrameOutput {
			if _, err := out.Write(f.Data); err != nil {
				return fmt.Errorf("cannot write the agent's output: %w", err)
			}
		}
	}
	<-said // ends with the session
	return nil
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
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(checks)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		mark := "ok"
		switch {
		case !c.OK && c.Fatal:
			mark = "MISSING"
		case !c.OK:
			mark = "weaker"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", mark, c.Name, c.Detail)
		if !c.OK {
			fmt.Fprintf(t, "\t\twhy: %s\n", c.Why)
			if c.Fix != "" {
				fmt.Fprintf(t, "\t\tdo: %s\n", strings.ReplaceAll(c.Fix, "\n", "\n\t\t    "))
			}
		}
	}
	return t.Flush()
}
