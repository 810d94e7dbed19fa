package git

import "path/filepath"

// maxSettings bounds how many files of settings are read, which may include each
// other.
const maxSettings = 100

// Obeyed lists the files that git reads settings from in a project and its
// submodules, and the folders that its hooks are in, by their names, which may be
// links. An include counts whatever its condition is, and a folder of hooks even if
// a later file names another: who asks wants to know what might run. Both are empty
// outside of a repository.
func Obeyed(project string, person Person) (settings, hooks []string) {
	root, metadata := Above(project)
	if metadata == "" {
		return nil, nil
	}
	_, common := repositoryAt(root)
	settings = append(person.files(), filepath.Join(metadata, "config.worktree"))
	for _, file := range Configs(common) {
		settings = append(settings, filepath.Join(common, file))
		hooks = append(hooks, filepath.Join(common, filepath.Dir(file), "hooks"))
	}
	for i := 0; i < len(settings) && i < maxSettings; i++ {
		file, err := filepath.EvalSymlinks(settings[i]) // git follows links to its settings
		if err != nil {
			continue // as for git, one that isn't there sets nothing
		}
		data, _ := ReadFile(file, maxConfig)
		for _, e := range parseConfig(data) {
			switch {
			case e.section == "core" && e.key == "hookspath" && e.value != "":
				hooks = append(hooks, beside(root, person.expand(e.value)))
			case (e.section == "include" || e.section == "includeif") && e.key == "path":
				settings = append(settings, beside(filepath.Dir(file), person.expand(e.value)))
			}
		}
	}
	return settings, hooks
}
