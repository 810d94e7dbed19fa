package policy

import _ "embed"

//go:embed starter.yaml
var starter []byte

//go:embed starter-project.yaml
var starterProject []byte

// Starter is a file of rules to begin with, which says how it is written and rules
// nothing; a project's or a person's own.
func Starter(project bool) []byte {
	if project {
		return starterProject
	}
	return starter
}
