package outfit

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"stepbox/runner"
	"stepbox/session/e2e/must"
)

func TestTools(t *testing.T) {
	home := t.TempDir()
	project := filepath.Join(home, "project")
	make := func(path, content string) string {
		t.Helper()
		p := filepath.Join(home, path)
		must.OK(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must.OK(t, os.WriteFile(p, []byte(content), 0o755))
		return p
	}
	link := func(target, path string) {
		t.Helper()
		p := filepath.Join(home, path)
		must.OK(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must.OK(t, os.Symlink(target, p))
	}
	make("project/bin/own", "x")
	make(".cargo/bin/cargo", "x")
	make(".rustup/toolchains/x", "x")
	make(".ssh/bin/tool", "x")
	make("npm/lib/node_modules/agent/cli.js", "#!/usr/bin/env node\n")
	link("../lib/node_modules/agent/cli.js", "npm/bin/agent")
	make("node/v1/bin/node", "x")
	make(".local/share/app/versions/1/app", "x")
	link(filepath.Join(home, ".local/share/app/versions/1/app"), ".local/bin/app")
	link(filepath.Join(home, ".ssh/bin/tool"), ".local/bin/leak")

	path := filepath.Join(home, "npm/bin") + ":" + filepath.Join(home, ".cargo/bin") + ":/usr/bin:" + filepath.Join(home, "node/v1/bin") +
		":" + filepath.Join(home, ".ssh/bin") + ":" + home + ":" + filepath.Join(home, ".local/bin") + ":" + filepath.Join(project, "bin") + ":/:relative"
	var got []string
	for _, b := range toolsOf("agent", path, home, project) {
		rel, err := filepath.Rel(home, b.Source)
		if err != nil || b.Source != b.Target {
			t.Fatalf("unexpected bind %v", b)
		}
		got = append(got, rel)
	}
	slices.Sort(got)
	want := []string{".cargo/bin", ".local/bin", ".local/share/app/versions/1", ".rustup", "node/v1/bin", "npm/bin", "npm/lib/node_modules"}
	if !slices.Equal(got, want) {
		t.Errorf("mounted\n %q, want\n %q", got, want)
	}
}

// Agents come from npm, into a prefix of the person's own, with a node that a
// version switcher put beside it.
func TestToolsOfNpm(t *testing.T) {
	home := t.TempDir()
	for path, content := range map[string]string{
		".npm-global/lib/node_modules/@x/agent/bin/cli.js":  "#!/usr/bin/env node\n",
		".npm-global/lib/node_modules/@x/agent-linux/agent": "x",
		".npm-global/etc/npmrc":                             "secret",
		".nvm/versions/node/v20/bin/node":                   "x",
		".nvm/alias/default":                                "v20",
		".npmrc":                                            "secret",
		"project/README":                                    "x",
	} {
		p := filepath.Join(home, path)
		must.OK(t, os.MkdirAll(filepath.Dir(p), 0o755))
		must.OK(t, os.WriteFile(p, []byte(content), 0o755))
	}
	bin := filepath.Join(home, ".npm-global/bin")
	must.OK(t, os.Mkdir(bin, 0o755))
	must.OK(t, os.Symlink("../lib/node_modules/@x/agent/bin/cli.js", filepath.Join(bin, "agent")))
	for _, path := range []string{
		bin + ":" + filepath.Join(home, ".nvm/versions/node/v20/bin") + ":/usr/bin",
		"/usr/bin:" + filepath.Join(home, ".nvm/versions/node/v20/bin") + ":" + bin,
	} {
		var got []string
		for _, b := range toolsOf("agent", path, home, filepath.Join(home, "project")) {
			got = append(got, b.Source)
		}
		slices.Sort(got)
		want := []string{bin, filepath.Join(home, ".npm-global/lib/node_modules"), filepath.Join(home, ".nvm/versions/node/v20/bin"), filepath.Join(home, ".nvm/versions")}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("PATH %s: mounted\n %q, want\n %q", path, got, want)
		}
	}
}

func toolsOf(argv0, path, home, project string) []runner.Bind {
	binds, _ := tools(argv0, []string{"PATH=" + path}, home, project)
	return binds
}
