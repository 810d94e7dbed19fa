package effects

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
)

// Paths are patterns of what paths are by the conventions of usual languages and
// tools: of names, as path.Match has them; one that ends in a slash is of a
// folder that the path is in.
type Paths string

const (
	Tests Paths = "test/ tests/ __tests__/ spec/ specs/ testdata/ e2e/ test_* conftest.py *_test.* *_spec.* *.test.* *.spec.* " +
		"*Test.java *Tests.java *Test.kt *Tests.cs *Tests.swift *Test.php *Spec.scala"
	// Locks are what package managers note of what they chose.
	Locks Paths = "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock Cargo.lock go.sum poetry.lock " +
		"Pipfile.lock uv.lock pdm.lock Gemfile.lock composer.lock flake.lock mix.lock pubspec.lock Podfile.lock packages.lock.json gradle.lockfile"
	// Source is what people write programs in.
	Source Paths = "*.go *.py *.js *.jsx *.ts *.tsx *.mjs *.cjs *.c *.h *.cc *.cpp *.hpp *.rs *.java *.kt *.rb *.php *.cs *.swift *.scala *.sh *.bash " +
		"*.zsh *.pl *.lua *.ex *.exs *.erl *.hs *.ml *.clj *.dart *.vue *.svelte *.sql *.zig *.proto *.r *.jl *.css *.scss"
	// Derived is what programs make again by themselves: nobody misses them.
	Derived Paths = "node_modules/ target/ dist/ build/ out/ bin/ obj/ __pycache__/ .cache/ .next/ .nuxt/ .venv/ venv/ .tox/ .pytest_cache/ .mypy_cache/ " +
		".ruff_cache/ .gradle/ coverage/ htmlcov/ .turbo/ .parcel-cache/ vendor/ .eggs/ *.egg-info/ tmp/ .nyc_output/ .coverage *.o *.a *.so *.pyc *.pyo " +
		"*.class *.log *.tmp *.swp *.exe *.test *.tsbuildinfo *.out *.cov *.prof *.lcov"
)

// lifecycle are the scripts of a package.json that run without being asked for.
const lifecycle = "preinstall install postinstall preprepare prepare postprepare prepublish prepublishOnly prepack postpack dependencies"

// Has says whether a path matches one of the patterns.
func (patterns Paths) Has(p string) bool {
	dirs := strings.Split(p, "/")
	name := dirs[len(dirs)-1]
	dirs = dirs[:len(dirs)-1]
	for pattern := range strings.FieldsSeq(string(patterns)) {
		if dir, ok := strings.CutSuffix(pattern, "/"); ok {
			if slices.ContainsFunc(dirs, func(d string) bool { ok, _ := path.Match(dir, d); return ok }) {
				return true
			}
		} else if ok, _ := path.Match(pattern, name); ok { // the patterns are ours
			return true
		}
	}
	return false
}

// tells are members of a package.json and its like that nothing runs or installs by.
const tells = "name version description keywords homepage bugs license author authors contributors funding repository private sideEffects type types typings files support"

// Scripts names the scripts that differ between two documents of which a member has
// them, those first that run by themselves, which is how many unasked says; rest are
// the other members that differ, but for those that only tell. It isn't ok when the
// later one can't be read.
func Scripts(old, now []byte, member string) (names []string, unasked int, rest []string, ok bool) {
	read := func(b []byte) (all, scripts map[string]json.RawMessage, ok bool) {
		scripts = map[string]json.RawMessage{}
		ok = len(b) == 0 || json.Unmarshal(b, &all) == nil && (all[member] == nil || json.Unmarshal(all[member], &scripts) == nil && scripts != nil)
		delete(all, member)
		return all, scripts, ok
	}
	was, hadScripts, _ := read(old) // of half a file no script is known
	is, hasScripts, ok := read(now)
	for _, name := range slices.Sorted(maps.Keys(hasScripts)) {
		switch {
		case bytes.Equal(hasScripts[name], hadScripts[name]):
		case slices.Contains(strings.Fields(lifecycle), name):
			names = slices.Insert(names, unasked, name)
			unasked++
		default:
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		var a, b bytes.Buffer
		if _, _ = json.Compact(&a, was[name]), json.Compact(&b, is[name]); !bytes.Equal(a.Bytes(), b.Bytes()) && !slices.Contains(strings.Fields(tells), name) {
			rest = append(rest, name)
		}
	}
	return names, unasked, rest, ok
}
