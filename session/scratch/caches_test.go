package scratch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A check has the person's build caches, and nothing that it does to them is seen
// by the person or by another check. What an agent could have put somewhere is no
// cache, and git's sandboxes have none.
func TestChecksHaveBuildCaches(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"cache/own": "an agent's"})
	elsewhere := filepath.Join(filepath.Dir(r.project), "elsewhere")
	for path, text := range map[string]string{
		filepath.Join(r.cfg.Home, ".cache/go-build", "00/entry"): "built", filepath.Join(r.cfg.Home, ".cache/go-build", "trim.txt"): "1",
		filepath.Join(elsewhere, "module"): "fetched", filepath.Join(r.cfg.DataDir, "theirs/x"): "an agent's",
	} {
		r.must(os.MkdirAll(filepath.Dir(path), 0o755))
		r.must(os.WriteFile(path, []byte(text), 0o644))
	}
	r.cfg.Env = append(r.cfg.Env, "GOMODCACHE="+elsewhere, "CCACHE_DIR="+filepath.Join(r.project, "cache"), "UV_CACHE_DIR="+filepath.Join(r.cfg.DataDir, "theirs"))
	const command = `cd ~/.cache && cat go-build/00/entry ~/go/pkg/mod/module && ls -A . go-build/00 ~/go/pkg/mod && [ $(cat go-build/trim.txt) -gt 1 ] &&
		echo poison >go-build/00/entry && echo poison >go-build/00/more && rm ~/go/pkg/mod/module && echo end`
	for range 2 {
		if got := r.check(nil, command); got.Output != "builtfetched.:\ngo-build\n\n"+r.cfg.Home+"/go/pkg/mod:\nmodule\n\ngo-build/00:\nentry\nend\n" {
			t.Errorf("the check saw %+v", got)
		}
	}
	for path, want := range map[string]string{filepath.Join(r.cfg.Home, ".cache/go-build", "00/entry"): "built", filepath.Join(r.cfg.Home, ".cache/go-build", "trim.txt"): "1", filepath.Join(elsewhere, "module"): "fetched"} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s is %q, %v", path, text, err)
		}
	}
	if r.agent("ls -A ~"); strings.Contains(r.said, "cache") || strings.Contains(r.said, "go") {
		t.Errorf("a sandbox that isn't a check's has %q", r.said)
	}
}
