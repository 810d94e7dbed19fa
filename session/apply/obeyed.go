package apply

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/policy/git"
	"stepbox/session/api"
)

// obeyed is what the person's project obeys as it is now, of whatever name: the
// folders with git's hooks, the files that hooks and settings name, and what is
// reached through links. Paths are relative to the project.
type obeyed struct {
	project string
	hooks   []string
	named   map[string]string // by which hook or setting
	links   [][2]string       // where each is, and where it leads
}

// unattended are files of a project that say what runs by itself, beside git's own.
const unattended = ".husky .githooks .envrc .pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook.yml .overcommit.yml package.json .mcp.json .cursor/mcp.json " +
	".claude/settings.json .claude/settings.local.json .codex/config.toml .gemini/settings.json .vscode/tasks.json .vscode/settings.json .devcontainer/devcontainer.json"

const (
	maxHook  = 64 << 10 // bytes that are read of a hook or of settings
	maxHooks = 200      // that are read of a folder
)

func obeys(project string, person git.Person) *obeyed {
	o := &obeyed{project: project, named: map[string]string{}}
	settings, hooks := git.Obeyed(project, person)
	for _, dir := range hooks {
		o.hooks = append(append(o.hooks, o.inside(dir)...), o.inside(leads(dir))...)
	}
	for name := range strings.FieldsSeq(unattended) {
		settings = append(settings, filepath.Join(project, name))
	}
	for _, file := range append(settings, hooks...) {
		names, _ := os.ReadDir(file) // it may be a file, or missing
		for _, e := range names[:min(len(names), maxHooks)] {
			if !strings.HasSuffix(e.Name(), ".sample") {
				o.read(filepath.Join(file, e.Name()))
			}
		}
		o.read(file)
	}
	for _, dir := range []string{"", ".github"} {
		names, _ := os.ReadDir(filepath.Join(project, dir))
		for _, e := range names {
			if at := path.Join(dir, e.Name()); e.Type() == os.ModeSymlink {
				for _, to := range o.inside(leads(filepath.Join(project, at))) {
					o.links = append(o.links, [2]string{at, to})
				}
			}
		}
	}
	return o
}

// leads is where a path leads to, which needn't be there: then as far as its last
// link says.
func leads(file string) string {
	real, err := filepath.EvalSymlinks(file)
	if err == nil {
		return real
	}
	if to, err := os.Readlink(file); err == nil && filepath.IsAbs(to) {
		return filepath.Clean(to)
	} else if err == nil {
		return filepath.Join(filepath.Dir(file), to)
	}
	return file
}

// inside is a path as the project has it; none when it isn't in there.
func (o *obeyed) inside(file string) []string {
	if rel, err := filepath.Rel(o.project, file); err == nil && filepath.IsLocal(rel) {
		return []string{rel}
	}
	return nil
}

// read notes which files a hook or settings name, as the last part of a path:
// where that begins ($ROOT, ../..) can't be told.
func (o *obeyed) read(file string) {
	real := leads(file)
	data, _ := git.ReadFile(real, maxHook)
	if filepath.Base(file) == "package.json" {
		var p struct{ Scripts map[string]string }
		_ = json.Unmarshal(data, &p) // of half a file no script is known
		data = nil
		for name, script := range p.Scripts {
			if lifecycle(name) > 0 {
				data = append(append(data, script...), '\n')
			}
		}
	}
	if real != file {
		data = append(data, "\n./"+strings.Join(o.inside(real), "")...)
	}
	by := strings.Join(append(o.inside(file), file)[:1], "")
	for _, word := range strings.FieldsFunc(string(data), func(r rune) bool {
		return r < 0x80 && (r < '-' || r > 'z' || strings.ContainsRune(":;<=>?@[\\]^`", r))
	}) {
		whole := strings.TrimRight(word, ".")
		for word, more := whole, strings.ContainsAny(whole, "./"); more; _, word, more = strings.Cut(word, "/") {
			if o.named[word] == "" && (strings.ContainsAny(word, "./") || strings.Count(whole, "/") == 1) { // main isn't refs/heads/main
				o.named[word] = by
			}
		}
	}
}

// of says what the project obeys at a path, and which other names it has there,
// or, as a link, leads what is obeyed to.
func (o *obeyed) of(at string, link bool) (words, names []string) {
	if slices.ContainsFunc(o.hooks, func(h string) bool {
		return h == "." && !strings.Contains(at, "/") || h != "" && (strings.HasPrefix(at+"/", h+"/") || link && strings.HasPrefix(h, at+"/"))
	}) {
		words = append(words, "the repository's hooks are here (core.hooksPath): "+byHook)
	}
	if by := o.named[at]; by != "" {
		words = append(words, api.Escape(by)+" names this, and may run or read it by itself")
	}
	for _, l := range o.links {
		if rest, ok := strings.CutPrefix(at+"/", l[1]+"/"); ok {
			names = append(names, path.Join(l[0], rest))
		}
	}
	return words, names
}
