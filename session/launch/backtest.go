package launch

import (
	"errors"
	"os"

	"stepbox/policy"
	"stepbox/policy/source"
	"stepbox/session/backtest"
	"stepbox/session/ledger"
	"stepbox/session/rules"
)

// profilesOf are the built-in profiles and the person's own. What can't be read of these is
// told where a session starts.
func profilesOf(home string) *policy.Profiles {
	ps, _ := rules.LookProfiles(rules.Profiles(home, os.Getenv("XDG_CONFIG_HOME")))
	return ps
}

// backtester judges recorded sessions by the rules of the person that this process is of.
func backtester(h *ledger.History, data, home string, profiles func() *policy.Profiles) *backtest.Backtester {
	return &backtest.Backtester{
		Profiles: profiles,
		History:  h, Home: home,
		Layers: func(folder string) (backtest.Layers, error) {
			now := rules.Look(policiesOf(home, os.Getenv("XDG_CONFIG_HOME"), data, folder))
			return backtest.Layers{User: now.User.Layer, Project: now.Project.Layer}, errors.Join(now.User.Problem, now.Project.Problem)
		},
		Load: func(name, file string) (policy.Layer, error) { return policy.Load(name, file, source.Any) },
	}
}
