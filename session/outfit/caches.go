package outfit

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"stepbox/runner"
	"stepbox/runner/overlay/manifest"
)

// kept are where a home keeps what builds have fetched, which can't be fetched
// without a network, and what they have made, which takes long to make again. The
// second is the variable that says where else it is, if the person set it. None of
// them has what a person signs in with: npm's is .npmrc, Cargo's is .cargo/credentials.toml.
var kept = [][2]string{
	{goBuilds, "GOCACHE"}, {"go/pkg/mod", "GOMODCACHE"}, {".cargo/registry"}, {".cargo/git"}, {".m2/repository"}, {".gradle/caches"},
	{".npm/_cacache"}, {".cache/pip"}, {".cache/uv", "UV_CACHE_DIR"}, {".cache/ccache", "CCACHE_DIR"}, {".cache/golangci-lint", "GOLANGCI_LINT_CACHE"},
	{".cache/yarn"}, {".yarn/berry/cache"}, {".local/share/pnpm/store"}, {".cache/pnpm"}, {".bun/install/cache"}, {".cache/deno", "DENO_DIR"},
}

const goBuilds = ".cache/go-build"

// caches are those that are there and aren't reached through links, each with a
// folder of the sandbox's own for what is written to it. A build trusts what is in its
// cache: none is shown that is where an agent, or an apply, writes; nor what holds the
// whole home, or its secrets, whatever a variable says. Have is what is shown already.
func caches(n Needs, have []runner.Bind) (out []runner.Bind, err error) {
	data, err := filepath.EvalSymlinks(n.DataDir)
	if err != nil {
		return nil, fmt.Errorf("cannot prepare the build caches: %w", err)
	}
	uppers := filepath.Join(n.StateDir, "caches")
	private := append(Secret(n.Home), n.Workspace, data)
	for i, k := range kept {
		target := filepath.Join(n.Home, k[0])
		source := target
		if value := Variable(n.Env, k[1]); k[1] != "" && filepath.IsAbs(value) {
			source = filepath.Clean(value)
		}
		real, err := filepath.EvalSymlinks(source)
		if info, serr := os.Stat(source); err != nil || serr != nil || real != source || !info.IsDir() {
			continue
		}
		if manifest.Within(n.Home, source) || slices.ContainsFunc(private, func(p string) bool { return manifest.Within(p, source) || manifest.Within(source, p) }) ||
			slices.ContainsFunc(have, func(b runner.Bind) bool { return b.Target == target }) {
			continue
		}
		b := runner.Bind{Source: source, Target: target, Upper: filepath.Join(uppers, strconv.Itoa(i)), Spare: true}
		if err = os.MkdirAll(uppers, 0o700); err == nil && k[0] == goBuilds {
			err = untrimmed(b.Upper)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot prepare the build caches: %w", err)
		}
		out = append(out, b)
	}
	return out, nil
}

// untrimmed has Go delete nothing that is old: it does once a day, by a file that says
// when it did last.
func untrimmed(upper string) error {
	if err := os.Mkdir(upper, 0o700); err != nil {
		if os.IsExist(err) {
			return nil // of a session that goes on
		}
		return err
	}
	return os.WriteFile(filepath.Join(upper, "trim.txt"), strconv.AppendInt(nil, time.Now().Unix(), 10), 0o600)
}

func targets(binds []runner.Bind) (out []string) {
	for _, b := range binds {
		out = append(out, b.Target)
	}
	return out
}
