package apply

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"strings"

	"stepbox/policy/git"
)

// obeyed is what the person's project obeys as it is now, of whatever name. Paths are
// relative to the project.
type obeyed struct {
	project string
	named   map[string]string // files, by which hook or settings
	links   [][2]string       // a name that rules know, and the path that is meant by it
}

// unattended are files of a project that say what runs by itself, beside git's own.
const unattended = ".husky .githooks .envrc .pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook.yml .overcommit.yml .mcp.json .cursor/mcp.json " +
	".claude/settings.json .claude/settings.local.json .codex/config.toml .gemini/settings.json .vscode/tasks.json .vscode/settings.json .devcontainer/devcontainer.json"

const (
	maxHook  = 64 << 10 // bytes that are read of a hook or of settings
	maxHooks = 200      // that are read of a folder
)

func obeys(project string, person git.Person) *obeyed {
	o := &obeyed{project: project, named: map[string]string{}}
	files, hooks := git.Obeyed(project, person)
	for _, dir := range hooks {
		o.link(".githooks", dir)
		o.link(".githooks", leads(dir))
	}
	for name := range strings.FieldsSeq(unattended) {
		files = append(files, filepath.Join(project, name))
	}
	for _, file := range append(files, hooks...) {
		o.read(file)
		names, _ := os.ReadDir(file) // it may be a file, or missing
		for _, e := range names[:min(len(names), maxHooks)] {
			if !strings.HasSuffix(e.Name(), ".sample") {
				o.read(filepath.Join(file, e.Name()))
			}
		}
	}
	for _, dir := range []string{"", ".github"} {
		names, _ := os.ReadDir(filepath.Join(project, dir))
		for _, e := range names {
			if at := path.Join(dir, e.Name()); e.Type() == os.ModeSymlink {
				o.link(at, leads(filepath.Join(project, at)))
			}
		}
	}
	return o
}

// leads is where a path leads to, which needn't be there: then as far as its last
// link says.
func leads(file string) string {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		return real
	}
	to, err := os.Readlink(file)
	if err != nil {
		return file
	}
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(file), to)
	}
	return filepath.Clean(to)
}

// inside is a path as the project has it; "" when it isn't in there.
func (o *obeyed) inside(file string) string {
	if rel, err := filepath.Rel(o.project, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return ""
}

func (o *obeyed) link(name, file string) {
	if to := o.inside(file); to != "" {
		o.links = append(o.links, [2]string{name, strings.TrimPrefix(to+"/", "./")})
	}
}

// read notes which files a hook or settings name, as the last part of a path:
// where that begins ($ROOT, ../..) can't be told.
func (o *obeyed) read(file string) {
	real := leads(file)
	data, _ := git.ReadFile(real, maxHook)
	if real != file {
		data = append(data, "\n./"+o.inside(real)...)
	}
	by := cmp.Or(o.inside(file), file)
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

// names are others that a path has there, or, as a link, leads the way of.
func (o *obeyed) names(at string, link bool) (out []string) {
	for _, l := range o.links {
		if rest, ok := strings.CutPrefix(at+"/", l[1]); ok || link && strings.HasPrefix(l[1], at+"/") {
			out = append(out, path.Join(l[0], rest))
		}
	}
	return out
}
