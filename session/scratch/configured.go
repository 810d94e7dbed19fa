package scratch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"golang.org/x/sys/unix"

	"stepbox/session/api"
)

// ConfigName is the file of a project's folder that says how Stepbox treats it.
const ConfigName = ".stepbox.yaml"

// Bounds of what is configured.
const (
	maxConfig  = 64 << 10 // bytes of the file
	maxChecks  = 100
	maxCommand = 4 << 10 // bytes
)

// Configured reads the checks that a project wants: those in the person's own
// folder, which no session writes, never those that an agent would like. It is
// no error that there are none.
func Configured(workspace string) ([]string, error) {
	file := filepath.Join(workspace, ConfigName)
	bad := func(err error) ([]string, error) {
		return nil, fmt.Errorf("cannot read the project's checks from %q: %w", file, err)
	}
	data, err := readRegular(file, maxConfig)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case errors.Is(err, unix.ELOOP):
		return bad(errors.New("it is a symbolic link, which isn't followed; put the file itself there"))
	case err != nil:
		return bad(err)
	}
	var config struct {
		Checks []string `yaml:"checks"`
	}
	if err := yaml.UnmarshalWithOptions(data, &config, yaml.Strict()); err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil && at.GetToken().Position != nil {
			p := at.GetToken().Position
			err = fmt.Errorf("line %d, column %d: %s", p.Line, p.Column, api.Escape(at.GetMessage()))
		}
		return bad(err)
	}
	if len(config.Checks) > maxChecks {
		return bad(fmt.Errorf("it has %d checks; %d is the most", len(config.Checks), maxChecks))
	}
	for i, c := range config.Checks {
		switch {
		case strings.TrimSpace(c) == "":
			return bad(fmt.Errorf("check %d is empty", i+1))
		case len(c) > maxCommand:
			return bad(fmt.Errorf("check %d is longer than %d bytes; put it into a script", i+1, maxCommand))
		case strings.ContainsRune(c, 0):
			return bad(fmt.Errorf("check %d has a zero byte", i+1))
		}
	}
	return config.Checks, nil
}

// readRegular reads a file that is one, isn't reached through a link of its own
// name, and has at most so many bytes.
func readRegular(name string, most int64) ([]byte, error) {
	f, err := openRegular(name, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = tooLarge(most)
	}
	return data, err
}

// openRegular opens such a file.
func openRegular(name string, most int64) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("it isn't a regular file")
	case info.Size() > most:
		err = tooLarge(most)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func tooLarge(most int64) error { return fmt.Errorf("it has more than %d bytes", most) }
