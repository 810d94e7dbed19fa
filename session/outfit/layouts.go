package outfit

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"stepbox/runner/overlay/manifest"
)

// companions are what tools on PATH need besides their own folder, both from the home
// folder on: the narrowest that works. What isn't there isn't missed.
var companions = map[string][]string{
	".cargo/bin":                   {".rustup"}, // proxies of rustup's
	".local/bin":                   {".local/share/uv", ".local/share/pipx", ".local/pipx"},
	".pyenv/bin":                   {".pyenv"},
	".pyenv/shims":                 {".pyenv"},
	".volta/bin":                   {".volta"},
	".asdf/shims":                  {".asdf", ".tool-versions", ".asdfrc"},
	".rbenv/shims":                 {".rbenv"},
	".nodenv/shims":                {".nodenv"},
	".goenv/shims":                 {".goenv"},
	".jenv/shims":                  {".jenv"},
	".local/share/mise/shims":      {".local/share/mise", ".config/mise/config.toml", ".tool-versions"}, // links to mise itself
	".nix-profile/bin":             {".nix-profile"},
	".local/state/nix/profile/bin": {".local/state/nix/profile"},
	".bun/bin":                     {".bun/install/global"},
	".ghcup/bin":                   {".ghcup"},
	".elan/bin":                    {".elan"},
}

// roots are the variables by which tools have such a folder elsewhere.
var roots = map[string]string{
	"RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "VOLTA_HOME": ".volta", "ASDF_DATA_DIR": ".asdf", "RBENV_ROOT": ".rbenv",
	"NODENV_ROOT": ".nodenv", "GOENV_ROOT": ".goenv", "MISE_DATA_DIR": ".local/share/mise",
}

// pythons are where interpreters are that a project's virtual environment may lead to.
var pythons = []string{".local/share/uv/python", ".pyenv/versions", ".local/share/mise/installs/python", ".asdf/installs/python"}

// runtimes tell, as patterns from the folder above bin on, that programs in bin read
// their neighbours: Go's, Java's, Python's, Ruby's, Conda's and Node's own.
var runtimes = []string{"pkg/tool", "lib/modules", "lib/python3*", "lib/ruby", "conda-meta", "include/node"}

// moved are the roots that an environment names, with where each would be otherwise.
func moved(home string, env []string) map[string]string {
	out := map[string]string{}
	for name, usual := range roots {
		if v := filepath.Clean(Variable(env, name)); filepath.IsAbs(v) && v != "/" && v != filepath.Join(home, usual) {
			out[v] = usual
		}
	}
	return out
}

// neighbours adds what the programs in a folder of PATH need besides.
func (f *toolFinder) neighbours(dir string) {
	rel, err := filepath.Rel(f.home, dir)
	if err != nil {
		return
	}
	at := func(usual string) string { return filepath.Join(f.home, usual) }
	for root, usual := range f.moved { // as if it were where it usually is
		if manifest.Within(dir, root) {
			rel = filepath.Join(usual, strings.TrimPrefix(dir, root))
		}
	}
	for _, c := range companions[rel] {
		p := at(c)
		for root, usual := range f.moved {
			if usual == c {
				p = root
			}
		}
		if isDir(p) {
			f.add(p)
		} else {
			f.file(p)
		}
	}
	if before, _, ok := strings.Cut(rel, "/versions/"); ok { // nvm, pyenv, fnm: versions link to each other
		f.add(at(filepath.Join(before, "versions")))
	}
	prefix := filepath.Dir(dir)
	if filepath.Base(dir) == "bin" && slices.ContainsFunc(runtimes, func(pattern string) bool {
		found, _ := filepath.Glob(filepath.Join(escapeGlob(prefix), pattern)) // the pattern is well-formed
		return len(found) > 0
	}) {
		f.add(prefix)
	}
	if dir == "/home/linuxbrew/.linuxbrew/bin" { // its programs are found by links within
		f.add(prefix)
	}
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// setsVariables is what mise's settings have that do.
var setsVariables = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\benv\b`) })

// maxNamed is how large a file is at most that names the versions of tools.
const maxNamed = 64 << 10

// file adds a file that names the versions of tools. One that sets variables may have
// secrets in it.
func (f *toolFinder) file(p string) {
	info, err := os.Lstat(p)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxNamed || f.covered(p) {
		return
	}
	if text, err := os.ReadFile(p); err == nil && !setsVariables().Match(text) {
		f.binds = append(f.binds, p)
	}
}

// environments adds the interpreters that the project's virtual environments lead to. An
// agent may have made the link, so only to where such interpreters are.
func (f *toolFinder) environments() {
	for _, name := range []string{".venv", "venv", "env"} {
		real, err := filepath.EvalSymlinks(filepath.Join(f.workspace, name, "bin/python"))
		if err != nil {
			continue
		}
		for _, p := range pythons {
			if dir := filepath.Join(f.home, p); manifest.Within(real, dir) {
				f.add(dir)
			}
		}
	}
}

// located are the variables that say where tools are which are shown.
func located(env []string, shown func(path string) bool) (out []string) {
	for name := range roots {
		if v := Variable(env, name); filepath.IsAbs(v) && shown(filepath.Clean(v)) {
			out = append(out, name+"="+v)
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}
