package git

import (
	"path/filepath"
	"slices"
	"strings"
)

// readAttributes reads which files are generated, as gitattributes(5) files say it
// for GitHub's linguist: those in the root of the working tree alone.
func (r *Repository) readAttributes() {
	data, err := ReadFile(filepath.Join(r.root, ".gitattributes"), maxRules)
	if err != nil {
		return // nothing but how changes are listed depends on it
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0][0] == '!' || len(r.made) >= maxPatterns {
			continue
		}
		for _, attribute := range fields[1:] {
			set := attribute == "linguist-generated" || attribute == "linguist-generated=true"
			if !set && attribute != "-linguist-generated" && attribute != "linguist-generated=false" {
				continue
			}
			for _, p := range parsePatterns([]byte(fields[0])) {
				p.negated = !set
				r.made = append(r.made, p)
			}
		}
	}
}

// Generated says whether .gitattributes say that a program writes the file of a
// path, given relative to the project.
func (r *Repository) Generated(name string) bool {
	full := r.full(name)
	for _, p := range slices.Backward(r.made) {
		if full != "" && p.matches(full, false) {
			return !p.negated
		}
	}
	return false
}
