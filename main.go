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
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"stepbox/runner"
	"stepbox/session/api"
	"stepbox/session/demo"
	"stepbox/session/launch"
	"stepbox/session/outfit"
	"stepbox/session/screen"
	"stepbox/session/tell"
	"stepbox/session/tell/mcp"
	"stepbox/themes"
	"stepbox/ui"
	"stepbox/ui/cli"
	"stepbox/ui/config"
	"stepbox/ui/dialog"
	"stepbox/ui/intent"
	"stepbox/ui/kept"
	"stepbox/ui/keys"
	"stepbox/ui/link"
	"stepbox/ui/outside"
)

func main() {
	runner.Reexec()                               // the sandbox's own processes are this program too
	if filepath.Base(os.Args[0]) == tell.Opener { // agents run it, in their sandbox
		os.Exit(tell.RunOpen(os.Args[1:], os.Stderr, runner.SocketPath(tell.Socket)))
	}
	go func() { os.Exit(run(os.Args[1:])) }()
	select {}
}

// run is the whole program but for its exit.
func run(args []string) int {
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
	root := command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	s, ok := cli.StoppedBy(ctx)
	if !ok && errors.Is(err, ui.ErrGone) { // whether or not a hang-up was told
		s, ok = cli.Stopped{Signal: syscall.SIGHUP}, true
	}
	if ok || errors.As(err, &s) {
		if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, s) {
			cli.PrintError(cli.Words(os.Stderr), err)
		}
		return s.Code()
	}
	if err != nil {
		cli.PrintError(cli.Words(os.Stderr), err)
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
	version := false
	root := &cobra.Command{
		Use:   "stepbox",
		Short: "Supervise terminal agents: step, approve, deny, roll back, replay",
		Long: "Stepbox runs a terminal agent in a rootless sandbox and puts you in charge of each thing it does.\n" +
			"Without a command it shows the home screen: live sessions and history.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				return tellVersion(cmd, nil)
			}
			return attach(cmd.Context(), "")
		},
	}
	root.Flags().BoolVarP(&version, "version", "v", false, "version for stepbox") // the library's prints by a template
	root.SetOut(cli.Words(os.Stdout))
	root.SetErr(cli.Words(os.Stderr))
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
	for _, cmd := range append(root.Commands(), root) {
		if slices.Contains(screens, cmd.Name()) {
			lookFlags(cmd)
		}
	}
	cli.Known(root)
	return root
}

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
		Use: "version", Short: "Print the version", Args: cli.NoArgs, RunE: tellVersion,
	}
}

func tellVersion(cmd *cobra.Command, _ []string) error {
	_, err := fmt.Fprintln(cmd.OutOrStdout(), "stepbox", api.Build())
	return err
}

// attach shows a session, or without one the home screen, until the person leaves.
func attach(ctx context.Context, id string) error { return screenOf(ctx, id, ui.Options{}) }

// screenOf shows a session, with options of the caller's.
func screenOf(ctx context.Context, id string, o ui.Options) error {
	hub := launch.Hub
	if o.Watching {
		hub = launch.Watch
	}
	if !cli.Terminal() {
		return fmt.Errorf("%w: this needs a terminal that can move its cursor (TERM=dumb says no); stepbox ls, show and log work without one", cli.ErrUsage)
	}
	client, done, err := hub(ctx)
	if err != nil {
		return err
	}
	defer done()
	return screenBy(ctx, client, id, o)
}

// screenBy shows a session by a client that is there already.
func screenBy(ctx context.Context, client *api.Client, id string, o ui.Options) (err error) {
	o.Client, o.Session, o.Version, o.ThemeDir = link.FromAPI(client), id, api.Build(), themes.Dir()
	o.Config, o.Reload = settings(), func() *config.Config { return config.Load(variable) }
	if o.Folders, err = launch.Folders(); err != nil {
		return err
	}
	if here, err := os.Getwd(); err == nil {
		o.Here, _ = filepath.EvalSymlinks(here) // as sessions name theirs; "" where it is gone
	}
	o.Kept = kept.Folder(o.Folders[0])
	o.Save = func(ctx context.Context, id, key string, at api.Moment, name string) error {
		return cli.Save(ctx, client, id, key, at, name)
	}
	o.Copy = outside.Copier(os.Getenv)
	o.NewTerminal = func(cols, rows int) link.Emulator { return screen.New(cols, rows) }
	if o.Watching {
		return ui.Run(ctx, o)
	}
	o.Browse = cli.Browser(os.Getenv)
	o.Export = func(ctx context.Context, id, file string) error { return cli.ToPatch(ctx, client, id, file) }
	o.Start = begin
	o.Agents = func(context.Context) (out []dialog.Choice) {
		for _, a := range launch.Agents() {
			out = append(out, dialog.Choice{Value: a.Name, Words: a.Title, Argv: []string{a.Program}})
		}
		return out
	}
	var ends []func(context.Context) error // of demos
	o.Demo = func(ctx context.Context) (string, error) {
		s, _, end, err := startDemo(ctx, client)
		if err == nil {
			ends = append(ends, end)
		}
		return s.ID, err
	}
	defer func() {
		for _, end := range ends {
			err = cmp.Or(err, end(ctx))
		}
	}()
	o.Resume = func(ctx context.Context, id string) (string, error) {
		s, err := startOn(ctx, launch.Request{Resume: id}, true, true)
		return s.ID, err
	}
	o.Fork = func(ctx context.Context, id string, at api.Moment) (string, error) {
		s, err := startOn(ctx, launch.Request{Fork: &launch.Fork{Session: id, At: at}}, true, true)
		return s.ID, err
	}
	return ui.Run(ctx, o)
}

// begin starts a session as it was chosen on the home screen.
func begin(ctx context.Context, b intent.Begin) (string, error) {
	f := cli.RunSettings(settings())
	f.Mode, f.Name, f.Workspace = cmp.Or(string(b.Mode), f.Mode), b.Name, b.Folder
	if info, err := os.Stat(cmp.Or(b.Folder, ".")); err != nil || !info.IsDir() {
		return "", fmt.Errorf("there is no folder %s", api.Escape(b.Folder))
	}
	req, err := request(f, b.Argv)
	if err != nil {
		return "", err
	}
	s, err := launch.Start(ctx, req)
	return s.ID, err
}

// startDemo starts the demo's session in a folder of its own. End ends it, and takes the
// folder away.
func startDemo(ctx context.Context, client *api.Client) (s launch.Supervised, dir string, end func(context.Context) error, err error) {
	dir, remove, err := demo.Project()
	if err != nil {
		return s, "", nil, err
	}
	f := cli.RunFlags{
		Mode: string(api.ModeStep), Workspace: dir, Memory: "512M", Pids: 256, Disk: cli.DefaultDisk,
		Usual: []string{"memory", "cpus", "pids", "disk", "wall-time"},
	}
	req, err := request(f, demo.Argv())
	if err == nil {
		s, err = launch.Start(ctx, req)
	}
	if err != nil {
		return s, "", nil, errors.Join(err, remove())
	}
	return s, dir, func(ctx context.Context) (err error) {
		// Its project goes with the demo, after a signal too.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cli.EndWait)
		defer cancel()
		if x, failed := client.Session(ctx, s.ID); failed == nil && x.Live() {
			_, err = client.Kill(ctx, s.ID)
		}
		return cmp.Or(err, remove())
	}, nil
}

func attachCommand() *cobra.Command {
	var watching bool
	cmd := &cobra.Command{
		Use: "attach [SESSION]", Short: "Show a session: live to decide on, past to look at", Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := sessions(cmd.Context())
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
			return screenOf(cmd.Context(), s.ID, ui.Options{Watching: watching})
		},
	}
	cmd.Flags().BoolVar(&watching, "read-only", false, "only watch: nothing is decided, typed or changed from here")
	return cmd
}

// sessions are all that are recorded.
func sessions(ctx context.Context) ([]api.Session, error) {
	client, done, err := launch.Hub(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return client.Sessions(ctx)
}

func replayCommand() *cobra.Command {
	return cli.Replay(cli.Player{
		Connect: launch.Hub,
		Emulator: func(cols, rows int, keyframe []byte, line func(string)) cli.Emulator {
			return screen.NewLines(cols, rows, keyframe, line)
		},
		Screen: func(ctx context.Context, id string, at api.Moment, speed float64) error {
			return screenOf(ctx, id, ui.Options{Replay: &ui.Replay{At: at, Speed: speed}})
		},
	})
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
			client, done, err := launch.Hub(context.WithoutCancel(ctx))
			if err != nil {
				return err
			}
			defer done()
			demoed, dir, end, err := startDemo(ctx, client)
			if err != nil {
				return err
			}
			id := demoed.ID
			if auto {
				return errors.Join(demo.Auto(ctx, client, id, dir, cmd.OutOrStdout()), end(ctx))
			}
			err = screenOf(ctx, id, ui.Options{NoFarewell: true, NoTour: true})
			if s, ok := cli.StoppedBy(ctx); ok {
				err = s
			}
			if err = cmp.Or(err, end(ctx)); err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "The demo is over, and its folder gone; stepbox attach %s looks back at it.\nNext: stepbox run, in a folder of yours, starts your shell in a sandbox; stepbox run -- AGENT an agent.\nstepbox help keys explains the keys, stepbox help lists all topics.\n", id)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&auto, "auto", false, "decide without a person, print what happens, fail if a promise isn't kept")
	return cmd
}

func runCommand() *cobra.Command {
	var f cli.RunFlags
	cmd := &cobra.Command{
		Use:   "run [flags] [--] [COMMAND [ARG...]]",
		Short: "Run an agent, or your shell, in a sandbox over this folder",
		Long: "Run an agent in a sandbox over this folder. Without a command it is your shell.\n" +
			"A connection to a host that no rule knows waits for your word. Of this machine the agent\n" +
			"reaches a port that you allow as host.stepbox.internal:PORT, never as localhost.\n" +
			"Exits as the agent does; 125 when the sandbox can't be started, 126 and 127 when\n" +
			"the command can't be run or doesn't exist in the sandbox.",
		Example: "  stepbox run -- claude\n  stepbox run --mode step -- codex\n  stepbox run --allow-host api.example.com:443 --detach -- ./agent.sh",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.JSON && f.Detach {
				return fmt.Errorf("%w: --json tells what happens and --detach doesn't stay: use stepbox log --follow --json on what is detached", cli.ErrUsage)
			}
			f.Under(cmd, settings())
			req, err := request(f, args)
			if err != nil {
				return err
			}
			return join(cmd, func(ctx context.Context) (launch.Supervised, error) { return launch.Start(ctx, req) }, f.Detach, f.JSON)
		},
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cli.InForce(cmd, settings())
		cmd.Parent().HelpFunc()(cmd, args)
	})
	f.Add(cmd)
	return cmd
}

// give gives a session variables, first those of the settings, which needn't be set.
func give(r *launch.Request, usual, vars []string) error {
	if err := launch.Given(vars, os.Environ()); err != nil {
		return fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	for _, v := range launch.Beware(vars) {
		fmt.Fprintln(cli.Words(os.Stderr), "stepbox: beware:", v)
	}
	r.Vars = slices.Concat(usual, vars)
	return nil
}

// checkName is the error for a name that no session may have; "" is that of its folder.
func checkName(name string) error {
	if fault := api.NameFault(name); name != "" && fault != "" {
		return fmt.Errorf("%w: %s", cli.ErrUsage, fault)
	}
	return nil
}

// request is what the supervisor is asked for.
func request(f cli.RunFlags, args []string) (launch.Request, error) {
	r := launch.Request{Name: f.Name, Argv: args, Mode: api.Mode(f.Mode), AllowHosts: f.Hosts, Credentials: f.Credentials, Tokens: f.Tokens, WallTime: f.Wall, HomeKind: api.HomeKind(f.Home), Usual: f.Usual}
	var err error
	if r.Asking, err = f.Asking.Asking(); err != nil {
		return r, err
	}
	if !r.Mode.Valid() {
		return r, cli.NoMode(r.Mode)
	}
	if f.Home != "" && !r.HomeKind.Valid() {
		return r, fmt.Errorf("%w: --home %s: use profile, session or fresh", cli.ErrUsage, api.Escape(f.Home))
	}
	r.Limits = runner.Limits{CPUs: f.CPUs, Pids: f.Pids}
	if r.Limits.Memory, r.Disk, err = f.Limits(); err != nil {
		return r, err
	}
	if err := give(&r, settings().Env, f.Vars); err != nil {
		return r, err
	}
	for _, h := range f.Hosts {
		if err := launch.CheckHost(h); err != nil {
			return r, fmt.Errorf("%w: --allow-host: %w", cli.ErrUsage, err)
		}
	}
	if err := launch.CheckCredentials(f.Credentials, f.Tokens); err != nil {
		return r, fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	if err := checkName(f.Name); err != nil {
		return r, err
	}
	if len(r.Argv) == 0 {
		r.Argv = []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")}
	}
	workspace, err := filepath.Abs(f.Workspace)
	if err != nil {
		return r, fmt.Errorf("cannot tell the project folder: %w", err)
	}
	if real, err := filepath.EvalSymlinks(workspace); err == nil {
		workspace = real // else the supervisor says what is wrong with it
	}
	r.Workspace = []byte(workspace)
	if err := surround(&r, cli.Terminal() && !f.Detach && !f.JSON, f.Detach); err != nil {
		return r, err
	}
	r.Extras.NoCaches, r.Extras.Unasked = f.NoCaches, f.Unasked
	for _, text := range f.Ports {
		p, err := api.ParsePort(text, false)
		if err != nil {
			return r, fmt.Errorf("%w: --publish: %w", cli.ErrUsage, err)
		}
		r.Extras.Publish = append(r.Extras.Publish, p)
	}
	for _, text := range f.Dirs {
		d, err := outfit.ParseDir(text, r.Home)
		if err != nil {
			return r, fmt.Errorf("%w: --add-dir: %w", cli.ErrUsage, err)
		}
		r.Extras.Dirs = append(r.Extras.Dirs, d)
	}
	return r, nil
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

// join starts a session and shows it, or says that it runs, and ends as its agent does.
func join(cmd *cobra.Command, begin func(context.Context) (launch.Supervised, error), detach, asJSON bool) error {
	return cli.Join(cmd, cli.Joining{
		Connect: launch.Hub, Socket: launch.Socket, Detach: detach, JSON: asJSON,
		Begin: func(ctx context.Context) (string, <-chan struct{}, error) {
			s, err := begin(ctx)
			return s.ID, s.Gone, err
		},
		Screen: func(ctx context.Context, client *api.Client, begin func(context.Context) (string, error)) error {
			return screenBy(ctx, client, "", ui.Options{NoFarewell: true, Begin: begin})
		},
	})
}

// startOn starts what is asked for on another session's files, with a command of its
// own or, for none, the one that it had.
func startOn(ctx context.Context, r launch.Request, screen, echo bool) (launch.Supervised, error) {
	if err := surround(&r, screen, echo); err != nil {
		return launch.Supervised{}, err
	}
	return launch.Start(ctx, r)
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
	cli.EnvFlag(cmd, &vars)
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
	screen := cli.Terminal() && !detach
	return join(cmd, func(ctx context.Context) (launch.Supervised, error) { return startOn(ctx, r, screen, detach) }, detach, false)
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
	cli.EnvFlag(cmd, &vars)
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "start it and print its name; stepbox attach joins it")
	cmd.Flags().StringVar(&name, "name", "", "the new session's name (the other's, with -fork)")
	cmd.Flags().StringVar(&mode, "mode", "", "step, policy or watch (as the other's)")
	return cmd
}

// settings are the person's, as they were when the program first asked.
var settings = sync.OnceValue(func() *config.Config {
	c := config.Load(variable)
	keys.Use(c.Keys)
	return c
})

// flagged are variables that flags have set, and variable is one of those, or of the environment.
var flagged = map[string]string{}

func variable(name string) string { return cmp.Or(flagged[name], os.Getenv(name)) }

// lookFlags are how a screen looks.
func lookFlags(cmd *cobra.Command) {
	cmd.Flags().Func("theme", "`NAME` of the screens' colours: auto, "+strings.Join(themes.Names(), ", ")+", or one of your own", func(name string) error {
		all := append(themes.All(themes.Dir()), "auto")
		if !slices.Contains(all, name) {
			return fmt.Errorf("there is no such theme: there are %s", strings.Join(all, ", "))
		}
		flagged["STEPBOX_THEME"] = name
		return nil
	})
	if cmd.Flags().Lookup("plain") != nil {
		return // replay's is that it prints
	}
	cmd.Flags().BoolFunc("plain", "no boxes, one pane at a time, words instead of signs: for screen readers", func(on string) error {
		b, err := strconv.ParseBool(on)
		flagged["STEPBOX_PLAIN"] = map[bool]string{true: "on", false: "off"}[b]
		return err
	})
}

// screens are the commands that show one on a terminal, and there what is wrong in the settings.
var screens = []string{"stepbox", "run", "resume", "fork", "attach", "replay", "demo"}

// warned says on standard error what is wrong in the settings, unless a screen or the
// command itself does.
func warned(cmd *cobra.Command) {
	switch {
	case slices.Contains(screens, cmd.Name()) && cli.Terminal():
	case cmd.Name() == "config" || cmd.HasParent() && cmd.Parent().Name() == "config":
	case slices.Contains([]string{"help", "completion", "version"}, cmd.Name()) || cmd.Hidden:
	default:
		cli.Warnings(cmd.ErrOrStderr(), settings())
	}
}
