// Stepbox runs a terminal agent in a rootless sandbox and puts a person in
// charge of each thing it does. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"stepbox/runner"
	"stepbox/session/api"
	"stepbox/session/demo"
	"stepbox/session/launch"
	"stepbox/session/screen"
	"stepbox/store"
	"stepbox/themes"
	"stepbox/ui"
	"stepbox/ui/cli"
)

func main() {
	runner.Reexec() // the sandbox's own processes are this program too
	if len(os.Args) == 2 && os.Args[1] == "supervise" {
		if err := runner.Seal(); err != nil {
			fmt.Fprintln(os.Stderr, "stepbox: sandboxes start slower:", err)
		}
	}
	os.Exit(run(os.Args[1:]))
}

// run is the whole program but for its exit.
func run(args []string) int {
	if len(args) == 1 && args[0] == "supervise" {
		return supervise()
	}
	ctx, release := interruptible(context.Background())
	defer release()
	root := command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	s, ok := stoppedBy(ctx)
	if ok || errors.As(err, &s) {
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, s) {
			cli.PrintError(os.Stderr, err)
		}
		return s.code()
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

// command is the root with all its commands.
func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "stepbox",
		Short: "Supervise terminal agents: step, approve, deny, roll back, replay",
		Long: "Stepbox runs a terminal agent in a rootless sandbox and puts you in charge of each thing it does.\n" +
			"Without a command it shows the home screen: live sessions and history.",
		Args:    cli.NoArgs,
		Version: version(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return attach(cmd.Context(), "") },
	}
	cli.Plain(root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", cli.ErrUsage, err) })
	root.AddCommand(runCommand(), attachCommand(), demoCommand(), doctorCommand(), versionCommand())
	root.AddCommand(cli.Commands(launch.Hub)...)
	return root
}

// exitError carries the agent's exit code out of the run command.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("the agent ended with %d", e.code) }

// Is says that there is nothing to add: the agent has said what was wrong.
func (e *exitError) Is(target error) bool { return target == cli.ErrSaid }

// version is what the module system knows of this build.
func version() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		return b.Main.Version
	}
	return "(devel)"
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "stepbox", version())
			return err
		},
	}
}

// attach shows a session, or without one the home screen, until the person leaves.
func attach(ctx context.Context, id string) error {
	if !cli.Terminal() {
		return fmt.Errorf("%w: this needs a terminal; stepbox ls, show and log work without one", cli.ErrUsage)
	}
	client, done, err := launch.Hub(ctx)
	if err != nil {
		return err
	}
	defer done()
	return ui.Run(ctx, ui.Options{
		Client: ui.FromAPI(client), Session: id, Version: version(), ThemeDir: themes.Dir(),
		Start: func(ctx context.Context) (string, error) {
			req, err := runFlags{mode: string(api.ModePolicy), memory: defaultMemory, pids: defaultPids}.request(nil)
			if err != nil {
				return "", err
			}
			return start(ctx, req)
		},
		NewTerminal: func(cols, rows int) ui.Emulator { return screen.New(cols, rows) },
	})
}

func attachCommand() *cobra.Command {
	return &cobra.Command{
		Use: "attach [SESSION]", Short: "Show a session: live to decide on, past to look at", Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, done, err := launch.Hub(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			all, err := client.Sessions(cmd.Context())
			if err != nil {
				return err
			}
			word := ""
			if len(args) == 1 {
				word = args[0]
			}
			s, err := cli.Find(all, word)
			if err != nil {
				return err
			}
			return attach(cmd.Context(), s.ID)
		},
	}
}

func demoCommand() *cobra.Command {
	var auto bool
	cmd := &cobra.Command{
		Use: "demo", Short: "A scripted agent that shows everything in two minutes: no account, no network", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			if !auto && !cli.Terminal() {
				return fmt.Errorf("%w: the demo needs a terminal; demo --auto decides by itself and prints what happens", cli.ErrUsage)
			}
			dir, err := demo.Project()
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			f := runFlags{mode: string(api.ModeStep), name: "demo", workspace: dir, memory: "512M", pids: 256}
			req, err := f.request(demo.Argv())
			if err != nil {
				return err
			}
			client, done, err := launch.Hub(ctx)
			if err != nil {
				return err
			}
			defer done()
			id, err := start(ctx, req)
			if err != nil {
				return err
			}
			if auto {
				return demo.Auto(ctx, client, id, dir, cmd.OutOrStdout())
			}
			if err := attach(ctx, id); err != nil {
				return err
			}
			if s, err := client.Session(ctx, id); err == nil && s.Live() {
				_, err = client.Kill(ctx, id) // its project goes with the demo
				return err
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&auto, "auto", false, "decide without a person, print what happens, fail if a promise isn't kept")
	return cmd
}

// start starts a session. When it is the host that can't do it, the error says
// what is missing and how to mend it.
func start(ctx context.Context, req launch.Request) (string, error) {
	id, err := launch.Start(ctx, req)
	var failed *launch.Error
	if !errors.As(err, &failed) || !failed.Host {
		return id, err
	}
	findings, ferr := preflight(ctx)
	if ferr != nil {
		return "", err
	}
	var b strings.Builder
	for _, f := range findings {
		if !f.OK && f.Fatal {
			fmt.Fprintf(&b, "\n\n  %s: %s\n  why: %s\n  do:  %s", f.Name, f.Detail, f.Why, f.Fix)
		}
	}
	if b.Len() > 0 {
		failed.Message += "\nthis host can't run a sandbox yet:" + b.String()
	}
	return "", failed
}

// preflight looks at what sandboxes need of this host.
func preflight(ctx context.Context) ([]runner.Finding, error) {
	dir, err := store.Dir()
	if err != nil {
		return nil, err
	}
	return runner.Preflight(ctx, filepath.Join(dir, "sessions")), nil
}

func doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what this host offers, and say how to mend what is missing", Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var rows []cli.Check
			fatal := false
			findings, err := preflight(cmd.Context())
			if err != nil {
				return err
			}
			for _, f := range findings {
				rows = append(rows, cli.Check(f))
				fatal = fatal || !f.OK && f.Fatal
			}
			asJSON, err := cmd.Flags().GetBool("json")
			if err != nil {
				return err
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
	cmd.Flags().Bool("json", false, "print JSON")
	return cmd
}
