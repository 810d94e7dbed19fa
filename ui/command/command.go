// Package command is the command line: its commands, what each starts or shows, and how
// the program ends. It joins what the rooms of the tree provide; what commands print is
// ui/cli's.
package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"stepbox/runner"
	"stepbox/session/api"
	"stepbox/session/launch"
	"stepbox/session/tell"
	"stepbox/session/tell/mcp"
	"stepbox/ui"
	"stepbox/ui/cli"
)

// Run is the whole program but for its exit.
func Run(args []string) int {
	if len(args) == 1 && args[0] == "supervise" {
		return supervise()
	}
	if len(args) == 3 && args[0] == "hook" { // agents run it, in their sandbox
		tell.RunHook(args[1], args[2], os.Stdin, os.Stdout, runner.SocketPath(tell.Socket))
		return cli.ExitOK
	}
	if len(args) == 1 && args[0] == "mcp" { // as well
		if err := mcp.Serve(context.Background(), api.Build(), runner.SocketPath(tell.Socket)); err != nil {
			return cli.ExitFailure
		}
		return cli.ExitOK
	}
	ctx, release := cli.Interruptible(context.Background())
	defer release()
	root := Root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	s, ok := cli.StoppedBy(ctx)
	if !ok && errors.Is(err, ui.ErrGone) { // whether or not a hang-up was told
		s, ok = cli.Stopped{Signal: syscall.SIGHUP}, true
	}
	if ok || errors.As(err, &s) {
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, s) {
			cli.PrintError(os.Stderr, err)
		}
		return s.Code()
	}
	if err != nil {
		cli.PrintError(os.Stderr, err)
	}
	var agent *exitError
	if errors.As(err, &agent) {
		return agent.code
	}
	var failed *launch.Error
	if errors.As(err, &failed) {
		return failed.Code
	}
	return cli.Code(err)
}

// supervise is the supervisor's main: it is started by run, never by a person,
// and descriptor 3 takes its answer. A hang-up of the terminal that it was
// started from isn't its end.
func supervise() int {
	signal.Ignore(syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := launch.Supervise(ctx, os.Stdin, os.NewFile(3, "answer")); err != nil {
		return cli.ExitFailure
	}
	return cli.ExitOK
}

// Root is the root with all its commands.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "stepbox",
		Short: "Supervise terminal agents: step, approve, deny, roll back, replay",
		Long: "Stepbox runs a terminal agent in a rootless sandbox and puts you in charge of each thing it does.\n" +
			"Without a command it shows the home screen: live sessions and history.",
		Version: api.Build(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return attach(cmd.Context(), "") },
	}
	cli.Plain(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w: %w; %s --help lists its flags", cli.ErrUsage, err, cmd.CommandPath())
	})
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { // before the library asks, whose error says nothing of usage
		if err := cmd.ValidateFlagGroups(); err != nil {
			return fmt.Errorf("%w: %w", cli.ErrUsage, err)
		}
		warned(cmd)
		return nil
	}
	root.AddCommand(runCommand(), resumeCommand(), forkCommand(), attachCommand(), replayCommand(), demoCommand(), doctorCommand(), versionCommand(), cli.Config())
	root.AddCommand(cli.Commands(launch.Hub, launch.Rules)...)
	cli.Known(root)
	return root
}

// exitError carries the agent's exit code out of the run command.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("the agent ended with %d", e.code) }

// Is says that there is nothing to add: the agent has said what was wrong.
func (e *exitError) Is(target error) bool { return target == cli.ErrSaid }

func doctorCommand() *cobra.Command {
	var asJSON, install, show bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what this host offers, and say how to mend what is missing", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if install || show {
				done, warning, err := launch.Profile(cmd.Context(), show)
				if warning != "" {
					fmt.Fprintln(cmd.ErrOrStderr(), "stepbox: beware:", warning)
				}
				if err == nil {
					_, err = fmt.Fprint(cmd.OutOrStdout(), done)
				}
				return err
			}
			findings, err := launch.Preflight(cmd.Context())
			if err != nil {
				return err
			}
			var rows []cli.Check
			fatal := false
			for _, f := range findings {
				rows = append(rows, cli.Check(f))
				fatal = fatal || !f.OK && f.Fatal
			}
			if err := cli.PrintChecks(cmd.OutOrStdout(), rows, asJSON); err != nil {
				return err
			}
			if fatal {
				return fmt.Errorf("this host can't run a sandbox yet (%w)", cli.ErrSaid)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&install, "install-profile", false, "as root: let AppArmor allow user namespaces to stepbox, at the path where it is")
	cmd.Flags().BoolVar(&show, "print", false, "only print the profile that --install-profile installs")
	return cmd
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "stepbox", api.Build())
			return err
		},
	}
}
