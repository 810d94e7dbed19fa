package outfit

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Git is the person's own git, to be run on a repository of theirs in dir, which no
// agent can write: without hooks, without asking anybody, and without a network. It
// isn't taken from the project, where an agent's work goes.
func Git(ctx context.Context, project, dir, home string, env []string, args ...string) (*exec.Cmd, error) {
	program := Program("git", env)
	path, err := filepath.EvalSymlinks(program)
	if program == "" || err != nil {
		return nil, errors.New("there is no git on this machine")
	}
	if in, err := filepath.Rel(project, path); err == nil && filepath.IsLocal(in) {
		return nil, fmt.Errorf("the git that PATH has first, %q, is in the project, where the agent's work goes", program)
	}
	cmd := exec.CommandContext(ctx, program, append([]string{
		"-C", dir, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "fetch.fsckObjects=true", "-c", "fetch.writeCommitGraph=false",
		"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "protocol.allow=never", "-c", "protocol.file.allow=always",
	}, args...)...)
	cmd.Dir = "/"
	cmd.Env = []string{"LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir), "HOME=" + home}
	for _, v := range env {
		if strings.HasPrefix(v, "PATH=") || strings.HasPrefix(v, "XDG_CONFIG_HOME=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd, nil
}
