package git

import "path/filepath"

// Hooks is the folder that the repository of a project has its hooks in, relative
// to the project, "." for itself: the last core.hooksPath that is set, by git-config(1). It is ""
// where hooks are at their usual place, in .git, or outside of the project. Files
// that a configuration includes aren't looked into.
func Hooks(project string, person Person) string {
	root, metadata := Above(project)
	if metadata == "" {
		return ""
	}
	_, common := repositoryAt(root)
	hooks := ""
	for _, file := range append(person.files(), filepath.Join(common, "config"), filepath.Join(metadata, "config.worktree")) {
		data, err := ReadFile(file, maxConfig)
		if err != nil {
			continue // as for git, one that isn't there sets nothing
		}
		hooks = person.expand(core(data, "hookspath", hooks))
	}
	if hooks == "" {
		return ""
	}
	rel, err := filepath.Rel(project, beside(root, hooks))
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return rel
}
