// Package git reads what a repository on the host says about itself: which
// paths it ignores, which it tracks, and where its configuration holds secrets.
//
// It never runs git, which would run what a repository's configuration names.
// It opens regular files only, themselves no symbolic links, and reads a bounded
// part of them. A repository can name folders elsewhere, as linked working trees
// do: what is read there is the person's own, and none of it is shown to an agent. Answers are about the moment when the files were read: nothing
// that changes later is noticed. Where it can't tell, nothing is ignored, since
// what is ignored is looked at less.
package git

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Person is where git looks for one person's settings.
type Person struct {
	Home   string // the home folder; "" for none
	Config string // $XDG_CONFIG_HOME; "" for Home/.config
	Global string // $GIT_CONFIG_GLOBAL, which stands in the place of both; "" for none
}

// files are the configuration files that git reads before a repository's own,
// in its order.
func (p Person) files() []string { return append([]string{"/etc/gitconfig"}, p.own()...) }

// own are those of them that are the person's.
func (p Person) own() (files []string) {
	if p.Global != "" {
		return []string{p.Global}
	}
	if dir := p.configDir(); dir != "" {
		files = append(files, filepath.Join(dir, "git/config"))
	}
	if p.Home != "" {
		files = append(files, filepath.Join(p.Home, ".gitconfig"))
	}
	return files
}

// expand puts the home folder in a path of a configuration.
func (p Person) expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && p.Home != "" {
		return filepath.Join(p.Home, rest)
	}
	return path
}

func (p Person) configDir() string {
	if p.Config != "" {
		return p.Config
	}
	if p.Home != "" {
		return filepath.Join(p.Home, ".config")
	}
	return ""
}

// Repository is what one project folder's repository says. It isn't safe for
// use while ReadFolder runs; after that it doesn't change, and is safe for
// concurrent use.
type Repository struct {
	root     string // the folder that holds .git, or project where there is none
	prefix   string // from root to the project, which paths are relative to; "" where they are one
	metadata string // the folder with HEAD and index; "" outside of a repository
	common   string // the folder with config, objects and info: metadata, but for linked worktrees

	outer    []pattern            // core.excludesFile, then info/exclude
	folders  map[string][]pattern // each folder's .gitignore, by its path from root; "" is root
	made     []pattern            // what .gitattributes say that a program writes
	tracked  []string             // sorted, from root
	unsure   bool                 // something couldn't be read: nothing is ignored
	patterns int                  // read so far
	way      way                  // where Ignored was asked last
}

// maxPatterns bounds all patterns of a repository together.
const maxPatterns = 20_000

// Open reads what holds for a whole project folder: an absolute, clean path
// without symbolic links. Of the folders below it, ReadFolder reads the rules.
// A folder outside of any repository has rules too, if it has a .gitignore.
func Open(project string, person Person) *Repository {
	return OpenAs(project, person, func(dir string) string { return dir })
}

// OpenAs is Open for a repository whose folder, and the common one of linked working
// trees, are read elsewhere: where they are is asked of moved.
func OpenAs(project string, person Person, moved func(dir string) string) *Repository {
	r := &Repository{root: project, folders: map[string][]pattern{}}
	if root, _ := Above(project); root != "" {
		r.root = root
		r.metadata, r.common = repositoryAt(root)
		r.metadata, r.common = moved(r.metadata), moved(r.common)
	}
	if r.root != project {
		r.prefix = strings.TrimPrefix(strings.TrimPrefix(project, r.root), "/")
	}
	r.readOuter(person)
	for _, dir := range above(r.prefix) {
		r.readRules(dir)
	}
	r.readAttributes()
	entries, _, err := r.Index()
	r.unsure = r.unsure || err != nil
	for i := range entries {
		r.tracked = append(r.tracked, entries[i].Path)
	}
	slices.Sort(r.tracked)
	r.way.of = func(dir string) []pattern { return r.folders[dir] }
	r.way.enter(0, r.outer)
	r.way.enter(0, r.folders[""])
	return r
}

// OpenLazily is Open for whom doesn't walk the project: the rules of a folder are
// read when something below it is asked about.
func OpenLazily(project string, person Person) *Repository {
	r := Open(project, person)
	r.way.of = func(dir string) []pattern {
		r.readRules(dir)
		return r.folders[dir]
	}
	return r
}

// Root is the folder of the working tree that the project is in or is, "" where
// there is no repository. Prefix is the way from there to the project.
func (r *Repository) Root() (root, prefix string) {
	if r.metadata == "" {
		return "", ""
	}
	return r.root, r.prefix
}

// Above finds the working tree that a folder is in or is the root of, and the
// folder with its repository's HEAD; both are "" where there is none.
func Above(folder string) (root, metadata string) {
	for dir := folder; ; dir = filepath.Dir(dir) {
		if metadata, _ := repositoryAt(dir); metadata != "" {
			return dir, metadata
		}
		if dir == filepath.Dir(dir) {
			return "", ""
		}
	}
}

// repositoryAt says where a working tree's repository is, if a folder is one's
// root: in .git, or where a linked worktree's or a submodule's file leads to.
func repositoryAt(dir string) (metadata, common string) {
	metadata = filepath.Join(dir, ".git")
	info, err := os.Lstat(metadata)
	switch {
	case err != nil:
		return "", ""
	case info.Mode().IsRegular():
		data, err := ReadFile(metadata, 4096)
		to, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
		if err != nil || !ok {
			return "", ""
		}
		metadata = beside(dir, to)
	case !info.IsDir():
		return "", ""
	}
	if info, err := os.Lstat(filepath.Join(metadata, "HEAD")); err != nil || info.IsDir() {
		return "", ""
	}
	common = metadata
	if data, err := ReadFile(filepath.Join(metadata, "commondir"), 4096); err == nil {
		common = beside(metadata, strings.TrimSpace(string(data)))
	}
	return metadata, common
}

// beside resolves a path that may be relative to a folder.
func beside(dir, to string) string {
	if filepath.IsAbs(to) {
		return filepath.Clean(to)
	}
	return filepath.Join(dir, to)
}

// readOuter reads the rules that lie outside of the working tree.
func (r *Repository) readOuter(person Person) {
	excludes := ""
	if dir := person.configDir(); dir != "" {
		excludes = filepath.Join(dir, "git/ignore")
	}
	files := person.files()
	if r.common != "" {
		files = append(files, filepath.Join(r.common, "config"))
	}
	for _, file := range files {
		data, err := ReadFile(file, maxConfig)
		if err != nil {
			continue // git treats a missing one the same; no rule is lost that hides
		}
		excludes = person.expand(core(data, "excludesfile", excludes))
	}
	if filepath.IsAbs(excludes) {
		r.outer = append(r.outer, r.read(excludes)...)
	}
	if r.common != "" {
		r.outer = append(r.outer, r.read(filepath.Join(r.common, "info/exclude"))...)
	}
}

// ReadFolder reads the .gitignore of a folder, given relative to the project.
// Folders come before those in them; an ignored folder needs none.
func (r *Repository) ReadFolder(dir string) {
	if full := r.full(dir); full != "" {
		r.readRules(full)
		r.way.forget()
	}
}

func (r *Repository) readRules(full string) {
	if _, ok := r.folders[full]; ok {
		return
	}
	if rules := r.read(filepath.Join(r.root, full, ".gitignore")); len(rules) > 0 {
		r.folders[full] = rules
	}
}

// read reads a file of patterns. Without it too much or too little may count
// as ignored, so that a file which is there and can't be read ends all of it.
func (r *Repository) read(file string) []pattern {
	data, err := ReadFile(file, maxRules)
	if err != nil {
		if !notThere(err) {
			r.unsure = true
		}
		return nil
	}
	rules := parsePatterns(data)
	if r.patterns += len(rules); r.patterns > maxPatterns {
		r.unsure = true
	}
	return rules
}

// Unsure gives up: whoever read the folders didn't see all of them.
func (r *Repository) Unsure() { r.unsure = true }

// Ignored says whether git ignores a path, given relative to the project. What
// it tracks, or a folder with something tracked in it, it doesn't ignore; nor
// does a rule ever mean a repository's own folder.
func (r *Repository) Ignored(name string, folder bool) bool {
	full := r.full(name)
	if full == "" || r.Tracked(name) || slices.Contains(strings.Split(full, "/"), ".git") {
		return false
	}
	ignored := r.way.ignored(full, folder)
	return ignored && !r.unsure
}

// Tracked says whether a path is in the repository's index, or a folder that
// something in the index is below.
func (r *Repository) Tracked(name string) bool {
	full := r.full(name)
	if _, ok := slices.BinarySearch(r.tracked, full); ok {
		return true
	}
	i, _ := slices.BinarySearch(r.tracked, full+"/")
	return i < len(r.tracked) && strings.HasPrefix(r.tracked[i], full+"/")
}

// full is a path of the project's as seen from the root; "" for the root itself.
func (r *Repository) full(name string) string {
	full := path.Join(r.prefix, name)
	if full == "." || !filepath.IsLocal(full) {
		return ""
	}
	return full
}

// above lists the folders from the root down to one, itself included.
func above(dir string) []string {
	out := []string{""}
	for i := range len(dir) {
		if dir[i] == '/' {
			out = append(out, dir[:i])
		}
	}
	if dir != "" {
		out = append(out, dir)
	}
	return out
}
