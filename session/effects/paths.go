package effects

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
)

// IsTest says whether a path is a test's by the conventions of usual languages.
func IsTest(p string) bool {
	dir, name := path.Split(strings.ToLower(p))
	for part := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		switch part {
		case "test", "tests", "__tests__", "spec", "specs", "testdata", "e2e":
			return true
		}
	}
	stem := strings.TrimSuffix(name, path.Ext(name))
	return strings.HasPrefix(name, "test_") || name == "conftest.py" || strings.HasSuffix(stem, "_test") || strings.HasSuffix(stem, "_spec") ||
		strings.HasSuffix(stem, ".test") || strings.HasSuffix(stem, ".spec") || isTestClass(path.Base(p))
}

// isTestClass knows the names of tests in Java, Kotlin, C# and Swift.
func isTestClass(name string) bool {
	stem, ext := strings.TrimSuffix(name, path.Ext(name)), path.Ext(name)
	switch ext {
	case ".java", ".kt", ".cs", ".swift", ".scala", ".php":
		return strings.HasSuffix(stem, "Test") || strings.HasSuffix(stem, "Tests")
	}
	return false
}

// IsLock says whether a file is what a package manager notes of what it chose.
func IsLock(p string) bool {
	switch path.Base(p) {
	case "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb", "deno.lock",
		"Cargo.lock", "go.sum", "poetry.lock", "Pipfile.lock", "uv.lock", "pdm.lock", "Gemfile.lock", "composer.lock",
		"flake.lock", "mix.lock", "pubspec.lock", "Podfile.lock", "packages.lock.json", "gradle.lockfile":
		return true
	}
	return false
}

// isSource says whether a file is what people write programs in.
func IsSource(p string) bool {
	switch strings.ToLower(path.Ext(p)) {
	case ".go", ".py", ".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".c", ".h", ".cc", ".cpp", ".hpp", ".rs", ".java", ".kt", ".rb",
		".php", ".cs", ".swift", ".scala", ".sh", ".bash", ".zsh", ".pl", ".lua", ".ex", ".exs", ".erl", ".hs", ".ml", ".clj", ".dart",
		".vue", ".svelte", ".sql", ".zig", ".proto", ".r", ".jl", ".m", ".css", ".scss":
		return true
	}
	return false
}

// derived are folders, and ends of names, of what programs make again by
// themselves: when git ignores it too, nobody misses it.
var (
	derivedFolders = []string{
		"node_modules", "target", "dist", "build", "out", "bin", "obj", "__pycache__", ".cache", ".next", ".nuxt", ".venv", "venv", ".tox",
		".pytest_cache", ".mypy_cache", ".ruff_cache", ".gradle", "coverage", "htmlcov", ".turbo", ".parcel-cache", "vendor", ".eggs", "tmp",
	}
	derivedEnds = []string{".o", ".a", ".so", ".pyc", ".pyo", ".class", ".log", ".tmp", ".swp", ".exe", ".test", ".tsbuildinfo", ".egg-info"}
)

func isDerived(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if slices.Contains(derivedFolders, part) || strings.HasSuffix(part, ".egg-info") {
			return true
		}
	}
	return slices.ContainsFunc(derivedEnds, func(end string) bool { return strings.HasSuffix(p, end) })
}

// Runs says what a file is that other programs run, or take what they run from,
// by themselves: a hook, CI and the like; "" when it is no such file. What is in
// a repository's own folder isn't looked at.
func Runs(p string) string {
	parts := strings.Split(p, "/")
	name := parts[len(parts)-1]
	in := func(dirs ...string) bool {
		return len(parts) > 1 && slices.ContainsFunc(dirs, func(d string) bool { return slices.Contains(parts[:len(parts)-1], d) })
	}
	switch {
	case in(".husky", ".githooks"), name == ".pre-commit-config.yaml", name == "lefthook.yml", name == ".lefthook.yml":
		return "a git hook"
	case strings.Contains(p, ".github/workflows/"), in(".circleci", ".buildkite", ".woodpecker"):
		return "CI"
	case in(".vscode", ".idea", ".devcontainer", ".zed"), strings.HasSuffix(name, ".code-workspace"):
		return "the editor's tasks and settings"
	case in(".claude", ".codex", ".cursor", ".gemini"):
		return "an agent's settings"
	}
	switch name {
	case ".gitlab-ci.yml", "Jenkinsfile", ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", ".drone.yml", "appveyor.yml":
		return "CI"
	case ".mcp.json":
		return "an agent's settings"
	case ".envrc", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv":
		return "what a shell runs"
	case "sitecustomize.py", "usercustomize.py":
		return "what Python runs"
	case ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs":
		return "what a package manager runs"
	}
	if strings.HasSuffix(name, ".pth") {
		return "what Python runs"
	}
	return ""
}

// lifecycle are the scripts of a package.json that its package manager runs
// without being asked to.
var lifecycle = []string{
	"preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare", "prepublish", "prepublishOnly", "prepack", "postpack", "dependencies",
}

// scripts names the scripts that differ between two package.json, sorted, those
// first that run by themselves; self is how many do.
func scripts(old, now []byte) (names []string, self int) {
	read := func(b []byte) map[string]string {
		var p struct {
			Scripts map[string]string `json:"scripts"`
		}
		if json.Unmarshal(b, &p) != nil {
			return nil // half a file, or none: no script is known
		}
		return p.Scripts
	}
	was, is := read(old), read(now)
	var others []string
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if is[name] == was[name] {
			continue
		}
		if slices.Contains(lifecycle, name) {
			names = append(names, name)
			self++
		} else {
			others = append(others, name)
		}
	}
	return append(names, others...), self
}
