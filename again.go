package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/session/launch"
	"stepbox/ui/cli"
)

// startOn starts what is asked for on another session's files, with a command of its
// own or, for none, the one that it had. Screen says that it will be shown; else echo
// whether its terminal echoes what comes in.
func startOn(ctx context.Context, r launch.Request, screen, echo bool) (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("cannot tell your home folder: set HOME: %w", err)
	}
	r.Env, r.Home = os.Environ(), home
	if screen {
		r.Cols, r.Rows = cli.PaneSize()
	} else {
		r.Cols, r.Rows = cli.Size()
	}
	r.NoEcho = !screen && !echo
	return start(ctx, r)
}

func resumeCommand() *cobra.Command {
	var detach bool
	cmd := &cobra.Command{
		Use:   "resume SESSION [-- COMMAND [ARG...]]",
		Short: "Go on with a session that has ended, over its files as it left them",
		Long: "Go on with a session that has ended or was interrupted: the same session, with its\n" +
			"files, actions and checkpoints. Without a command the one that it had runs again.\n" +
			"Exits as run does.",
		Example: "  stepbox resume fix-tests\n  stepbox resume 12 -- claude --continue",
		RunE: func(cmd *cobra.Command, args []string) error {
			return onAnother(cmd, args, detach, func(all []api.Session, word string) (launch.Request, error) {
				s, err := cli.Find(all, word)
				return launch.Request{Resume: s.ID}, err
			})
		},
	}
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "resume it and print its name; stepbox attach joins it")
	return cmd
}

// onAnother starts what a session's name and a command after -- ask for.
func onAnother(cmd *cobra.Command, args []string, detach bool, request func(all []api.Session, word string) (launch.Request, error)) error {
	n := cmd.ArgsLenAtDash()
	if n < 0 {
		n = len(args)
	}
	if n != 1 {
		return fmt.Errorf("%w: name one session, and a command after -- (%s); stepbox ls lists them", cli.ErrUsage, cmd.UseLine())
	}
	client, done, err := launch.Hub(cmd.Context())
	if err != nil {
		return err
	}
	defer done()
	all, err := client.Sessions(cmd.Context())
	if err != nil {
		return err
	}
	r, err := request(all, args[0])
	if err != nil {
		return err
	}
	r.Argv = args[1:]
	id, err := startOn(cmd.Context(), r, cli.Terminal() && !detach, detach)
	if err != nil {
		return err
	}
	return join(cmd, id, detach)
}

func forkCommand() *cobra.Command {
	var detach bool
	var name, mode string
	cmd := &cobra.Command{
		Use:   "fork SESSION[@MOMENT] [-- COMMAND [ARG...]]",
		Short: "Start a session on the files that another had at a moment",
		Long: "Start a new session on exactly the files that another saw at a moment, live or ended, with its rules:\n" +
			"hosts, limits and mode. MOMENT is 12 for after action 12, 12^ for before it, +1h2m since the start, start\n" +
			"or end. Without a command the one that it had runs. Processes, connections and /tmp aren't brought back,\n" +
			"and the home folder is the one that the agent's sessions share. Exits as run does.",
		Example: "  stepbox fork fix-tests@12^ -- claude --continue\n  stepbox fork 7 --name other --mode step",
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case name != "" && !api.ValidName(name):
				return noName(name)
			case mode != "" && !api.Mode(mode).Valid():
				return cli.NoMode(api.Mode(mode))
			}
			return onAnother(cmd, args, detach, func(all []api.Session, word string) (launch.Request, error) {
				s, at, err := cli.FindAt(all, word)
				return launch.Request{Name: name, Mode: api.Mode(mode), Fork: &launch.Fork{Session: s.ID, At: at}}, err
			})
		},
	}
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "start it and print its name; stepbox attach joins it")
	cmd.Flags().StringVar(&name, "name", "", "the new session's name (the other's, with -fork)")
	cmd.Flags().StringVar(&mode, "mode", "", "step, policy or watch (as the other's)")
	return cmd
}
