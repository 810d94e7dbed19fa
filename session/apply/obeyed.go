package apply

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"strings"

	"stepbox/policy"
	"stepbox/policy/git"
	"stepbox/policy/source"
)

// obeyed is what the person's project obeys as it is now, of whatever name.
type obeyed struct {
	project string
	named   map[string]string // files of the project, by which hook or settings
	links   [][2]string       // a path in the project that rules know, and the absolute one that it leads to
}

// unattended are files of a project that say what runs by itself, beside git's own.
const unattended = ".husky .githooks .envrc .pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook.yml .overcommit.yml .mcp.json .cursor/mcp.json " +
	".claude/settings.json .claude/settings.local.json .codex/config.toml .gemini/settings.json .vscode/tasks.json .vscode/settings.json .devcontainer/devcontainer.json"

const (
	maxHook  = 64 << 10 // bytes that are read of a hook or of settings
	maxHooks = 200      // that are read of a folder
	maxPath  = 4 << 10  // bytes of a name that is looked for in them
)

func obeys(project string, person git.Person) *obeyed {
	o := &obeyed{project: project, named: map[string]string{}}
	files, hooks := git.Obeyed(project, person)
	for _, dir := range hooks {
		o.links = append(o.links, [2]string{".githooks", dir}, [2]string{".githooks", leads(dir)})
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
	if dir := filepath.Join(cmp.Or(person.Config, filepath.Join(person.Home, ".config")), "stepbox"); filepath.IsAbs(dir) { // it may be in the project
		o.links = append(o.links, [2]string{".config/stepbox", dir}, [2]string{".config/stepbox", leads(dir)})
		o.rules(filepath.Join(dir, "policy.yaml"), source.Person)
	}
	o.rules(filepath.Join(project, ".stepbox.yaml"), source.Project(project))
	for _, dir := range []string{"", ".github"} {
		names, _ := os.ReadDir(filepath.Join(project, dir))
		for _, e := range names {
			if at := path.Join(dir, e.Name()); e.Type() == os.ModeSymlink {
				o.links = append(o.links, [2]string{at, leads(filepath.Join(project, at))})
			}
		}
	}
	return o
}

// rules notes which files a policy includes: they are rules as it is.
func (o *obeyed) rules(file string, read func(string) ([]byte, error)) {
	l, _ := policy.Load("", file, read) // where it is wrong, what was found until then
	for _, f := range l.Sources {
		o.links = append(o.links, [2]string{".stepbox.yaml", f}, [2]string{".stepbox.yaml", leads(f)})
	}
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

// read notes which files a hook or settings name, as the last part of a path:
// where that begins ($ROOT, ../..) can't be told.
func (o *obeyed) read(file string) {
	real := leads(file)
	data, _ := git.ReadFile(real, maxHook)
	if to, ok := strings.CutPrefix(real, o.project+"/"); ok && real != file {
		data = append(data, "\n./"+to...)
	}
	for _, word := range strings.FieldsFunc(string(data), func(r rune) bool {
		return r < 0x80 && (r < '-' || r > 'z' || strings.ContainsRune(":;<=>?@[\\]^`", r))
	}) {
		whole := strings.TrimRight(word, ".")
		whole = whole[max(len(whole)-maxPath, 0):] // each of its parts begins a name
		for word, more := whole, strings.ContainsAny(whole, "./"); more; _, word, more = strings.Cut(word, "/") {
			if o.named[word] == "" && (strings.ContainsAny(word, "./") || strings.Count(whole, "/") == 1) { // main isn't refs/heads/main
				o.named[word] = strings.TrimPrefix(file, o.project+"/")
			}
		}
	}
}

// names are others that a path has there, or, as a link, leads the way of.
func (o *obeyed) names(at string, link bool) (out []string) {
	full := filepath.Join(o.project, at) + "/"
	for _, l := range o.links {
		if rest, ok := strings.CutPrefix(full, l[1]+"/"); ok {
			out = append(out, path.Join(l[0], rest))
		} else if link && strings.HasPrefix(l[1]+"/", full) {
			out = append(out, l[0])
		}
	}
	return out
}
