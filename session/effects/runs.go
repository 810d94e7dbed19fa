package effects

import (
	"strings"
	"sync"
)

// Rule says what is dangerous about files of a name. Match begins with a slash and is
// in small letters: a name, *END, START* or, with a slash at its end, folders that it is in.
type Rule struct {
	match string
	Words string
	what  string // it runs, or decides what runs, by itself; "" when only by name
}

// known is made when it is first asked for.
var known struct {
	sync.Once
	rules []Rule
}

// Rules are of what runs without being asked, or decides what runs, each line with
// when that is. They aren't to be changed.
func Rules() []Rule {
	known.Do(func() {
		for _, line := range []struct{ words, what, matches string }{
			{"git runs hooks here by itself, at each commit or the like", "a git hook", ".husky/ .githooks/ githooks/ git-hooks/ .git-hooks/ lefthook.yml lefthook.yaml .lefthook.yml lefthook.toml .pre-commit-config.yaml .lintstagedrc* lint-staged.config.* .huskyrc* .overcommit.yml .simple-git-hooks.* .czrc .commitlintrc*"},
			{"runs by itself on a server that may hold secrets (CI)", "CI", ".github/workflows/ .github/actions/ .gitea/workflows/ .forgejo/workflows/ .gitlab-ci.yml .gitlab/ci/ .circleci/ .buildkite/ .woodpecker/ .woodpecker.yml " +
				"jenkinsfile jenkinsfile.* azure-pipelines* .azure-pipelines/ .drone.yml .drone.star bitbucket-pipelines.yml .travis.yml appveyor.yml .appveyor.yml .cirrus.yml .teamcity/ cloudbuild.yaml " +
				"*.gitlab-ci.yml .semaphore/ .tekton/ .builds/ .build.yml action.yml action.yaml netlify.toml vercel.json .readthedocs.yaml .readthedocs.yml"},
			{"an editor may run what this says when the folder is opened", "the editor's settings", ".vscode/ .idea/ .devcontainer/ .devcontainer.json .zed/ .fleet/ *.code-workspace .exrc .vimrc .nvimrc .nvim.lua .lvimrc .dir-locals.el .dir-locals-2.el *.sublime-project .vs/ .vim/ .nvim/ .helix/ .externaltoolbuilders/ nbproject/ .vimspector.json .ycm_extra_conf.py .gdbinit .lldbinit .clangd"},
			{"the shell runs it, or changes by it, when the folder is entered", "what a shell runs", ".envrc .direnv/ mise.toml .mise.toml .mise/ mise.local.toml .tool-versions .nvmrc .node-version .python-version .ruby-version rust-toolchain rust-toolchain.toml devbox.json flake.nix shell.nix .autoenv* " +
				".envrc.* .config/mise/ .config/mise.toml .rtx.toml .prototools .sdkmanrc .java-version .go-version default.nix devenv.nix devenv.yaml .shadowenv.d/ activate activate.fish activate.csh activate.ps1 .bashrc .bash_profile .profile .zshrc .zshenv"},
			{"Python runs it at each start", "what Python runs", "sitecustomize.py usercustomize.py *.pth"},
			{"programs read their settings and secrets from it", "", ".env .env.* .flaskenv"},
			{"runs at the next build or test", "", "makefile gnumakefile *.mk justfile .justfile taskfile.yml taskfile.yaml taskfile.dist.yml rakefile *.rake build.rs setup.py setup.cfg conftest.py noxfile.py tox.ini pyproject.toml hatch_build.py " +
				"*.gradle *.gradle.kts gradlew gradle-wrapper.properties gradle-wrapper.jar mvnw .mvn/ pom.xml build.xml cmakelists.txt *.cmake cmakepresets.json meson.build configure configure.ac build.zig build.sbt magefile.go " +
				"gulpfile.* gruntfile.* webpack.config.* vite.config.* vitest.config.* jest.config.* rollup.config.* babel.config.* .babelrc* eslint.config.* .eslintrc* postcss.config.* next.config.* build.bazel bazel.rc .bazelrc workspace.bazel " +
				"makefile.am makefile.in makefile.inc *.make cargo.toml binding.gyp gradle.properties dockerfile dockerfile.* *.dockerfile containerfile docker-compose* compose.yaml compose.yml vagrantfile " +
				"pytest.ini pyvenv.cfg .pylintrc pylintrc .flake8 mypy.ini .rspec .irbrc .pryrc .rubocop.yml guardfile dangerfile podfile *.gemspec mix.exs rebar.config package.swift " +
				"*.csproj *.fsproj *.vbproj *.vcxproj *.props *.targets makefile.pl build.pl sconstruct wscript build.sc *.bzl module.bazel .jvmopts .sbtopts " +
				"*.config.js *.config.cjs *.config.mjs *.config.ts *.config.cts *.config.mts .mocharc* .prettierrc* .stylelintrc* .swcrc .releaserc* angular.json turbo.json nx.json"},
			{"tells a package manager where from it installs, and what it runs", "what a package manager runs", ".npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pnp.cjs .yarn/releases/ .yarn/plugins/ pip.conf pip.ini .cargo/config .cargo/config.toml .bundle/ .pypirc .condarc nuget.config bunfig.toml .pnpmfile.mjs pnpm-workspace.yaml package.yaml package.json5 .pnp.loader.mjs uv.toml poetry.toml .corepack.env"},
			{"says what is installed, and where from", "", "go.mod go.work go.work.sum gemfile pipfile *requirements.txt requirements-* constraints.txt " + strings.ToLower(string(Locks))},
			{"tells git what to run, or where to fetch from", "", ".gitattributes .gitmodules .gitconfig .lfsconfig"},
			{"tells agents what to do and what they may do", "an agent's settings", ".claude/ claude.md claude.local.md .mcp.json agents.md agents.override.md .cursor/ .cursorrules .codex/ .gemini/ gemini.md .windsurf/ .windsurfrules .clinerules* .continue/ .aider.conf.yml .github/copilot-instructions.md .copilot/ opencode.json .opencode/ .goosehints .roo/ .amazonq/ " +
				".kiro/ .junie/ .augment/ .agents/ .pi/ .crush/ crush.json .crush.json crush.md .qwen/ qwen.md .factory/ .trae/ .kilocode/ .rules mcp.json warp.md .github/instructions/ .github/prompts/ .github/chatmodes/ .github/agents/"},
			{"another version control's own folder, whose hooks and settings it obeys", "another version control's settings", ".hg/ .hgsub .jj/ .sl/ .bzr/ .svn/ _darcs/ .pijul/"},
			{"Stepbox's own rules, by which agents are judged", "", ".stepbox.yaml .config/stepbox/"},
		} {
			for _, m := range strings.Fields(line.matches) {
				known.rules = append(known.rules, Rule{"/" + m, line.words, line.what})
			}
		}
	})
	return known.rules
}

// Covers says whether a rule is for a path, which is in small letters and begins with
// a slash.
func (r Rule) Covers(at string) bool {
	switch {
	case strings.HasSuffix(r.match, "/"):
		return strings.Contains(at, r.match)
	case strings.HasPrefix(r.match, "/*"):
		return strings.HasSuffix(at, r.match[2:])
	case strings.HasSuffix(r.match, "*"):
		return strings.HasPrefix(at[strings.LastIndexByte(at, '/'):], r.match[:len(r.match)-1])
	}
	return strings.HasSuffix(at, r.match)
}

// Through says whether what a link at such a path leads to is found under a name
// that the rule is for.
func (r Rule) Through(at string) bool {
	return strings.Contains(at+"/", r.match) || strings.HasPrefix(r.match, at[strings.LastIndexByte(at, '/'):]+"/")
}

// Runs says what a file is that other programs run by themselves: a hook, CI and
// the like; "" when it is no such file. A repository's own folder isn't looked at.
func Runs(p string) string {
	p = "/" + strings.ToLower(p)
	for _, r := range Rules() {
		if r.what != "" && r.Covers(p) {
			return r.what
		}
	}
	return ""
}
