// Stepbox runs a terminal agent in a rootless sandbox and puts a person in
// charge of each thing it does. See README.md.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"charm.land/fang/v2"
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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP, os.Interrupt)
	defer stop()
	if len(args) == 1 && args[0] == "supervise" {
		// Started by run, never by a person: descriptor 3 takes the answer.
		// A hang-up of the terminal that it was started from isn't its end.
		signal.Ignore(syscall.SIGHUP)
		if err := launch.Supervise(ctx, os.Stdin, os.NewFile(3, "answer")); err != nil {
			return cli.ExitFailure
		}
		return cli.ExitOK
	}
	root := command()
	root.SetArgs(args)
	err := fang.Execute(ctx, root, fang.WithVersion(version()), fang.WithoutManpage(), fang.WithErrorHandler(cli.PrintError))
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

// command is the root with all its commands.
func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "stepbox",
		Short: "Supervise terminal agents: step, approve, deny, roll back, replay",
		Long: "Stepbox runs a terminal agent in a rootless sandbox and puts you in charge of each thing it does.\n" +
			"Without a command it shows the home screen: live sessions and history.",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return attach(cmd.Context(), "") },
	}
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

// runFlags are what the run command can be told.
type runFlags struct {
	mode, name, workspace, memory string
	hosts                         []string
	detach                        bool
	cpus                          float64
	pids                          int64
	wall                          time.Duration
}

// What an agent may use unless it is said otherwise: enough for a build, not
// enough to take a laptop down.
const (
	defaultMemory = "4G"
	defaultPids   = 2048
)

func runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] [--] [COMMAND [ARG...]]",
		Short: "Run an agent, or your shell, in a sandbox over this folder",
		Long: "Run an agent in a sandbox over this folder. Without a command it is your shell.\n" +
			"Exits as the agent does; 125 when the sandbox can't be started, 126 and 127 when\n" +
			"the command can't be run or doesn't exist in the sandbox.",
		Example: "  stepbox run -- claude\n  stepbox run --mode step -- codex\n  stepbox run --allow-host api.example.com:443 --detach -- ./agent.sh",
		RunE:    func(cmd *cobra.Command, args []string) error { return runAgent(cmd, f, args) },
	}
	cmd.Flags().SetInterspersed(false) // the first word that isn't a flag is the agent
	cmd.Flags().StringVar(&f.mode, "mode", string(api.ModePolicy), "step: hold every action; policy: follow the rules; watch: only record")
	cmd.Flags().StringVar(&f.name, "name", "", "the session's name (the folder's)")
	cmd.Flags().StringVarP(&f.workspace, "workspace", "w", "", "the project folder (this one)")
	cmd.Flags().StringArrayVar(&f.hosts, "allow-host", nil, "NAME[:PORT] that may be reached; may be given more than once")
	cmd.Flags().BoolVarP(&f.detach, "detach", "d", false, "start it and print its name; stepbox attach joins it")
	cmd.Flags().StringVar(&f.memory, "memory", defaultMemory, "most memory the agent may use; 0: no limit")
	cmd.Flags().Float64Var(&f.cpus, "cpus", 0, "most processors' time it may use; 0: no limit")
	cmd.Flags().Int64Var(&f.pids, "pids", defaultPids, "most processes and threads; 0: no limit")
	cmd.Flags().DurationVar(&f.wall, "wall-time", 0, "end the session after this long; 0: never")
	return cmd
}

// request is what the supervisor is asked for.
func (f runFlags) request(args []string) (launch.Request, error) {
	r := launch.Request{Name: f.name, Argv: launch.Bytes(args), Env: launch.Bytes(os.Environ()), Mode: api.Mode(f.mode), AllowHosts: f.hosts, WallTime: f.wall}
	switch r.Mode {
	case api.ModeStep, api.ModePolicy, api.ModeWatch:
	default:
		return r, fmt.Errorf("%w: there is no mode %q: use step, policy or watch", cli.ErrUsage, api.Escape(f.mode))
	}
	if f.cpus < 0 || f.pids < 0 || f.wall < 0 {
		return r, fmt.Errorf("%w: a limit can't be negative", cli.ErrUsage)
	}
	memory, err := cli.ParseSize(f.memory)
	if err != nil {
		return r, err
	}
	r.Limits = runner.Limits{Memory: memory, CPUs: f.cpus, Pids: f.pids}
	if f.name != "" && !cli.ValidName(f.name) {
		return r, fmt.Errorf("%w: a session's name has 1 to 64 letters, digits, dots, dashes or underscores, not %q", cli.ErrUsage, api.Escape(f.name))
	}
	if len(r.Argv) == 0 {
		r.Argv = launch.Bytes([]string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")})
	}
	if r.Home, err = os.UserHomeDir(); err != nil {
		return r, fmt.Errorf("cannot tell your home folder: set HOME: %w", err)
	}
	workspace, err := filepath.Abs(f.workspace)
	if err != nil {
		return r, fmt.Errorf("cannot tell the project folder: %w", err)
	}
	if real, err := filepath.EvalSymlinks(workspace); err == nil {
		workspace = real // else the supervisor says what is wrong with it
	}
	r.Workspace = []byte(workspace)
	r.Cols, r.Rows = cli.Size()
	return r, nil
}

func runAgent(cmd *cobra.Command, f runFlags, args []string) error {
	ctx := cmd.Context()
	req, err := f.request(args)
	if err != nil {
		return err
	}
	client, done, err := launch.Hub(ctx)
	if err != nil {
		return &launch.Error{Code: cli.ExitNoRun, Message: err.Error()}
	}
	defer done()
	id, err := start(ctx, req)
	if err != nil {
		return err
	}
	if f.detach {
		return cli.Detached(ctx, cmd.OutOrStdout(), client, id)
	}
	if cli.Terminal() {
		err = attach(ctx, id)
	} else {
		err = cli.Follow(ctx, client, id, os.Stdin, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	if err != nil {
		return err
	}
	return leave(ctx, cmd, client, id)
}

// leave ends the run command: as the agent did, or with a word on where it went on.
func leave(ctx context.Context, cmd *cobra.Command, client *api.Client, id string) error {
	s, err := client.Session(ctx, id)
	if err != nil {
		return err
	}
	if s.Live() {
		if cli.Terminal() {
			return nil // the screen has said so
		}
		return cli.Detached(ctx, cmd.ErrOrStderr(), client, id)
	}
	if s.State == api.SessionInterrupted {
		return &launch.Error{Code: cli.ExitNoRun, Message: "the session was interrupted: its supervisor died or could not record what happens; " +
			"see whether the disk is full, and stepbox log " + s.ID}
	}
	if s.Exit != nil && s.Exit.Code != 0 {
		return &exitError{code: s.Exit.Code}
	}
	return nil
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
