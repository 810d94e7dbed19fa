package judge

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/session/e2e/must"
)

// What leaves is told from the files that the agent sees, whoever wrote them.
func TestSends(t *testing.T) {
	dir := t.TempDir()
	p := Places{Project: filepath.Join(dir, "project"), Upper: filepath.Join(dir, "upper"), Hidden: []string{"secret"}}
	put := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.OK(t, os.WriteFile(file, []byte(text), 0o644))
	}
	put("project/.git/config", "[remote \"origin\"]\n url = https://me:hunter2@git.example/a.git\n[remote \"up\"]\n url = x\n pushurl = git@git.example:up.git\n")
	put("project/written/.git/config", "[remote \"origin\"]\n url = https://git.example/w.git\n[url \"https://evil.example/\"]\n pushInsteadOf = https://git.example/\n")
	put("project/package.json", `{"name":"a","version":"1.0.0"}`)
	put("upper/package.json", `{"name":"evil","version":"9.0.0","publishConfig":{"registry":"https://registry.example"},"private":true}`)
	put("project/sub/package.json", `{"name":"sub","version":"2.0.0"}`)
	put("project/secret/package.json", `{"name":"secret"}`)
	put("project/gone/package.json", `{"name":"gone"}`)
	put("project/crate/Cargo.toml", "[package]\nname = \"c\"\nversion = \"0.1.0\"\n")
	put("project/broken/package.json", `{"name":`)
	put("project/huge/package.json", `{"name":"`+strings.Repeat("x", maxManifest)+`"}`)
	put("outside/package.json", `{"name":"outside"}`)
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "upper/gone"), 0o755), unix.Mkfifo(filepath.Join(dir, "upper/gone/package.json"), 0o644),
		os.Symlink("../../outside", filepath.Join(dir, "upper/link")),
	} {
		must.OK(t, err)
	}
	for line, want := range map[string]string{
		"git push":                                                  "pushes what git's settings say, to https://git.example/a.git if that is origin",
		"git push origin main":                                      "pushes main to https://git.example/a.git",
		"git -C sub push -f up HEAD:main":                           "pushes HEAD:main to git@git.example:up.git, and takes away what is there",
		"git push -o https://git.example/x.git up":                  "pushes as its options say: git push -o https://git.example/x.git up",
		"git push --all up":                                         "pushes as its options say: git push --all up",
		"git push up main --mirror":                                 "pushes as its options say: git push up main --mirror",
		"git -c remote.up.url=x push up main":                       "pushes as its options say: git push up main",
		"git --git-dir x push up main":                              "pushes as its options say: git push up main",
		"cd written; git push origin main":                          "pushes main to https://git.example/w.git, if its settings have no other for that",
		"git push https://u:p@h.example/x main":                     "pushes main to https://h.example/x",
		"git push nowhere main":                                     "pushes main to nowhere, of which the repository's settings have no address",
		"git status && git log --grep push":                         "",
		"npm publish":                                               "publishes evil 9.0.0 to https://registry.example; its package.json says that it is private",
		"cd sub && npm publish --access public":                     "publishes sub 2.0.0 to the registry that its settings name",
		"npm publish --registry=https://r.example --tag next ./sub": "publishes sub 2.0.0 to https://r.example",
		"pnpm publish ./sub":                                        "publishes sub 2.0.0 to the registry that its settings name",
		"npm publish x.tgz":                                         "publishes the package in the file x.tgz",
		"env A=b npm publish ./sub":                                 "publishes sub 2.0.0 to the registry that its settings name",
		"cd crate; cargo publish":                                   "publishes the crate c 0.1.0",
		"npm publish ./secret":                                      "",
		"npm publish ./gone":                                        "",
		"npm publish ./link":                                        "",
		"npm publish ../outside":                                    "",
		"npm publish ./broken; npm publish huge":                    "",
		"npm run publish":                                           "",
	} {
		j := Judge{Places: p}
		got := j.sends(policy.Of().Command(policy.Command{Argv: []string{"bash", "-c", line}}).Parts, p.Project)
		if !slices.Equal(got, slices.DeleteFunc([]string{want}, func(s string) bool { return s == "" })) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
