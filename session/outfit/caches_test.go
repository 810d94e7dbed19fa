package outfit

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"stepbox/runner"
	"stepbox/session/e2e/must"
)

func filled(t *testing.T, files map[string]string) {
	t.Helper()
	for path, text := range files {
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path, []byte(text), 0o755))
	}
}

// What a variable says is no cache when it holds what is kept from programs, or more
// than a cache: the whole home, its secrets, and the record, also when a link leads there.
func TestPrivateFoldersAreNoCaches(t *testing.T) {
	dir := t.TempDir()
	n := Needs{Home: filepath.Join(dir, "home"), Workspace: filepath.Join(dir, "project"), DataDir: filepath.Join(dir, "link"), StateDir: filepath.Join(dir, "state")}
	secret, data := filepath.Join(n.Home, ".ssh"), filepath.Join(dir, "data")
	filled(t, map[string]string{filepath.Join(secret, "id"): "", filepath.Join(data, "bodies/x"): "", filepath.Join(n.Workspace, "cache/x"): "", filepath.Join(dir, "fine/x"): ""})
	must.OK(t, os.Symlink(data, n.DataDir))
	for dir, want := range map[string]int{
		n.Home: 0, secret: 0, data: 0, filepath.Join(data, "bodies"): 0, "/": 0, filepath.Join(n.Workspace, "cache"): 0, filepath.Join(dir, "fine"): 1,
	} {
		n.Env = []string{"GOMODCACHE=" + dir, "=" + dir}
		if got, err := caches(n, nil); err != nil || len(got) != want {
			t.Errorf("%s is shown: %+v, %v", dir, got, err)
		}
	}
}

// What a policy or a person shows there themselves stays as they say, and a session that
// goes on finds what it wrote.
func TestCachesOfASession(t *testing.T) {
	dir := t.TempDir()
	n := Needs{Home: filepath.Join(dir, "home"), Workspace: dir + "/project", DataDir: dir, StateDir: dir + "/data/state"}
	n.DataDir = filepath.Join(dir, "data")
	mod, builds := filepath.Join(n.Home, "go/pkg/mod"), filepath.Join(n.Home, ".cache/go-build")
	filled(t, map[string]string{mod + "/x": "", builds + "/trim.txt": "1", n.DataDir + "/x": "", n.Home + "/.npm/_cacache/x": "", n.Home + "/.npm/_logs/x": ""})
	for range 2 {
		got, err := caches(n, []runner.Bind{{Source: mod, Target: mod}})
		if err != nil || !slices.Equal(targets(got), []string{builds, n.Home + "/.npm/_cacache"}) || !got[0].Spare {
			t.Fatalf("shown are %+v, %v", got, err)
		}
		own := filepath.Join(got[0].Upper, "own")
		filled(t, map[string]string{own: "own"})
		if text, err := os.ReadFile(filepath.Join(got[0].Upper, "trim.txt")); err != nil || len(text) < 9 {
			t.Errorf("trimmed at %q, %v", text, err)
		}
	}
}

func TestParseDir(t *testing.T) {
	dir := t.TempDir()
	filled(t, map[string]string{dir + "/real/file": ""})
	must.OK(t, os.Symlink("real", dir+"/link"))
	for text, want := range map[string]Dir{
		dir + "/real":    {Path: dir + "/real"},
		dir + "/real:ro": {Path: dir + "/real", ReadOnly: true},
		dir + "/link/":   {Path: dir + "/real"},
		"~/real:ro":      {Path: dir + "/real", ReadOnly: true},
		dir + "/gone":    {}, dir + "/real/file": {}, "": {}, ":ro": {}, dir + "/real:rw": {}, dir + "/\xff": {},
	} {
		got, err := ParseDir(text, dir)
		if (err == nil) != (want.Path != "") || err == nil && got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
}

// The agent made the names, and may have put links among them.
func TestWritten(t *testing.T) {
	state := t.TempDir()
	upper := upperOf(state, "/data")
	filled(t, map[string]string{upper + "/a": "", upper + "/d/b": "", upper + "/d/c": ""})
	must.OK(t, os.Symlink("/etc", upper+"/e"))
	for most, want := range map[int][]string{9: {"a", "d/b", "d/c", "e"}, 2: {"a", "e"}} {
		got, more := Written(state, "/data", most)
		if !slices.Equal(got, want) || more != (most == 2) {
			t.Errorf("%d: %q, %v", most, got, more)
		}
	}
	must.OK(t, os.RemoveAll(upper))
	if err := os.Symlink("/etc", upper); err != nil { // nobody but Stepbox makes it
		t.Fatal(err)
	}
	if got, _ := Written(state, "/other", 9); got != nil {
		t.Errorf("nothing was written: %q", got)
	}
}
