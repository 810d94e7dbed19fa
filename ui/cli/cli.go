// Package cli is the plain counterpart of the screens: commands that look at
// sessions and decide on them, for scripts, other terminals and screen readers.
// They speak to sessions through package api and to people through writers.
//
// Text from the sandbox arrives escaped and is printed as it is.
package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"stepbox/session/api"
)

// Exit codes. The run command ends with the agent's own instead.
const (
	ExitOK      = 0
	ExitFailure = 1   // it didn't work
	ExitUsage   = 2   // the command line is wrong
	ExitRefused = 3   // the session refused: decided already, changed meanwhile, not held any more
	ExitChecked = 4   // apply: a check failed
	ExitNoRun   = 125 // run: the sandbox can't be started
)

// Connect gives a client of all sessions and a function that lets it go.
type Connect func(ctx context.Context) (*api.Client, func(), error)

// ErrUsage marks errors of the command line.
var ErrUsage = errors.New("usage")

// usage is an error of the command line.
func usage(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrUsage, fmt.Errorf(format, args...))
}

// Code maps an error to the exit code that it means.
func Code(err error) int {
	var exit *Exit
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, ErrUsage):
		return ExitUsage
	}
	switch api.CodeOf(err) {
	case api.CodeUsage:
		return ExitUsage
	case api.CodeDecided, api.CodeStale, api.CodeGone, api.CodeBusy, api.CodeNotLive, api.CodeUnknown:
		return ExitRefused
	case api.CodeChecked:
		return ExitChecked
	}
	return ExitFailure
}

// command is what every command gets.
type command struct {
	cmd    *cobra.Command
	ctx    context.Context
	client *api.Client
	out    io.Writer
	json   bool
}

// Commands lists the commands that look at sessions and decide on them. What is asked of
// rules alone is asked through rules, which needs no record.
func Commands(connect, rules Connect) []*cobra.Command {
	return []*cobra.Command{
		list(connect), grep(connect), show(connect), logs(connect), diff(connect), cat(connect), blame(connect), bisect(connect), checkout(connect), compare(connect), export(connect),
		approve(connect), deny(connect), allow(connect), network(connect), publish(connect), unpublish(connect), keep(connect), mode(connect), policy(connect, rules), profile(rules),
		pause(connect), resume(connect), kill(connect), rollback(connect), apply(connect),
		label(connect), remove(connect), collect(connect), verify(connect), key(connect),
	}
}

// wrap makes a command that connects, runs and lets go.
func wrap(connect Connect, use, short string, args cobra.PositionalArgs, f func(c command, args []string) error) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Short: short, Args: Args(args),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, done, err := connect(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			return f(command{cmd: cmd, ctx: cmd.Context(), client: client, out: cmd.OutOrStdout(), json: asJSON}, args)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// onSession makes a command on one session, which find finds.
func onSession(connect Connect, find func(command, string) (api.Session, error), use, short string, f func(c command, s api.Session) error) *cobra.Command {
	return wrap(connect, use, short, cobra.MaximumNArgs(1), func(c command, args []string) error {
		s, err := find(c, optional(args))
		if err != nil {
			return err
		}
		return f(c, s)
	})
}

// onMaybe makes a command on a session, or on one of its actions; 0 is all of it.
func onMaybe(connect Connect, name, short string, f func(c command, s api.Session, n int) error) *cobra.Command {
	return wrap(connect, name+" [SESSION [ACTION]]", short, cobra.MaximumNArgs(2), func(c command, args []string) (err error) {
		var s api.Session
		n := 0
		if len(args) == 2 {
			s, n, err = c.sessionAnd(args)
		} else {
			s, err = c.toRead(optional(args))
		}
		if err != nil {
			return err
		}
		return f(c, s, n)
	})
}

// given says whether a flag was.
func (c command) given(flag string) bool { return c.cmd.Flags().Changed(flag) }

// stderr is where a command tells what isn't its output.
func (c command) stderr() io.Writer { return c.cmd.ErrOrStderr() }

// ask returns nil when the person says yes.
func (c command) ask(what string) error {
	fmt.Fprintf(c.stderr(), "%s [y/N] ", what)
	answer := make(chan string, 1)
	go func() { // it may wait for ever, and ends with the program
		line, _ := bufio.NewReader(c.cmd.InOrStdin()).ReadString('\n') // no line is no
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-c.ctx.Done():
		fmt.Fprintln(c.stderr())
		return context.Cause(c.ctx)
	case word := <-answer:
		if word == "y" || word == "yes" {
			return nil
		}
	}
	fmt.Fprintln(c.stderr(), "nothing was written")
	return fmt.Errorf("%w: not wanted", ErrSaid)
}

// say writes a value as JSON, or what became of it in words, unless it failed.
func (c command) say(v any, err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return c.print(v, func(w io.Writer) { fmt.Fprintf(w, format+"\n", args...) })
}

// printed is print of what came, unless it failed.
func printed[T any](c command, v T, err error, plain func(w io.Writer, v T)) error {
	if err != nil {
		return err
	}
	return c.print(v, func(w io.Writer) { plain(w, v) })
}

// print writes a value as JSON, or what plain writes.
func (c command) print(v any, plain func(w io.Writer)) error {
	return write(c.out, c.json, v, plain)
}

func write(out io.Writer, asJSON bool, v any, plain func(w io.Writer)) error {
	if asJSON {
		e := values(out)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	if isTerminal(out) && !noColour() {
		out = reddening{out}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	plain(w)
	return w.Flush()
}

// session finds a session by name, number, id or unique prefix. With no word
// it is the only live one.
func (c command) session(word string) (api.Session, error) {
	all, err := c.client.Sessions(c.ctx)
	if err != nil {
		return api.Session{}, err
	}
	return Find(all, word)
}

// toRead is session for what changes nothing: with no word and no live one it is
// the newest that was in this folder.
func (c command) toRead(word string) (api.Session, error) {
	all, err := c.client.Sessions(c.ctx)
	if err != nil {
		return api.Session{}, err
	}
	if word == "" && !slices.ContainsFunc(all, api.Session.Live) {
		if past, err := ofHere(all); err == nil && len(past) > 0 {
			return past[0], nil
		}
	}
	return Find(all, word)
}

// ofHere are the sessions of this folder or one above it, newest first as all are.
func ofHere(all []api.Session) ([]api.Session, error) {
	here, err := os.Getwd()
	if err == nil {
		here, err = filepath.EvalSymlinks(here)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot tell this folder; name a session: %w", err)
	}
	return only(all, func(s api.Session) bool {
		return s.Trashed.IsZero() && (here == s.Folder || strings.HasPrefix(here, strings.TrimSuffix(s.Folder, "/")+"/"))
	}), nil
}

// Find picks the session that a person means: by id, by name (the newest, a live one
// first), or by a unique prefix of name or id; with no word the only live one. A number
// is a session's number, or all of an id: one that is gone is no other's.
func Find(all []api.Session, word string) (api.Session, error) {
	if word == "" {
		live := only(all, api.Session.Live)
		switch len(live) {
		case 1:
			return live[0], nil
		case 0:
			return api.Session{}, api.Problemf(api.CodeNotFound, "no session is running; stepbox ls lists the past ones")
		}
		return api.Session{}, usage("%d sessions are running (%s): name one", len(live), names(live))
	}
	all = slices.Concat(only(all, func(s api.Session) bool { return s.Trashed.IsZero() }), only(all, func(s api.Session) bool { return !s.Trashed.IsZero() }))
	n, err := strconv.ParseInt(word, 10, 64)
	exact := only(all, func(s api.Session) bool { return err == nil && s.Number == n })
	if len(exact) == 0 {
		exact = only(all, func(s api.Session) bool { return s.ID == word })
	}
	if err != nil && len(exact) == 0 {
		exact = only(all, func(s api.Session) bool { return s.Name == word })
	}
	if i := slices.IndexFunc(exact, api.Session.Live); len(exact) > 0 {
		return exact[max(0, i)], nil // newest first
	}
	hits := only(all, func(s api.Session) bool {
		return err != nil && (strings.HasPrefix(s.ID, word) || strings.HasPrefix(s.Name, word))
	})
	switch len(hits) {
	case 1:
		return hits[0], nil
	case 0:
		return api.Session{}, api.Problemf(api.CodeNotFound, "there is no session %q; stepbox ls lists them", api.Escape(word))
	}
	return api.Session{}, usage("%q may be any of %s: say more of it, or its number", api.Escape(word), names(hits))
}

// FindAt picks the session and the moment that SESSION[@MOMENT] names. A session that is
// named like all of the word goes first.
func FindAt(all []api.Session, word string) (api.Session, api.Moment, error) {
	s, at, err := findAt(word, false, func(word string) (api.Session, error) { return Find(all, word) })
	return s, api.Moment(at), err
}

func findAt(word string, ranges bool, find func(string) (api.Session, error)) (s api.Session, at string, err error) {
	s, err = find(word)
	if before, at := cutMoment(word, ranges); err != nil && at != "" {
		s, err = find(before)
		return s, at, err
	}
	return s, "", err
}

func only(all []api.Session, match func(api.Session) bool) []api.Session {
	return slices.DeleteFunc(slices.Clone(all), func(s api.Session) bool { return !match(s) })
}

func names(ss []api.Session) string {
	var l []string
	for _, s := range ss[:min(len(ss), 5)] {
		l = append(l, fmt.Sprintf("%s (%d)", s.Name, s.Number))
	}
	if len(ss) > 5 {
		l = append(l, "…")
	}
	return strings.Join(l, ", ")
}

// sessionAnd splits "[SESSION] N" arguments: a session and an action.
func (c command) sessionAnd(args []string) (api.Session, int, error) {
	word, last := apart(args)
	n, err := strconv.Atoi(last)
	if err != nil || n < 1 {
		return api.Session{}, 0, usage("%q is no action number; stepbox show lists the actions", api.Escape(last))
	}
	s, err := c.session(word)
	return s, n, err
}

// apart splits "[SESSION] WORD" arguments.
func apart(args []string) (session, last string) {
	n := len(args) - 1
	return optional(args[:n]), args[n]
}

func optional(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return ""
}

// Args marks an argument count that is off as a fault of the command line.
func Args(f cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := f(cmd, args); err != nil {
			return usage("%w (%s)", err, cmd.UseLine())
		}
		return nil
	}
}
