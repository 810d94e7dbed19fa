package scratch

import (
	"errors"
	"io/fs"
	"path/filepath"

	"stepbox/policy"
	"stepbox/policy/source"
	"stepbox/session/api"
)

// ConfigName is the file of a project's folder that says how Stepbox treats it.
const ConfigName = ".stepbox.yaml"

// Configured reads the checks that a project wants: those in the person's own
// folder, which no session writes, never those that an agent would like. It is
// no error that there are none.
func Configured(workspace string) ([]string, error) {
	file := filepath.Join(workspace, ConfigName)
	l, err := policy.Load("project", file, source.Project(workspace))
	if errors.Is(err, fs.ErrNotExist) && len(l.Sources) == 1 {
		return nil, nil
	}
	if err != nil {
		return nil, errors.New(api.Escape(err.Error()))
	}
	var commands []string
	for _, c := range l.Checks {
		commands = append(commands, c.Command)
	}
	return commands, nil
}
