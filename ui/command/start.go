package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/session/launch"
	"stepbox/ui"
	"stepbox/ui/cli"
)

// start starts a session. When it is the host that can't do it, the error says
// what is missing and how to mend it.
func start(ctx context.Context, req launch.Request) (launch.Supervised, error) {
	s, err := launch.Start(ctx, req)
	return s, whatIsMissing(ctx, err)
}

// whatIsMissing adds to the error of a start what this host lacks, if it is that.
func whatIsMissing(ctx context.Context, err error) error {
	var failed *launch.Error
	if !errors.As(err, &failed) || !failed.Host {
		return err
	}
	findings, ferr := launch.Preflight(ctx)
	if ferr != nil {
		return err
	}
	var b strings.Builder
	for _, f := range findings {
		if !f.OK && f.Fatal && !strings.Contains(failed.Message, f.Detail) { // else it is what was said
			fmt.Fprintf(&b, "\n\n  %s: %s\n  why: %s\n  do:  %s", f.Name, f.Detail, f.Why, f.Fix)
		}
	}
	if b.Len() > 0 {
		failed.Message += "\nthis host can't run a sandbox yet:" + b.String()
	}
	return failed
}

// surround tells a session of whoever starts it. Screen says that it will be shown; else
// echo whether its terminal echoes what comes in: cli.Follow's input isn't typed there.
func surround(r *launch.Request, screen, echo bool) (err error) {
	if r.Home, err = os.UserHomeDir(); err != nil {
		return fmt.Errorf("cannot tell your home folder: set HOME: %w", err)
	}
	r.Env, r.NoEcho = os.Environ(), !screen && !echo
	if r.Cols, r.Rows = cli.Size(); screen {
		r.Cols, r.Rows = cli.PaneSize()
	}
	return nil
}

// join shows a session that was just started, or says that it runs, and ends as
// its agent does.
func join(cmd *cobra.Command, started launch.Supervised, detach, asJSON bool) error {
	ctx, id := cmd.Context(), started.ID
	client, done, err := launch.Hub(context.WithoutCancel(ctx))
	if err != nil {
		return &launch.Error{Code: cli.ExitNoRun, Message: fmt.Sprintf("session %s runs, and its record can't be read: %v", id, err)}
	}
	defer done()
	if detach {
		return cli.Started(ctx, cmd.OutOrStdout(), client, id)
	}
	defer closed(context.WithoutCancel(ctx), client, started)
	// A reader of the output that is gone is an error here, and not this program's end.
	broken := make(chan os.Signal, 1) // full is fine: it is only kept from doing harm
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	screen := cli.Terminal() && !asJSON
	switch {
	case screen:
		err = screenBy(ctx, client, id, ui.Options{NoFarewell: true}) // leave says it, wherever the person leaves from
	case asJSON:
		if err = begun(ctx, cmd, client, id); err == nil {
			err = cli.Follow(ctx, client, id, os.Stdin, cmd.ErrOrStderr(), cmd.ErrOrStderr(), cmd.OutOrStdout())
		}
	default:
		err = cli.Follow(ctx, client, id, os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr(), nil)
	}
	if s, ok := cli.StoppedBy(ctx); ok {
		return interrupted(context.WithoutCancel(ctx), cmd, client, id, s, screen)
	}
	if errors.Is(err, syscall.EPIPE) { // as it would end the program itself, signal(7)
		return interrupted(context.WithoutCancel(ctx), cmd, client, id, cli.Stopped{Signal: syscall.SIGPIPE}, screen)
	}
	if err != nil {
		if !screen { // what it prints has nowhere to go, as when a pipe breaks
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWait)
			defer cancel()
			_, _ = client.Kill(end, id) // it may have ended; the error says what matters
		}
		return err
	}
	return leave(ctx, cmd, client, id)
}

// begun is the first line of run --json: which session it is, and where its API is.
func begun(ctx context.Context, cmd *cobra.Command, client *api.Client, id string) error {
	s, err := client.Session(ctx, id)
	if err != nil {
		return err
	}
	at, err := launch.Socket(id)
	if err != nil {
		return err
	}
	return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
		Kind    string      `json:"kind"`
		Session api.Session `json:"session"`
		Socket  string      `json:"socket"`
	}{"run", s, at})
}

// endWait bounds how long a signal waits for the sandbox to be ended and its
// record completed: the agent itself is killed at its beginning.
const endWait = 10 * time.Second

// closed waits until a session that is over has closed its record, for whoever copies
// or removes that next; for a second, as what it printed may still be being indexed.
func closed(ctx context.Context, client *api.Client, started launch.Supervised) {
	if s, err := client.Session(ctx, started.ID); err == nil && s.Live() {
		return
	}
	select {
	case <-started.Gone:
	case <-time.After(time.Second):
	}
}

// interrupted ends the run command after a signal. A hang-up, or a screen that
// is closed, leaves the session running; a program without a screen ends with
// what it ran, as timeout(1) and Ctrl-C expect it.
func interrupted(ctx context.Context, cmd *cobra.Command, client *api.Client, id string, by cli.Stopped, screen bool) error {
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	if by.Signal == syscall.SIGHUP || screen {
		if s, err := client.Session(ctx, id); err == nil && s.Live() {
			_ = cli.Detached(ctx, cmd.ErrOrStderr(), client, id) // the terminal may be gone: nobody to tell
		}
		return by
	}
	s, err := client.Kill(ctx, id)
	if p := (*api.Problem)(nil); errors.As(err, &p) && p.Code == api.CodeNotLive {
		s, err = client.Session(ctx, id) // it has ended by itself
	}
	cli.Unapplied(cmd.ErrOrStderr(), s)
	if err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "stepbox: cannot end session %s: %v; stepbox kill %s tries again\n", id, err, id)
	}
	return by
}

// leave ends the run command: as the agent did, or with a word on where it went on.
func leave(ctx context.Context, cmd *cobra.Command, client *api.Client, id string) error {
	s, err := client.Session(ctx, id)
	if err != nil {
		return err
	}
	if s.Live() {
		return cli.Detached(ctx, cmd.ErrOrStderr(), client, id)
	}
	if s.State == api.SessionInterrupted {
		return &launch.Error{Code: cli.ExitNoRun, Message: "the session was interrupted: its supervisor died or could not record what happens; " +
			"see whether the disk is full, and stepbox log " + s.ID + "; stepbox resume " + s.ID + " goes on with it"}
	}
	if cli.Terminal() {
		cli.Ended(cmd.ErrOrStderr(), s)
	} else {
		cli.Unapplied(cmd.ErrOrStderr(), s)
	}
	switch s.EndedBy {
	case api.ByFailure:
		return &launch.Error{Code: cli.ExitNoRun, Message: "Stepbox ended the session, as it couldn't go on: " + s.Reason}
	case api.ByLimit, api.ByPerson:
		fmt.Fprintf(cmd.ErrOrStderr(), "stepbox: the session was ended: %s\n", s.Reason)
	}
	if s.Exit != nil && s.Exit.Code != 0 {
		return &exitError{code: s.Exit.Code}
	}
	return nil
}

// startOn starts what is asked for on another session's files, with a command of its
// own or, for none, the one that it had.
func startOn(ctx context.Context, r launch.Request, screen, echo bool) (launch.Supervised, error) {
	if err := surround(&r, screen, echo); err != nil {
		return launch.Supervised{}, err
	}
	return start(ctx, r)
}

func resumeCommand() *cobra.Command {
	var detach bool
	var vars []string
	var ask cli.AskFlags
	cmd := &cobra.Command{
		Use:   "resume SESSION [-- COMMAND [ARG...]]",
		Short: "Go on with a session that has ended, over its files as it left them",
		Long: "Go on with a session that has ended or was interrupted: the same session, with its\n" +
			"files, actions and checkpoints. Without a command the one that it had runs again.\n" +
			"Exits as run does.",
		Example: "  stepbox resume fix-tests\n  stepbox resume 12 -- claude --continue",
		RunE: func(cmd *cobra.Command, args []string) error {
			return onAnother(cmd, args, vars, ask, detach, func(all []api.Session, word string) (launch.Request, error) {
				s, err := cli.Find(all, word)
				return launch.Request{Resume: s.ID}, err
			})
		},
	}
	ask.Add(cmd)
	envFlag(cmd, &vars)
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "resume it and print its name; stepbox attach joins it")
	return cmd
}

// onAnother starts what a session's name and a command after -- ask for.
func onAnother(cmd *cobra.Command, args, vars []string, ask cli.AskFlags, detach bool, request func(all []api.Session, word string) (launch.Request, error)) error {
	n := cmd.ArgsLenAtDash()
	if n < 0 {
		n = len(args)
	}
	if n != 1 {
		return fmt.Errorf("%w: name one session, and a command after -- (%s); stepbox ls lists them", cli.ErrUsage, cmd.UseLine())
	}
	all, err := sessions(cmd.Context())
	if err != nil {
		return err
	}
	r, err := request(all, args[0])
	if err != nil {
		return err
	}
	ask.Given(cmd)
	if r.Asking, err = ask.Asking(); err != nil {
		return err
	}
	r.KeepOn, r.KeepTimeout = !cmd.Flags().Changed("on-ask"), !cmd.Flags().Changed("ask-timeout")
	r.Argv = args[1:]
	if err := give(&r, nil, vars); err != nil {
		return err
	}
	s, err := startOn(cmd.Context(), r, cli.Terminal() && !detach, detach)
	if err != nil {
		return err
	}
	return join(cmd, s, detach, false)
}

func forkCommand() *cobra.Command {
	var detach bool
	var name, mode string
	var vars []string
	var ask cli.AskFlags
	cmd := &cobra.Command{
		Use:   "fork SESSION[@MOMENT] [-- COMMAND [ARG...]]",
		Short: "Start a session on the files that another had at a moment",
		Long: "Start a new session on exactly the files that another saw at a moment, live or ended, with its rules:\n" +
			"hosts, limits and mode. MOMENT is 12 for after action 12, 12^ for before it, +1h2m since the start, start\n" +
			"or end. Without a command the one that it had runs. Processes, connections and /tmp aren't brought back,\n" +
			"and the home folder is the one that the agent's sessions share, or begins as that is. Exits as run does.",
		Example: "  stepbox fork fix-tests@12^ -- claude --continue\n  stepbox fork 7 --name other --mode step",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkName(name); err != nil {
				return err
			}
			if mode != "" && !api.Mode(mode).Valid() {
				return cli.NoMode(api.Mode(mode))
			}
			return onAnother(cmd, args, vars, ask, detach, func(all []api.Session, word string) (launch.Request, error) {
				s, at, err := cli.FindAt(all, word)
				return launch.Request{Name: name, Mode: api.Mode(mode), Fork: &launch.Fork{Session: s.ID, At: at}}, err
			})
		},
	}
	ask.Add(cmd)
	envFlag(cmd, &vars)
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "start it and print its name; stepbox attach joins it")
	cmd.Flags().StringVar(&name, "name", "", "the new session's name (the other's, with -fork)")
	cmd.Flags().StringVar(&mode, "mode", "", "step, policy or watch (as the other's)")
	return cmd
}
