package cli

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/config"
)

// RunFlags are what the run command can be told.
type RunFlags struct {
	Mode, Name, Workspace, Home string
	Hosts, Dirs, Ports          []string
	Credentials, Vars           []string
	Tokens, Memory, Disk        string
	CPUs                        float64
	Pids                        int64
	Wall                        time.Duration
	NoCaches                    bool
	Unasked                     *bool // the agent's own questions are off; nil: nothing was said
	Detach, JSON                bool
	Asking                      AskFlags
	Usual                       []string // limits that neither a flag nor the settings say

	cpusGiven bool // CPUs was said: its zero value means no limit
}

// What an agent may use unless it is said otherwise: enough for a build, not
// enough to take a laptop down.
const (
	defaultMemory = "4G"
	DefaultDisk   = "20G"
	defaultPids   = 2048
)

func (f *RunFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SetInterspersed(false) // the first word that isn't a flag is the agent
	flags.StringVar(&f.Mode, "mode", string(api.ModePolicy), "step: hold every action; policy: follow the rules; watch: only record")
	flags.StringVar(&f.Name, "name", "", "the session's name (the folder's)")
	flags.StringVar(&f.Home, "home", string(api.HomeProfile), "the agent's home: profile: shared by the agent's sessions; session: a view of that, kept apart; fresh: empty")
	flags.StringVarP(&f.Workspace, "workspace", "w", "", "the project folder (this one)")
	flags.StringArrayVar(&f.Hosts, "allow-host", nil, "NAME[:PORT] that may be reached; may be given more than once")
	flags.StringArrayVar(&f.Dirs, "add-dir", nil, "a folder that the agent has besides the project, at its own path; with :ro it can't be written, else what is written stays in the session, without review; may be given more than once")
	flags.StringArrayVar(&f.Ports, "publish", nil, "[HOSTPORT:]PORT of a server of the agent's that this machine reaches, as http://localhost:HOSTPORT; may be given more than once")
	flags.BoolVar(&f.NoCaches, "no-caches", false, "begin without your build caches")
	flags.Func("own-questions", "`on` or off; off starts an agent with the argument that turns off its own questions and sandbox: Stepbox's stay", func(v string) error {
		off := v == "off"
		if f.Unasked = &off; !off && v != "on" {
			return errors.New("use on or off")
		}
		return nil
	})
	flags.StringArrayVar(&f.Credentials, "credential", nil, "service (anthropic, openai, github, …) whose key is taken from your environment and put into requests on their way out: the agent never has it; may be given more than once")
	flags.StringVar(&f.Tokens, "tokens", "", "tokens of models that may be spent before you are asked, like 2M (no limit); counted where a credential is put in")
	EnvFlag(cmd, &f.Vars)
	flags.BoolVarP(&f.Detach, "detach", "d", false, "start it and print its name; stepbox attach joins it")
	flags.StringVar(&f.Memory, "memory", defaultMemory, "most memory the agent may use; 0: no limit")
	flags.Float64Var(&f.CPUs, "cpus", 0, "most processors' time it may use, like 1.5 (no limit)")
	flags.Int64Var(&f.Pids, "pids", defaultPids, "most processes and threads; 0: no limit")
	flags.StringVar(&f.Disk, "disk", DefaultDisk, "most that it may write before it is paused; 0: no limit but the disk's")
	flags.DurationVar(&f.Wall, "wall-time", 0, "end the session after this long; 0: never")
	f.Asking.Add(cmd)
	flags.BoolVar(&f.JSON, "json", false, "print what happens as JSON lines, the agent's output on standard error; questions are answered by approve, deny and allow, or the API")
}

// EnvFlag gives a command the flag for variables of the agent.
func EnvFlag(cmd *cobra.Command, to *[]string) {
	cmd.Flags().StringArrayVarP(to, "env", "e", nil, "NAME, which passes from your environment, or NAME=VALUE; may be given more than once. What looks like a secret isn't recorded")
}

// Limits checks what the agent may use, and are its bytes. Comparisons are written so that a
// value that isn't a number fails them.
func (f *RunFlags) Limits() (memory, disk int64, err error) {
	memory, err = ParseSize(f.Memory)
	switch {
	case err != nil:
	case memory != 0 && memory < config.LeastMemory:
		err = usage("--memory %s is too little for a sandbox: use at least %dM, or 0 for no limit", api.Escape(f.Memory), config.LeastMemory>>20)
	case f.cpusGiven && !(f.CPUs >= config.LeastCPUs && f.CPUs <= config.MostCPUs):
		err = usage("--cpus %g is no share of processors: use a number from %g on, like 1.5, or leave it out for no limit", f.CPUs, config.LeastCPUs)
	case f.Pids < 0:
		err = usage("--pids %d: use at least 1, or 0 for no limit", f.Pids)
	case f.Wall < 0:
		err = usage("--wall-time %s: use a time like 30m, or 0 for no limit", f.Wall)
	default:
		disk, err = ParseSize(f.Disk)
	}
	return memory, disk, err
}

// RunSettings are what a new session has by a person's settings.
func RunSettings(c *config.Config) RunFlags {
	var f RunFlags
	cmd := &cobra.Command{}
	f.Add(cmd)
	f.Under(cmd, c)
	return f
}

// settings are those that flags of the same names go over, where they are limits without that.
var settings = [...]string{"mode", "home", "own-questions", "on-ask", "ask-timeout", "limits.memory", "limits.cpus", "limits.pids", "limits.disk", "limits.wall-time"}

// Under puts the person's settings where no flag says otherwise.
func (f *RunFlags) Under(cmd *cobra.Command, c *config.Config) {
	given := cmd.Flags().Changed
	for _, name := range settings {
		flag, limit := strings.CutPrefix(name, "limits.")
		switch {
		case given(flag):
		case c.Said(name):
			_ = cmd.Flags().Lookup(flag).Value.Set(c.Value(name)) // what isn't right doesn't hold
		case limit:
			f.Usual = append(f.Usual, flag)
		}
	}
	f.cpusGiven = given("cpus") || f.CPUs != 0
	f.Dirs = slices.Concat(c.Dirs, f.Dirs)
	f.NoCaches = f.NoCaches || c.NoCaches && !given("no-caches")
	f.Asking.Said = c.Said("on-ask") || c.Said("ask-timeout") || given("on-ask") || given("ask-timeout")
	counts := "ask-timeout"
	if f.Asking.On == string(api.OnAskDeny) {
		counts = "on-ask"
	}
	if !given(counts) {
		f.Asking.By = c.By(counts)
	}
}

// InForce has a command's help show the person's settings where they say something else
// than what is usual.
func InForce(cmd *cobra.Command, c *config.Config) {
	for _, name := range settings {
		if flag := cmd.Flags().Lookup(strings.TrimPrefix(name, "limits.")); c.Said(name) {
			flag.Usage = strings.TrimSuffix(flag.Usage, " (no limit)") + "; from your settings"
			flag.DefValue = c.Value(name)
		}
	}
}

// AskFlags say what becomes of a session's questions.
type AskFlags struct {
	On      string
	Timeout time.Duration
	Said    bool   // one of them was given, or the settings have one
	By      string // where the settings say what counts of it; "": a flag does, or nothing
}

func (f *AskFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.On, "on-ask", string(api.OnAskWait), "what asks: wait for an answer, or deny it at once, whoever is attached")
	cmd.Flags().DurationVar(&f.Timeout, "ask-timeout", 0, "deny what nobody answered for this long; 0: never")
}

// Given notes whether a command was given one of them.
func (f *AskFlags) Given(cmd *cobra.Command) {
	f.Said = cmd.Flags().Changed("on-ask") || cmd.Flags().Changed("ask-timeout")
}

// Asking is what they say; the zero value where none was given.
func (f AskFlags) Asking() (api.Asking, error) {
	if !f.Said {
		return api.Asking{}, nil
	}
	a := api.Asking{On: api.OnAsk(f.On), Timeout: f.Timeout, By: f.By}
	switch {
	case a.Timeout < 0:
		return a, usage("--ask-timeout: %s", a.Fault())
	case f.On == "" || a.Fault() != "":
		return a, usage("--on-ask: %s", cmp.Or(a.Fault(), "use wait or deny"))
	}
	return a, nil
}
