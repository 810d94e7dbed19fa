package git

import (
	"path/filepath"
	"strings"
)

// Hooks is the folder that the repository of a project has its hooks in, relative
// to the project, "." for itself: the last core.hooksPath that is set, by git-config(1). It is ""
// where hooks are at their usual place, in .git, or outside of the project. Files
// that a configuration includes aren't looked into.
func Hooks(project string, person Person) string {
	root, metadata, common := project, "", ""
	for ; ; root = filepath.Dir(root) {
		if metadata, common = repositoryAt(root); metadata != "" {
			break
		}
		if root == filepath.Dir(root) {
			return ""
		}
	}
	hooks := ""
	for _, file := range append(person.files(), filepath.Join(common, "config"), filepath.Join(metadata, "config.worktree")) {
		data, err := ReadFile(file, maxConfig)
		if err != nil {
			continue // as for git, one that isn't there sets nothing
		}
		for _, e := range parseConfig(data) {
			if e.section == "core" && e.subsection == "" && e.key == "hookspath" {
				hooks = e.value
			}
		}
	}
	if rest, ok := strings.CutPrefix(hooks, "~/"); ok && person.Home != "" {
		hooks = filepath.Join(person.Home, rest)
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
