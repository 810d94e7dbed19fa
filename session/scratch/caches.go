package scratch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"stepbox/runner"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/outfit"
)

// kept are where a home keeps what builds have fetched, which can't be fetched
// without a network, and what they have made, which takes long to make again. The
// second is the variable that says where else it is, if the person set it.
var kept = [][2]string{
	{goBuilds, "GOCACHE"}, {"go/pkg/mod", "GOMODCACHE"}, {".cargo/registry"}, {".cargo/git"}, {".m2/repository"}, {".gradle/caches"},
	{".npm/_cacache"}, {".cache/pip"}, {".cache/uv", "UV_CACHE_DIR"}, {".cache/ccache", "CCACHE_DIR"}, {".cache/golangci-lint", "GOLANGCI_LINT_CACHE"},
}

const goBuilds = ".cache/go-build"

// caches are those that are there and aren't reached through links, each with a
// folder below uppers for what is written to it. A build trusts what is in its
// cache: none is shown that is where an agent, or an apply, writes; nor what holds the
// whole home, or its secrets, whatever a variable says.
func (s *Scratch) caches(uppers string, have []runner.Bind) (out []runner.Bind, err error) {
	data, err := filepath.EvalSymlinks(s.cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare the build caches: %w", err)
	}
	private := append(outfit.Secret(s.cfg.Home), s.cfg.Workspace, data)
	for i, k := range kept {
		target := filepath.Join(s.cfg.Home, k[0])
		source := target
		if value := outfit.Variable(s.cfg.Env, k[1]); k[1] != "" && filepath.IsAbs(value) {
			source = filepath.Clean(value)
		}
		real, err := filepath.EvalSymlinks(source)
		if info, serr := os.Stat(source); err != nil || serr != nil || real != source || !info.IsDir() {
			continue
		}
		if manifest.Within(s.cfg.Home, source) || slices.ContainsFunc(private, func(p string) bool { return manifest.Within(p, source) || manifest.Within(source, p) }) ||
			slices.ContainsFunc(have, func(b runner.Bind) bool { return b.Target == target }) {
			continue
		}
		b := runner.Bind{Source: source, Target: target, Upper: filepath.Join(uppers, strconv.Itoa(i))}
		if k[0] == goBuilds { // go deletes what is old once a day, by a file that says when it did: not here
			err := os.MkdirAll(b.Upper, 0o700)
			if err == nil {
				err = os.WriteFile(filepath.Join(b.Upper, "trim.txt"), strconv.AppendInt(nil, time.Now().Unix(), 10), 0o600)
			}
			if err != nil {
				return nil, fmt.Errorf("cannot prepare the build cache: %w", err)
			}
		}
		out = append(out, b)
	}
	return out, nil
}
