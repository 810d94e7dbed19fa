package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/paint"
)

func bisect(connect Connect) *cobra.Command {
	var r api.BisectRequest
	var from, to string
	cmd := wrap(connect, "bisect [SESSION] -- COMMAND [ARG...]", "Find the action after which a command fails", cobra.ArbitraryArgs, func(c command, args []string) error {
		n := c.cmd.ArgsLenAtDash()
		if n < 0 || n > 1 || n == len(args) {
			return usage("name at most one session, and a command after -- (%s)", c.cmd.UseLine())
		}
		s, err := c.toRead(optional(args[:n]))
		if err != nil {
			return err
		}
		r.Command, r.From, r.To = shellLine(args[n:]), api.Moment(from), api.Moment(to)
		return c.bisect(s, r)
	})
	cmd.Long = "Find the action after which a command fails, as git bisect run does for commits: it must pass at the\n" +
		"beginning and fail at the end. It runs in throw-away sandboxes with an empty home and /tmp and without a network.\n" +
		"Exit 125 means that it can't tell of a state; 128 and above end the search. A single word is a line for the shell."
	cmd.Example = "  stepbox bisect fix-tests -- go test ./...\n  stepbox bisect 7 --from 10 --jobs 4 -- 'make && ./smoke.sh'"
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "the moment at which it still passes (start)")
	f.StringVar(&to, "to", "", "the moment at which it fails (end)")
	f.IntVar(&r.Jobs, "jobs", 0, "runs at once (half the processors, 4 at most)")
	f.BoolVar(&r.Once, "once", false, "don't run again what the answer rests on, to see whether it is flaky")
	return cmd
}

// shellLine makes a command one line for a shell.
func shellLine(argv []string) string {
	if len(argv) == 1 {
		return argv[0]
	}
	var words []string
	for _, a := range argv {
		if a == "" || strings.ContainsFunc(a, func(r rune) bool {
			return !strings.ContainsRune("-+=_./:,@%", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// errNoAnswer is that of a bisection which found nothing.
var errNoAnswer = errors.New("no action broke it")

// bisect has a session bisected, tells how that goes and prints the answer.
func (c command) bisect(s api.Session, r api.BisectRequest) error {
	told := c.stderr()
	var steps []api.BisectStep
	for p, err := range c.client.Bisect(c.ctx, s.ID, r) {
		switch {
		case err != nil:
			return err
		case p.Problem != nil:
			return p.Problem
		case p.Steps != nil:
			steps = p.Steps
			fmt.Fprintf(told, "%s to look among\n", paint.Count(len(steps), "action", "actions"))
		case p.Run != nil && !p.Run.Stopped:
			fmt.Fprintf(told, "%s (%s)\n", cut(p.Run.Words(steps), 120), p.Run.Check.Duration.Round(10*time.Millisecond))
		case p.Done != nil && p.Done.No != "":
			return errors.Join(fmt.Errorf("%w: %s", errNoAnswer, p.Done.No), c.jsonOnly(p.Done))
		case p.Done != nil && c.json:
			return c.print(p.Done, nil)
		case p.Done != nil:
			return c.printBisected(s, *p.Done)
		}
	}
	return errors.New("the search ended without an answer: start it again")
}

func (c command) jsonOnly(v any) error {
	if !c.json {
		return nil
	}
	return c.print(v, nil)
}

func (c command) printBisected(s api.Session, b api.Bisected) error {
	if len(b.Flaky) > 0 {
		fmt.Fprintf(c.out, "beware: the command is flaky: %s came out otherwise when run again\n", paint.Count(len(b.Flaky), "result", "results"))
	}
	if n := len(b.Inexact) + b.InexactMore; n > 0 {
		fmt.Fprintf(c.out, "beware: %s can't be had as then, and were as they are now: %s (%s)\n", paint.Files(n), b.Inexact[0].Path, b.Inexact[0].Why)
	}
	if len(b.Steps) > 1 {
		fmt.Fprintf(c.out, "one of these broke it; what is between them was skipped, or is flaky:\n")
		for _, st := range b.Steps {
			fmt.Fprintln(c.out, "  "+cut(st.Words(), 100))
		}
		fmt.Fprintf(c.out, "stepbox diff %s %s..%s shows what they changed\n", s.ID, b.Steps[0].From, b.Steps[len(b.Steps)-1].To)
		return nil
	}
	st := b.Steps[0]
	fmt.Fprintf(c.out, "%s broke it (%s", cut(st.Words(), 100), paint.Count(b.Runs, "run", "runs"))
	if b.Again > 0 {
		fmt.Fprintf(c.out, ", and %d again to be sure", b.Again)
	}
	fmt.Fprintln(c.out, ")")
	if st.Said != "" {
		fmt.Fprintln(c.out, "said: "+cut(st.Said, 200))
	}
	d := differ{command: c}
	fmt.Fprintln(c.out)
	if err := d.shown(false, func(int) error { return d.read(c.client.Diffs(c.ctx, s.ID, api.Scope{From: st.From, To: st.To})) }); err != nil {
		return err
	}
	fmt.Fprintln(c.out)
	switch {
	case len(st.Actions) == 0:
	case s.Live():
		fmt.Fprintf(c.out, "stepbox rollback %s --action %d rolls it back\n", s.ID, st.Actions[0])
	default:
		fmt.Fprintf(c.out, "stepbox apply %s --without %d leaves it out\n", s.ID, st.Actions[0])
	}
	return nil
}
