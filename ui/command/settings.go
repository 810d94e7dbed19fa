package command

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"stepbox/session/api"
	"stepbox/ui/cli"
	"stepbox/ui/config"
	"stepbox/ui/keys"
)

// settings are the person's, as they were when the program first asked.
var settings = sync.OnceValue(func() *config.Config {
	c := config.Load(os.Getenv)
	keys.Use(c.Keys)
	return c
})

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

// runSettings are a new session's without flags.
func runSettings() runFlags {
	c := settings()
	f := runFlags{mode: string(c.Mode), home: string(c.Home), memory: c.Memory, cpus: c.CPUs, cpusGiven: c.CPUs != 0, pids: c.Pids, disk: c.Disk, wall: c.WallTime, dirs: slices.Clone(c.Dirs), noCaches: c.NoCaches}
	if c.Said("own-questions") {
		f.unasked = &c.Unasked
	}
	f.asking = cli.AskFlags{On: string(c.Asking.On), Timeout: c.Asking.Timeout, Said: c.Said("on-ask") || c.Said("ask-timeout")}
	f.asking.By = askedBy(f, func(string) bool { return false })
	f.chosen = func(limit string) bool { return c.Said("limits." + limit) }
	return f
}

// askedBy is where the settings say what counts of what becomes of questions, if no flag does.
func askedBy(f runFlags, given func(flag string) bool) string {
	what := "ask-timeout"
	if f.asking.On == string(api.OnAskDeny) {
		what = "on-ask"
	}
	if given(what) {
		return ""
	}
	return settings().By(what)
}

// under puts the person's settings where no flag says otherwise.
func (f *runFlags) under(cmd *cobra.Command) {
	s := runSettings()
	given := cmd.Flags().Changed
	for flag, to := range map[string][2]*string{"mode": {&f.mode, &s.mode}, "home": {&f.home, &s.home}, "memory": {&f.memory, &s.memory}, "disk": {&f.disk, &s.disk}, "on-ask": {&f.asking.On, &s.asking.On}} {
		if !given(flag) {
			*to[0] = *to[1]
		}
	}
	if f.cpusGiven = given("cpus"); !f.cpusGiven {
		f.cpus, f.cpusGiven = s.cpus, s.cpusGiven
	}
	if !given("pids") {
		f.pids = s.pids
	}
	if !given("wall-time") {
		f.wall = s.wall
	}
	f.dirs = append(s.dirs, f.dirs...)
	f.noCaches = f.noCaches || s.noCaches && !given("no-caches")
	if !given("own-questions") {
		f.unasked = s.unasked
	}
	if !given("ask-timeout") {
		f.asking.Timeout = s.asking.Timeout
	}
	f.asking.By = askedBy(*f, given)
	f.chosen = func(limit string) bool { return given(limit) || s.chosen(limit) }
	f.asking.Said = s.asking.Said || given("on-ask") || given("ask-timeout")
}

// inForce has a command's help show the person's settings where they say something else
// than what is usual.
func inForce(cmd *cobra.Command) {
	f := runSettings()
	for name, value := range map[string]string{
		"mode": f.mode, "home": f.home, "limits.memory": f.memory, "limits.cpus": fmt.Sprint(f.cpus), "limits.pids": fmt.Sprint(f.pids), "limits.disk": f.disk, "limits.wall-time": f.wall.String(),
		"on-ask": f.asking.On, "ask-timeout": f.asking.Timeout.String(),
	} {
		if flag := cmd.Flags().Lookup(strings.TrimPrefix(name, "limits.")); settings().Said(name) {
			flag.Usage = strings.TrimSuffix(flag.Usage, " (no limit)") + "; from your settings"
			flag.DefValue = value
		}
	}
}
