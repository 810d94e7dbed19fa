package scratch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// laid makes files and links below a home: a text that begins with -> is a link's.
// What begins with #! can be run, and ~ in a text is the home.
func (r *rig) laid(files map[string]string) {
	r.Helper()
	for name, text := range files {
		path := filepath.Join(r.cfg.Home, name)
		r.must(os.MkdirAll(filepath.Dir(path), 0o755))
		text = strings.ReplaceAll(text, "~", r.cfg.Home)
		if to, is := strings.CutPrefix(text, "-> "); is {
			r.must(os.Symlink(to, path))
			continue
		}
		r.must(os.WriteFile(path, []byte(text), 0o755))
	}
}

// Tools are found as version switchers lay them out: the structure of links, shims and
// folders is theirs, the programs are scripts that do what the real ones do to find what
// they run.
func TestToolLayouts(t *testing.T) {
	t.Parallel()
	const says = "#!/bin/sh\necho ran $(basename $0) $1\n"
	// Python's launchers of a virtual environment name its interpreter in the first line.
	const asdf = "#!/bin/sh\n[ \"$1\" = exec ] && shift\ntool=$1; shift\nv=$(sed -n 's/^nodejs //p' ~/.tool-versions)\nexec ${ASDF_DATA_DIR:-~/.asdf}/installs/nodejs/$v/bin/$tool \"$@\"\n"
	const mise = "#!/bin/sh\ntool=$(basename $0)\nv=$(sed -n 's/^node = \"\\(.*\\)\"/\\1/p' ~/.config/mise/config.toml)\nexec ${MISE_DATA_DIR:-~/.local/share/mise}/installs/node/$v/bin/$tool \"$@\"\n"
	for name, c := range map[string]struct {
		path  string // below the home unless it is absolute
		env   []string
		files map[string]string
		run   string
		want  string
	}{
		"nvm": {".nvm/versions/node/v20.1.0/bin", nil, map[string]string{
			".nvm/versions/node/v20.1.0/bin/node": says, ".nvm/versions/node/v20.1.0/lib/node_modules/npm/bin/npm-cli.js": "#!/usr/bin/env node\n",
			".nvm/versions/node/v20.1.0/bin/npm": "-> ../lib/node_modules/npm/bin/npm-cli.js",
		}, "npm", "ran node ~/.nvm/versions/node/v20.1.0/bin/npm"},
		"nvm's current": {".nvm/current/bin", nil, map[string]string{
			".nvm/versions/node/v20.1.0/bin/node": says, ".nvm/versions/node/v20.1.0/lib/node_modules/npm/bin/npm-cli.js": "#!/usr/bin/env node\n",
			".nvm/versions/node/v20.1.0/bin/npm": "-> ../lib/node_modules/npm/bin/npm-cli.js", ".nvm/current": "-> ~/.nvm/versions/node/v20.1.0",
			".nvm/versions/node/v20.1.0/include/node/node.h": "",
		}, "npm", "ran node ~/.nvm/current/bin/npm"},
		"fnm": {".local/state/fnm_multishells/7_1/bin", nil, map[string]string{
			".local/share/fnm/node-versions/v20/installation/bin/node":                            says,
			".local/share/fnm/node-versions/v20/installation/include/node/node.h":                 "",
			".local/share/fnm/node-versions/v20/installation/lib/node_modules/npm/bin/npm-cli.js": "#!/usr/bin/env node\n",
			".local/share/fnm/node-versions/v20/installation/bin/npm":                             "-> ../lib/node_modules/npm/bin/npm-cli.js",
			".local/share/fnm/aliases/default":                                                    "-> ~/.local/share/fnm/node-versions/v20/installation",
			".local/state/fnm_multishells/7_1":                                                    "-> ~/.local/share/fnm/aliases/default",
		}, "npm", "ran node ~/.local/state/fnm_multishells/7_1/bin/npm"},
		"volta": {".volta/bin", nil, map[string]string{
			".volta/bin/volta-shim": "#!/bin/sh\nexec ~/.volta/tools/image/node/20.1.0/bin/$(basename $0) \"$@\"\n", ".volta/bin/node": "-> volta-shim",
			".volta/tools/image/node/20.1.0/bin/node": says,
		}, "node x", "ran node x"},
		"mise's shims": {".local/share/mise/shims", nil, map[string]string{
			".local/bin/mise": mise, ".local/share/mise/shims/node": "-> ~/.local/bin/mise", ".config/mise/config.toml": "[tools]\nnode = \"20.1.0\"\n",
			".local/share/mise/installs/node/20.1.0/bin/node": says,
		}, "node x", "ran node x"},
		"mise activated": {".local/share/mise/installs/node/20/bin", nil, map[string]string{
			".local/share/mise/installs/node/20": "-> ./20.1.0", ".local/share/mise/installs/node/20.1.0/bin/node": says,
			".local/share/mise/installs/node/20.1.0/lib/node_modules/npm/bin/npm-cli.js": "#!/usr/bin/env node\n", ".local/share/mise/installs/node/20.1.0/include/node/node.h": "",
			".local/share/mise/installs/node/20.1.0/bin/npm": "-> ../lib/node_modules/npm/bin/npm-cli.js",
		}, "npm", "ran node ~/.local/share/mise/installs/node/20/bin/npm"},
		"mise elsewhere": {"tools/mise/shims", []string{"MISE_DATA_DIR=~/tools/mise"}, map[string]string{
			".local/bin/mise": mise, "tools/mise/shims/node": "-> ~/.local/bin/mise", ".config/mise/config.toml": "[tools]\nnode = \"20.1.0\"\n",
			"tools/mise/installs/node/20.1.0/bin/node": says,
		}, "node x", "ran node x"},
		"asdf, a script": {".asdf/shims", nil, map[string]string{
			".asdf/shims/node": "#!/usr/bin/env bash\n# asdf-plugin: nodejs 20.1.0\nexec ~/.asdf/bin/asdf exec \"node\" \"$@\"\n", ".asdf/bin/asdf": asdf,
			".tool-versions": "nodejs 20.1.0\n", ".asdf/installs/nodejs/20.1.0/bin/node": says,
		}, "node x", "ran node x"},
		"asdf, a program": {".asdf/shims:bin", nil, map[string]string{
			".asdf/shims/node": "#!/usr/bin/env bash\n# asdf-plugin: nodejs 20.1.0\nexec asdf exec \"node\" \"$@\"\n", "bin/asdf": asdf,
			".tool-versions": "nodejs 20.1.0\n", ".asdf/installs/nodejs/20.1.0/bin/node": says,
		}, "node x", "ran node x"},
		"pyenv": {".pyenv/shims:.pyenv/bin", nil, map[string]string{
			".pyenv/shims/python": "#!/usr/bin/env bash\nset -e\nexport PYENV_ROOT=~/.pyenv\nexec ~/.pyenv/libexec/pyenv exec \"${0##*/}\" \"$@\"\n",
			".pyenv/bin/pyenv":    "-> ../libexec/pyenv", ".pyenv/libexec/pyenv": "#!/bin/sh\nshift; tool=$1; shift\nexec $PYENV_ROOT/versions/$(cat $PYENV_ROOT/version)/bin/$tool \"$@\"\n",
			".pyenv/version": "3.12.1\n", ".pyenv/versions/3.12.1/bin/python3.12": says, ".pyenv/versions/3.12.1/bin/python": "-> python3.12",
		}, "python x", "ran python x"},
		"pyenv elsewhere": {"py/shims", []string{"PYENV_ROOT=~/py"}, map[string]string{
			"py/shims/python": "#!/usr/bin/env bash\nexec $PYENV_ROOT/versions/$(cat $PYENV_ROOT/version)/bin/python \"$@\"\n",
			"py/version":      "3.12.1\n", "py/versions/3.12.1/bin/python": says,
		}, "python x", "ran python x"},
		"rustup": {".cargo/bin", nil, map[string]string{
			".cargo/bin/rustup": "#!/bin/sh\nroot=${RUSTUP_HOME:-~/.rustup}\nexec $root/toolchains/$(sed -n 's/^default_toolchain = \"\\(.*\\)\"/\\1/p' $root/settings.toml)/bin/$(basename $0) \"$@\"\n",
			".cargo/bin/cargo":  "-> rustup", ".rustup/settings.toml": "default_toolchain = \"stable-x86_64-unknown-linux-gnu\"\n",
			".rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin/cargo": says,
		}, "cargo x", "ran cargo x"},
		"rustup elsewhere": {".cargo/bin", []string{"RUSTUP_HOME=~/rust"}, map[string]string{
			".cargo/bin/cargo":                 "#!/bin/sh\nexec $RUSTUP_HOME/toolchains/stable/bin/cargo \"$@\"\n",
			"rust/toolchains/stable/bin/cargo": says,
		}, "cargo x", "ran cargo x"},
		"uv's tools": {".local/bin", nil, map[string]string{
			".local/bin/ruff": "-> ~/.local/share/uv/tools/ruff/bin/ruff", ".local/share/uv/tools/ruff/bin/ruff": "#!~/.local/share/uv/tools/ruff/bin/python\n",
			".local/share/uv/tools/ruff/pyvenv.cfg": "", ".local/share/uv/tools/ruff/bin/python": "-> ~/.local/share/uv/python/cpython-3.12-linux/bin/python3.12",
			".local/share/uv/python/cpython-3.12-linux": "-> cpython-3.12.1-linux", ".local/share/uv/python/cpython-3.12.1-linux/bin/python3.12": "-> /bin/echo",
		}, "ruff x", "~/.local/bin/ruff x"},
		"uv with data elsewhere": {".local/bin", nil, map[string]string{
			".local/bin/ruff": "-> ~/data/uv/tools/ruff/bin/ruff", "data/uv/tools/ruff/bin/ruff": "#!~/data/uv/tools/ruff/bin/python\n", "data/uv/tools/ruff/lib/x": "",
			"data/uv/tools/ruff/pyvenv.cfg": "", "data/uv/tools/ruff/bin/python": "-> ~/data/uv/python/cpython-3.12-linux/bin/python3.12",
			"data/uv/python/cpython-3.12-linux": "-> cpython-3.12.1-linux", "data/uv/python/cpython-3.12.1-linux/bin/python3.12": "-> /bin/echo", "data/uv/python/cpython-3.12.1-linux/lib/x": "",
		}, "ruff x", "~/.local/bin/ruff x"},
		"pipx": {".local/bin", nil, map[string]string{
			".local/bin/black": "-> ~/.local/share/pipx/venvs/black/bin/black", ".local/share/pipx/venvs/black/bin/black": "#!~/.local/share/pipx/venvs/black/bin/python\n",
			".local/share/pipx/venvs/black/pyvenv.cfg": "", ".local/share/pipx/venvs/black/bin/python": "-> /bin/echo", ".local/share/pipx/shared/lib/x": "",
		}, "black x && ls ~/.local/share/pipx/shared", "~/.local/bin/black x\nlib"},
		"bun": {".bun/bin", nil, map[string]string{
			".bun/bin/bun": says, ".bun/bin/tsc": "-> ../install/global/node_modules/typescript/bin/tsc",
			".bun/install/global/node_modules/typescript/bin/tsc": "#!/usr/bin/env bun\n",
		}, "tsc", "ran bun ~/.bun/bin/tsc"},
		"deno": {".deno/bin", nil, map[string]string{
			".deno/bin/deno": says, ".deno/bin/serve": "#!/bin/sh\nexec deno 'run' \"$@\"\n",
		}, "serve", "ran deno run"},
		"nix": {".nix-profile/bin", nil, map[string]string{ // the store is /nix/store, which every sandbox has
			".nix-profile": "-> ~/.local/state/nix/profiles/profile", ".local/state/nix/profiles/profile": "-> profile-3-link", ".local/state/nix/profiles/profile-3-link": "-> ~/store/a-env",
			"store/a-env/bin/hello": "-> ~/store/b-hello/bin/hello", "store/b-hello/bin/hello": "#!/bin/sh\n~/store/b-hello/libexec/hello\n", "store/b-hello/libexec/hello": says, "store/b-hello/lib/x": "",
			"store/a-env/etc/ssl/certs/ca-bundle.crt": "certificates",
		}, "hello && cat ~/.nix-profile/etc/ssl/certs/ca-bundle.crt", "ran hello\ncertificates"},
		"Go unpacked": {"sdk/go1.24/bin", nil, map[string]string{
			"sdk/go1.24/bin/go": "#!/bin/sh\n$(dirname $0)/../pkg/tool/linux_amd64/compile\n", "sdk/go1.24/pkg/tool/linux_amd64/compile": says, "sdk/go1.24/VERSION": "go1.24",
		}, "go", "ran compile"},
		"SDKMAN": {".sdkman/candidates/java/current/bin", nil, map[string]string{
			".sdkman/candidates/java/current": "-> 21.0.1", ".sdkman/candidates/java/21.0.1/bin/java": "#!/bin/sh\ncat $(dirname $0)/../lib/modules\n", ".sdkman/candidates/java/21.0.1/lib/modules": "modules",
		}, "java", "modules"},
		"a project's environment": {".local/bin", nil, map[string]string{
			".local/share/uv/python/cpython-3.12.1-linux/bin/python3.12": "-> /bin/echo", ".local/bin/x": says,
		}, ".venv/bin/python x", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.laid(c.files)
			path := ""
			for _, dir := range filepath.SplitList(c.path) {
				path += filepath.Join(r.cfg.Home, dir) + ":"
			}
			r.cfg.Env = []string{"PATH=" + path + "/usr/bin:/bin"}
			for _, e := range c.env {
				r.cfg.Env = append(r.cfg.Env, strings.ReplaceAll(e, "~", r.cfg.Home))
			}
			r.must(os.MkdirAll(filepath.Join(r.project, ".venv/bin"), 0o755))
			r.must(os.Symlink(filepath.Join(r.cfg.Home, ".local/share/uv/python/cpython-3.12.1-linux/bin/python3.12"), filepath.Join(r.project, ".venv/bin/python")))
			r.agent(c.run + " 2>&1 || true")
			if want := strings.ReplaceAll(c.want, "~", r.cfg.Home); strings.TrimSpace(r.said) != want {
				t.Errorf("it printed\n%swant\n%s", r.said, want)
			}
		})
	}
}

// No layout shows what has secrets, nor a folder that a link of the project's names.
func TestToolLayoutsAreNarrow(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.laid(map[string]string{
		".local/share/mise/shims/node": "-> ~/.local/bin/mise", ".local/bin/mise": "#!/bin/sh\n", ".config/mise/config.toml": "[env]\nTOKEN = \"secret\"\n",
		".tool-versions": "nodejs 20\ndirenv 2.32\n", "own/bin/tool": "#!/bin/sh\n", "own/lib/x": "", "own/.env": "secret", "private/bin/python": "", "private/lib/x": "",
		".npm-global/bin/x": "", ".npm-global/lib/node_modules/npm/x": "", ".npm-global/etc/npmrc": "secret",
	})
	r.must(os.MkdirAll(filepath.Join(r.project, ".venv/bin"), 0o755))
	r.must(os.Symlink(filepath.Join(r.cfg.Home, "private/bin/python"), filepath.Join(r.project, ".venv/bin/python")))
	r.cfg.Env = []string{strings.ReplaceAll("PATH=~/.local/share/mise/shims:~/own/bin:~/.npm-global/bin:/usr/bin:/bin", "~", r.cfg.Home)}
	r.agent("cd ~; cat .tool-versions; ls -d own/bin; ls -d .config/mise/config.toml own/.env own/lib private .npm-global/etc 2>/dev/null || true")
	if r.said != "nodejs 20\ndirenv 2.32\nown/bin\n" {
		t.Errorf("it has\n%s", r.said)
	}
}
