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

// backtester judges recorded sessions by the rules of the person that this process is of.
func backtester(h *ledger.History, data, home string) *backtest.Backtester {
	files := func(folder string) rules.Config {
		return policiesOf(home, os.Getenv("XDG_CONFIG_HOME"), data, folder)
	}
	return &backtest.Backtester{
		History: h, Home: home,
		Layers: func(folder string) (backtest.Layers, error) {
			now := rules.Look(files(folder))
			return backtest.Layers{User: now.User.Layer, Project: now.Project.Layer}, errors.Join(now.User.Problem, now.Project.Problem)
		},
		Files: files,
		Load:  func(name, file string) (policy.Layer, error) { return policy.Load(name, file, source.Any) },
	}
}
