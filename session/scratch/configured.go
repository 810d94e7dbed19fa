package scratch

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/policy/git"
	"stepbox/session/api"
)

// ConfigName is the file of a project's folder that says how Stepbox treats it.
const ConfigName = ".stepbox.yaml"

// Bounds of what is configured.
const (
	maxConfig = 64 << 10 // bytes of the file
	maxChecks = 100
)

// Configured reads the checks that a project wants: those in the person's own
// folder, which no session writes, never those that an agent would like. It is
// no error that there are none.
func Configured(workspace string) ([]string, error) {
	file := filepath.Join(workspace, ConfigName)
	data, err := git.ReadFile(file, maxConfig)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, unix.ELOOP):
		return nil, fmt.Errorf("%w: it is a symbolic link, which isn't followed; put the file itself there", err)
	case err != nil:
		return nil, err
	}
	var config struct {
		Checks []string `yaml:"checks"`
	}
	if err := policy.Decode(file, data, &config); err != nil {
		return nil, errors.New(api.Escape(err.Error()))
	}
	bad := func(c string) bool { return strings.TrimSpace(c) == "" || strings.ContainsRune(c, 0) }
	if len(config.Checks) > maxChecks || slices.ContainsFunc(config.Checks, bad) {
		return nil, fmt.Errorf("cannot read %q: checks are at most %d commands, none of them empty", file, maxChecks)
	}
	return config.Checks, nil
}
