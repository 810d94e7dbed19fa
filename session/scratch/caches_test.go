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
	r := newRig(t, map[string]string{"cache/own": "an agent's"})
	elsewhere := filepath.Join(filepath.Dir(r.project), "elsewhere")
	for path, text := range map[string]string{
		filepath.Join(r.cfg.Home, goBuilds, "00/entry"): "built", filepath.Join(r.cfg.Home, goBuilds, "trim.txt"): "1",
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
	for path, want := range map[string]string{filepath.Join(r.cfg.Home, goBuilds, "00/entry"): "built", filepath.Join(r.cfg.Home, goBuilds, "trim.txt"): "1", filepath.Join(elsewhere, "module"): "fetched"} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s is %q, %v", path, text, err)
		}
	}
	if r.agent("ls -A ~"); strings.Contains(r.said, "cache") || strings.Contains(r.said, "go") {
		t.Errorf("a sandbox that isn't a check's has %q", r.said)
	}
}

// What a variable says is no cache when it holds what is kept from programs, or more
// than a cache: the whole home, its secrets, and the record, also when a link leads there.
func TestPrivateFoldersAreNoCaches(t *testing.T) {
	r := newRig(t, nil)
	secret, link := filepath.Join(r.cfg.Home, ".ssh"), filepath.Join(filepath.Dir(r.project), "link")
	r.must(os.MkdirAll(secret, 0o700))
	r.must(os.Symlink(r.cfg.DataDir, link))
	home, data := r.cfg.Home, r.cfg.DataDir
	r.cfg.DataDir = link
	for _, dir := range []string{home, secret, data, filepath.Join(data, "bodies"), "/"} {
		r.cfg.Env = []string{"GOMODCACHE=" + dir, "=" + dir}
		if got, err := r.caches(filepath.Join(data, "uppers"), nil); err != nil || len(got) > 0 {
			t.Errorf("%s is shown: %+v, %v", dir, got, err)
		}
	}
}
