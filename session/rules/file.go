package rules

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/policy/source"
)

// content is what a policy's file says.
type content struct {
	path string // where it really is, links followed where they may be
	own  bool   // it is the person's, not a project's
	data []byte // nil: there is no such file
}

func (c *content) there() bool { return c.data != nil }

// reader reads a policy's file and those that it includes. A project's isn't read through
// a link, since who wrote the project may have chosen where that leads.
func reader(path string, own bool) func(file string) ([]byte, error) {
	if own {
		return source.Person
	}
	return source.Project(filepath.Dir(path))
}

// read reads a policy's file. One that isn't there is no error.
func read(path string, own bool) (content, error) {
	c := content{path: path, own: own}
	if path == "" {
		return c, nil
	}
	if own {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			c.path = real
		}
	}
	data, err := reader(c.path, own)(c.path)
	if to, _ := os.Readlink(c.path); own && errors.Is(err, fs.ErrNotExist) && to != "" {
		err = errors.New("it is a link that leads nowhere")
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return c, nil
	case err != nil:
		return c, policy.Problems{{File: c.path, Err: err}}
	}
	c.data = data
	return c, nil
}

// layer is what the policy says with other data, which may be its own, and with what it
// includes.
func (c *content) layer(name string, data []byte) (policy.Layer, error) {
	included := reader(c.path, c.own)
	l, err := policy.Load(name, c.path, func(file string) ([]byte, error) {
		if file == c.path {
			return data, nil
		}
		return included(file)
	})
	if err == nil && !c.own && len(l.Credentials) > 0 {
		// Who wrote the project would choose where the person's secrets go, and what is run to get them.
		at := l.Credentials[0].Where
		err = policy.Problems{{File: at.File, Line: at.Line, Column: 1, Err: errors.New("a project can't name credentials, trusted or not: they stand in your own policy")}}
		l = policy.Layer{Name: l.Name, File: l.File, Sources: l.Sources, Sum: l.Sum}
	}
	return l, err
}
