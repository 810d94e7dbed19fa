package command

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"stepbox/runner"
	"stepbox/session/api"
	"stepbox/session/launch"
	"stepbox/session/outfit"
	"stepbox/ui/cli"
	"stepbox/ui/config"
)

// runFlags are what the run command can be told.
type runFlags struct {
	mode, name, workspace, memory, disk string
	hosts, dirs, ports                  []string
	credentials, vars                   []string
	tokens, home                        string
	noCaches                            bool
	unasked                             *bool // the agent's own questions are off; nil: nothing was said
	detach, json                        bool
	asking                              cli.AskFlags
	cpusGiven                           bool                   // cpus was set: its zero value means no limit
	chosen                              func(flag string) bool // whether a limit was, by its flag or the settings; nil: none was
	cpus                                float64
	pids                                int64
	wall                                time.Duration
}

// What an agent may use unless it is said otherwise: enough for a build, not
// enough to take a laptop down.
const (
	defaultMemory = "4G"
	defaultDisk   = "20G"
	defaultPids   = 2048
)

func runCommand() *cobra.Command {
	var f runFlags
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
			if f.json && f.detach {
				return fmt.Errorf("%w: --json tells what happens and --detach doesn't stay: use stepbox log --follow --json on what is detached", cli.ErrUsage)
			}
			f.under(cmd)
			return runAgent(cmd, f, args)
		},
	}
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		inForce(cmd)
		cmd.Parent().HelpFunc()(cmd, args)
	})
	cmd.Flags().SetInterspersed(false) // the first word that isn't a flag is the agent
	cmd.Flags().StringVar(&f.mode, "mode", string(api.ModePolicy), "step: hold every action; policy: follow the rules; watch: only record")
	cmd.Flags().StringVar(&f.name, "name", "", "the session's name (the folder's)")
	cmd.Flags().StringVar(&f.home, "home", string(api.HomeProfile), "the agent's home: profile: shared by the agent's sessions; session: a view of that, kept apart; fresh: empty")
	cmd.Flags().StringVarP(&f.workspace, "workspace", "w", "", "the project folder (this one)")
	cmd.Flags().StringArrayVar(&f.hosts, "allow-host", nil, "NAME[:PORT] that may be reached; may be given more than once")
	cmd.Flags().StringArrayVar(&f.dirs, "add-dir", nil, "a folder that the agent has besides the project, at its own path; with :ro it can't be written, else what is written stays in the session, without review; may be given more than once")
	cmd.Flags().StringArrayVar(&f.ports, "publish", nil, "[HOSTPORT:]PORT of a server of the agent's that this machine reaches, as http://localhost:HOSTPORT; may be given more than once")
	cmd.Flags().BoolVar(&f.noCaches, "no-caches", false, "begin without your build caches")
	cmd.Flags().Func("own-questions", "`on` or off; off starts an agent with the argument that turns off its own questions and sandbox: Stepbox's stay", func(v string) error {
		off := v == "off"
		if f.unasked = &off; !off && v != "on" {
			return errors.New("use on or off")
		}
		return nil
	})
	cmd.Flags().StringArrayVar(&f.credentials, "credential", nil, "service (anthropic, openai, github, …) whose key is taken from your environment and put into requests on their way out: the agent never has it; may be given more than once")
	cmd.Flags().StringVar(&f.tokens, "tokens", "", "tokens of models that may be spent before you are asked, like 2M (no limit); counted where a credential is put in")
	envFlag(cmd, &f.vars)
	cmd.Flags().BoolVarP(&f.detach, "detach", "d", false, "start it and print its name; stepbox attach joins it")
	cmd.Flags().StringVar(&f.memory, "memory", defaultMemory, "most memory the agent may use; 0: no limit")
	cmd.Flags().Float64Var(&f.cpus, "cpus", 0, "most processors' time it may use, like 1.5 (no limit)")
	cmd.Flags().Int64Var(&f.pids, "pids", defaultPids, "most processes and threads; 0: no limit")
	cmd.Flags().StringVar(&f.disk, "disk", defaultDisk, "most that it may write before it is paused; 0: no limit but the disk's")
	cmd.Flags().DurationVar(&f.wall, "wall-time", 0, "end the session after this long; 0: never")
	f.asking.Add(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print what happens as JSON lines, the agent's output on standard error; questions are answered by approve, deny and allow, or the API")
	return cmd
}

// envFlag gives a command the flag for variables of the agent.
func envFlag(cmd *cobra.Command, to *[]string) {
	cmd.Flags().StringArrayVarP(to, "env", "e", nil, "NAME, which passes from your environment, or NAME=VALUE; may be given more than once. What looks like a secret isn't recorded")
}

// give gives a session variables, first those of the settings, which needn't be set.
func give(r *launch.Request, usual, vars []string) error {
	if err := launch.Given(vars, os.Environ()); err != nil {
		return fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	for _, v := range launch.Beware(vars) {
		fmt.Fprintln(os.Stderr, "stepbox: beware:", v)
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

// limits checks what the agent may use. Comparisons are written so that a
// value that isn't a number fails them.
func (f runFlags) limits() (runner.Limits, error) {
	memory, err := cli.ParseSize(f.memory)
	switch {
	case err != nil:
		return runner.Limits{}, err
	case memory != 0 && memory < config.LeastMemory:
		return runner.Limits{}, fmt.Errorf("%w: --memory %s is too little for a sandbox: use at least %dM, or 0 for no limit", cli.ErrUsage, api.Escape(f.memory), config.LeastMemory>>20)
	case f.cpusGiven && !(f.cpus >= config.LeastCPUs && f.cpus <= config.MostCPUs):
		return runner.Limits{}, fmt.Errorf("%w: --cpus %g is no share of processors: use a number from %g on, like 1.5, or leave it out for no limit", cli.ErrUsage, f.cpus, config.LeastCPUs)
	case f.pids < 0:
		return runner.Limits{}, fmt.Errorf("%w: --pids %d: use at least 1, or 0 for no limit", cli.ErrUsage, f.pids)
	case f.wall < 0:
		return runner.Limits{}, fmt.Errorf("%w: --wall-time %s: use a time like 30m, or 0 for no limit", cli.ErrUsage, f.wall)
	}
	return runner.Limits{Memory: memory, CPUs: f.cpus, Pids: f.pids}, nil
}

// request is what the supervisor is asked for.
func (f runFlags) request(args []string) (launch.Request, error) {
	r := launch.Request{Name: f.name, Argv: args, Mode: api.Mode(f.mode), AllowHosts: f.hosts, Credentials: f.credentials, Tokens: f.tokens, WallTime: f.wall, HomeKind: api.HomeKind(f.home)}
	var err error
	if r.Asking, err = f.asking.Asking(); err != nil {
		return r, err
	}
	if !r.Mode.Valid() {
		return r, cli.NoMode(r.Mode)
	}
	if f.home != "" && !r.HomeKind.Valid() {
		return r, fmt.Errorf("%w: --home %s: use profile, session or fresh", cli.ErrUsage, api.Escape(f.home))
	}
	if r.Limits, err = f.limits(); err != nil {
		return r, err
	}
	if r.Disk, err = cli.ParseSize(f.disk); err != nil {
		return r, err
	}
	if err := give(&r, settings().Env, f.vars); err != nil {
		return r, err
	}
	r.Usual = slices.DeleteFunc([]string{"memory", "cpus", "pids", "disk", "wall-time"}, func(name string) bool { return f.chosen != nil && f.chosen(name) })
	for _, h := range f.hosts {
		if err := launch.CheckHost(h); err != nil {
			return r, fmt.Errorf("%w: --allow-host: %w", cli.ErrUsage, err)
		}
	}
	if err := launch.CheckCredentials(f.credentials, f.tokens); err != nil {
		return r, fmt.Errorf("%w: %w", cli.ErrUsage, err)
	}
	if err := checkName(f.name); err != nil {
		return r, err
	}
	if len(r.Argv) == 0 {
		r.Argv = []string{cmp.Or(os.Getenv("SHELL"), "/bin/sh")}
	}
	workspace, err := filepath.Abs(f.workspace)
	if err != nil {
		return r, fmt.Errorf("cannot tell the project folder: %w", err)
	}
	if real, err := filepath.EvalSymlinks(workspace); err == nil {
		workspace = real // else the supervisor says what is wrong with it
	}
	r.Workspace = []byte(workspace)
	if err := surround(&r, cli.Terminal() && !f.detach && !f.json, f.detach); err != nil {
		return r, err
	}
	r.Extras.NoCaches, r.Extras.Unasked = f.noCaches, f.unasked
	for _, text := range f.ports {
		p, err := api.ParsePort(text, false)
		if err != nil {
			return r, fmt.Errorf("%w: --publish: %w", cli.ErrUsage, err)
		}
		r.Extras.Publish = append(r.Extras.Publish, p)
	}
	for _, text := range f.dirs {
		d, err := outfit.ParseDir(text, r.Home)
		if err != nil {
			return r, fmt.Errorf("%w: --add-dir: %w", cli.ErrUsage, err)
		}
		r.Extras.Dirs = append(r.Extras.Dirs, d)
	}
	return r, nil
}

func runAgent(cmd *cobra.Command, f runFlags, args []string) error {
	ctx := cmd.Context()
	req, err := f.request(args)
	if err != nil {
		return err
	}
	s, err := start(ctx, req)
	if err != nil {
		return err
	}
	return join(cmd, s, f.detach, f.json)
}
