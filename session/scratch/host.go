package scratch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"stepbox/policy/git"
	"stepbox/session/api"
	"stepbox/session/outfit"
)

// call is what the person's git is given beside its arguments.
type call struct {
	in  io.Reader
	env []string
}

// real runs the person's git on a repository that the agent can't write: nothing
// of a session goes below a .git but what this fetches.
func (s *Scratch) real(ctx context.Context, r *repository, with call, args ...string) ([]byte, error) {
	dir := s.at(r)
	if !s.straight(r) {
		return nil, fmt.Errorf("its commits can't be fetched: the project's git folder %s is gone, or is behind a link", api.Escape(r.dir))
	}
	limited, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	if filepath.IsAbs(r.dir) { // HEAD is the working tree's
		_, dir = git.Above(s.cfg.Workspace)
	}
	cmd, err := outfit.Git(limited, s.cfg.Workspace, dir, s.cfg.Home, s.cfg.Env, args...)
	if err != nil {
		return nil, err
	}
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = with.in, &out, &said
	cmd.Env = append(cmd.Env, with.env...)
	if err := cmd.Run(); err != nil {
		if strings.Contains(said.String(), "unknown option") {
			return nil, errors.New("this machine's git is too old to fetch them safely: 2.31 or a newer one is needed")
		}
		return nil, fmt.Errorf("git %s: %s (%w)", args[0], strings.TrimSpace(api.Trim(said.String(), 500)), err)
	}
	return out.Bytes(), nil
}
