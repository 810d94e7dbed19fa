package apply

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"stepbox/runner/overlay/diff"
	"stepbox/runner/overlay/manifest"
	"stepbox/session/api"
	"stepbox/session/effects"
	"stepbox/session/project"
)

// rule says what is dangerous about files of a name. Match is in small letters: a
// name, *END, START* or, with a slash at its end, folders that it is in.
type rule struct{ match, words string }

// What runs without being asked, or decides what runs, and when that is.
const (
	byHook   = "git runs hooks here by itself, at each commit or the like"
	byCI     = "runs by itself on a server that may hold secrets (CI)"
	byEditor = "an editor may run what this says when the folder is opened"
	byShell  = "the shell runs it, or changes by it, when the folder is entered"
	byBuild  = "runs at the next build or test"
	byTool   = "tells a package manager where from it installs, and what it runs"
	byGit    = "tells git what to run, or where to fetch from"
	byAgent  = "tells agents what to do and what they may do"
	byEnv    = "programs read their settings and secrets from it"
	byBox    = "Stepbox's own rules for this project"
	byLock   = "says what is installed, and where from"
	byOther  = "another version control's own folder, whose hooks and settings it obeys"
)

// rules is the table of them, each of its lines one danger.
func rules() []rule {
	var out []rule
	for _, line := range []struct{ words, matches string }{
		{byHook, ".husky/ .githooks/ githooks/ git-hooks/ .git-hooks/ lefthook.yml lefthook.yaml .lefthook.yml lefthook.toml .pre-commit-config.yaml .lintstagedrc* lint-staged.config.* .huskyrc* .overcommit.yml .simple-git-hooks.* .czrc .commitlintrc*"},
		{byCI, ".github/workflows/ .github/actions/ .gitea/workflows/ .forgejo/workflows/ .gitlab-ci.yml .gitlab/ci/ .circleci/ .buildkite/ .woodpecker/ .woodpecker.yml " +
			"jenkinsfile jenkinsfile.* azure-pipelines* .azure-pipelines/ .drone.yml .drone.star bitbucket-pipelines.yml .travis.yml appveyor.yml .appveyor.yml .cirrus.yml .teamcity/ cloudbuild.yaml " +
			"*.gitlab-ci.yml .semaphore/ .tekton/ .builds/ .build.yml action.yml action.yaml netlify.toml vercel.json .readthedocs.yaml .readthedocs.yml"},
		{byEditor, ".vscode/ .idea/ .devcontainer/ .devcontainer.json .zed/ .fleet/ *.code-workspace .exrc .vimrc .nvimrc .nvim.lua .lvimrc .dir-locals.el .dir-locals-2.el *.sublime-project .vs/ .vim/ .nvim/ .helix/ .externaltoolbuilders/ nbproject/ .vimspector.json .ycm_extra_conf.py .gdbinit .lldbinit .clangd"},
		{byShell, ".envrc mise.toml .mise.toml .mise/ mise.local.toml .tool-versions .nvmrc .node-version .python-version .ruby-version rust-toolchain rust-toolchain.toml devbox.json flake.nix shell.nix .autoenv* " +
			".envrc.* .config/mise/ .config/mise.toml .rtx.toml .prototools .sdkmanrc .java-version .go-version default.nix devenv.nix devenv.yaml .shadowenv.d/ activate activate.fish activate.csh activate.ps1 .bashrc .bash_profile .profile .zshrc .zshenv"},
		{byEnv, ".env .env.* .flaskenv"},
		{byBuild, "makefile gnumakefile *.mk justfile .justfile taskfile.yml taskfile.yaml taskfile.dist.yml rakefile *.rake build.rs setup.py setup.cfg conftest.py sitecustomize.py noxfile.py tox.ini pyproject.toml hatch_build.py " +
			"*.gradle *.gradle.kts gradlew gradle-wrapper.properties gradle-wrapper.jar mvnw .mvn/ pom.xml build.xml cmakelists.txt *.cmake cmakepresets.json meson.build configure configure.ac build.zig build.sbt magefile.go " +
			"gulpfile.* gruntfile.* webpack.config.* vite.config.* vitest.config.* jest.config.* rollup.config.* babel.config.* .babelrc* eslint.config.* .eslintrc* postcss.config.* next.config.* build.bazel bazel.rc .bazelrc workspace.bazel " +
			"makefile.am makefile.in makefile.inc *.make cargo.toml binding.gyp gradle.properties dockerfile dockerfile.* *.dockerfile containerfile docker-compose* compose.yaml compose.yml vagrantfile " +
			"pytest.ini usercustomize.py *.pth pyvenv.cfg .pylintrc pylintrc .flake8 mypy.ini .rspec .irbrc .pryrc .rubocop.yml guardfile dangerfile podfile *.gemspec mix.exs rebar.config package.swift " +
			"*.csproj *.fsproj *.vbproj *.vcxproj *.props *.targets makefile.pl build.pl sconstruct wscript build.sc *.bzl module.bazel .jvmopts .sbtopts " +
			"*.config.js *.config.cjs *.config.mjs *.config.ts *.config.cts *.config.mts .mocharc* .prettierrc* .stylelintrc* .swcrc .releaserc* angular.json turbo.json nx.json"},
		{byTool, ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnp.cjs .yarn/releases/ .yarn/plugins/ pip.conf pip.ini .cargo/config .cargo/config.toml gemfile .bundle/ .pypirc .condarc nuget.config bunfig.toml .pnpmfile.mjs pnpm-workspace.yaml package.yaml package.json5 .pnp.loader.mjs uv.toml poetry.toml pipfile *requirements.txt requirements-* constraints.txt .corepack.env"},
		{byLock, "go.mod go.work go.work.sum " + strings.ToLower(string(effects.Locks))},
		{byGit, ".gitattributes .gitmodules .gitconfig .lfsconfig"},
		{byAgent, ".claude/ claude.md claude.local.md .mcp.json agents.md agents.override.md .cursor/ .cursorrules .codex/ .gemini/ gemini.md .windsurf/ .windsurfrules .clinerules* .continue/ .aider.conf.yml .github/copilot-instructions.md .copilot/ opencode.json .opencode/ .goosehints .roo/ .amazonq/ " +
			".kiro/ .junie/ .augment/ .agents/ .pi/ .crush/ crush.json .crush.json crush.md .qwen/ qwen.md .factory/ .trae/ .kilocode/ .rules mcp.json warp.md .github/instructions/ .github/prompts/ .github/chatmodes/ .github/agents/"},
		{byOther, ".hg/ .hgsub .jj/ .sl/ .bzr/ .svn/ _darcs/ .pijul/"},
		{byBox, ".stepbox.yaml"},
	} {
		for _, m := range strings.Fields(line.matches) {
			out = append(out, rule{m, line.words})
		}
	}
	return out
}

// covers says whether a rule is for a path, which is in small letters.
func (r rule) covers(at string) bool {
	base := path.Base(at)
	switch {
	case strings.HasSuffix(r.match, "/"):
		return strings.Contains("/"+at, "/"+r.match)
	case strings.Contains(r.match, "/"):
		return at == r.match || strings.HasSuffix(at, "/"+r.match)
	case strings.HasPrefix(r.match, "*"):
		return strings.HasSuffix(base, r.match[1:])
	case strings.HasSuffix(r.match, "*"):
		return strings.HasPrefix(base, r.match[:len(r.match)-1])
	}
	return base == r.match
}

// through says whether what a link at a path leads to is found under a name that
// the rule is for.
func (r rule) through(at string) bool {
	return strings.Contains("/"+at+"/", "/"+r.match) || strings.HasPrefix(r.match, path.Base(at)+"/")
}

// scripts are files of which one part runs: the member of the document.
func scripts(base string) string {
	switch base {
	case "package.json", "composer.json":
		return "scripts"
	case "deno.json", "deno.jsonc":
		return "tasks"
	}
	return ""
}

// mostScripts is how many bytes of such a file are read.
const mostScripts = 1 << 20

// dangers judges what an apply writes. Its words are escaped.
type dangers struct {
	rules    []rule
	obeyed   *obeyed             // what the person has there
	hidden   []string            // what the agent didn't see: files, and folders with all that is in them
	redacted []string            // what it saw without secrets
	git      map[string]bool     // folders that are repositories themselves once all is applied, as far as they were asked about
	folded   map[string][]string // what differs in case alone, by what it is in small letters

	// read gives a side's content, at most so many bytes of it; nil of none.
	read func(f *diff.File, most int64) ([]byte, error)
	// there says whether there is something under a path once all is applied.
	there func(path string) bool
	// target is where a path leads as a link once all is applied; "" when it is none.
	target func(path string) string
}

// of says what is dangerous about a change, in words; a deletion never is.
func (d *dangers) of(c *diff.Change) []string {
	var out []string
	if d.covered(d.hidden, c.Path) {
		out = append(out, "lies over a file that was hidden from the agent")
	}
	if d.covered(d.redacted, c.Path) {
		out = append(out, "the agent saw this file without its secrets, which would be lost")
	}
	if c.New == nil {
		return out
	}
	at := strings.ToLower(c.Path)
	link := c.New.Kind == manifest.KindSymlink
	if by := d.obeyed.named[c.Path]; by != "" {
		out = append(out, api.Escape(by)+" names this, and may run or read it by itself")
	}
	if base := path.Base(at); scripts(base) != "" {
		if w := d.ofScripts(c, scripts(base)); w != "" {
			out = append(out, w)
		}
	}
	for _, name := range append(d.obeyed.names(c.Path, link), at) {
		name = strings.ToLower(name)
		for _, r := range d.rules {
			if (r.covers(name) || link && r.through(name)) && !slices.Contains(out, r.words) {
				out = append(out, r.words)
			}
		}
	}
	for dir := path.Dir(c.Path); ; dir = path.Dir(dir) {
		if d.repository(dir) {
			out = append(out, "is part of a repository without a .git folder, whose hooks and configuration git obeys")
		}
		if dir == "." {
			break
		}
	}
	switch {
	case link:
		if w := d.ofLink(c.Path, c.New.Target); w != "" {
			out = append(out, w)
		}
	case c.New.Kind == manifest.KindFile && c.New.Mode&0o111 != 0 && (c.Old == nil || c.Old.Kind != manifest.KindFile || c.Old.Mode&0o111 == 0):
		out = append(out, "becomes executable")
	}
	if strings.ContainsFunc(c.Path, func(r rune) bool {
		return r != ' ' && unicode.In(r, unicode.C, unicode.Zs, unicode.Other_Default_Ignorable_Code_Point)
	}) {
		out = append(out, "its name has characters that can't be seen, or turn others round")
	}
	if open := func(f *diff.File) bool { return f != nil && f.Mode&0o002 != 0 && f.Kind != manifest.KindSymlink }; open(c.New) && !open(c.Old) {
		out = append(out, "everyone on this computer may write to it")
	}
	if c.Old == nil || c.Status == diff.Renamed {
		for _, other := range d.folded[at] {
			if other != c.Path {
				out = append(out, "differs from "+api.Escape(other)+" in case alone: some computers have room for only one of them")
				break
			}
		}
	}
	return out
}

// repository says whether git takes a folder for a repository: by HEAD, and objects
// or refs. It is one without a working tree, or one that a .git file leads to.
func (d *dangers) repository(dir string) bool {
	is, known := d.git[dir]
	if !known {
		is = d.there(path.Join(dir, "HEAD")) && (d.there(path.Join(dir, "objects")) || d.there(path.Join(dir, "refs")))
		d.git[dir] = is
	}
	return is
}

func (d *dangers) covered(by []string, at string) bool {
	return slices.ContainsFunc(by, func(p string) bool { return at == p || strings.HasPrefix(at, p+"/") })
}

// ofScripts says which scripts of a file a change adds or rewrites, and what else may
// be installed by it.
func (d *dangers) ofScripts(c *diff.Change, member string) string {
	old, _ := d.read(c.Old, mostScripts) // what can't be read has none of them
	now, err := d.read(c.New, mostScripts)
	names, _, rest, ok := effects.Scripts(old, now, member)
	if err != nil || !ok {
		return "what it runs can't be read, so it may run anything (" + member + ")"
	}
	for _, name := range rest {
		names = append(names, name+" {…}")
	}
	for i, name := range names {
		names[i] = api.Escape(api.Trim(name, 60))
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n > 5:
		return fmt.Sprintf("changes %d parts that run by name or by themselves, or say what is installed: %s and %d more", n, strings.Join(names[:5], ", "), n-5)
	default:
		return "changes what runs by name or by itself, or is installed: " + strings.Join(names, ", ")
	}
}

// ofLink says where a link leads, when that isn't to something in the project.
func (d *dangers) ofLink(at, target string) string {
	if path.IsAbs(target) {
		return "a link that leads out of the project: " + api.Escape(target)
	}
	out := "a link that may lead out of the project: " + api.Escape(target)
	// Each step is looked at as the kernel would take it: .. is that of where a
	// link led to, and not of its name.
	here, rest := path.Dir(at), strings.Split(target, "/")
	for hops := 0; len(rest) > 0; {
		step := rest[0]
		rest = rest[1:]
		switch {
		case step == "" || step == ".":
			continue
		case step == ".." && here == ".":
			return out
		case step == "..":
			here = path.Dir(here)
			continue
		}
		here = path.Join(here, step)
		if project.Never(step) != "" {
			return "a link that leads into git's own folder: " + api.Escape(target)
		}
		if to := d.target(here); to != "" {
			if hops++; hops > 8 || path.IsAbs(to) {
				return out
			}
			here, rest = path.Dir(here), append(strings.Split(to, "/"), rest...)
		}
	}
	return ""
}
