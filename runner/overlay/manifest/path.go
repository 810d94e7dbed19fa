package manifest

import "strings"

// maxName is the longest name of the file systems that overlayfs runs on.
const maxName = 255

// validName says whether s can be one component of a path.
func validName(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= maxName && strings.IndexByte(s, '/') < 0 && strings.IndexByte(s, 0) < 0
}

// ValidPath says whether s is "" or names joined by slashes.
func ValidPath(s string) bool {
	if s == "" {
		return true
	}
	for name := range strings.SplitSeq(s, "/") {
		if !validName(name) {
			return false
		}
	}
	return true
}

// Split cuts a path into its directory and its last component.
func Split(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return "", path
}

// Join is the reverse of split.
func Join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// Paths is a set of paths as a tree of their names.
type Paths struct {
	Here  bool // the path that leads here is one of them
	Below map[string]*Paths
}

// Add puts a path in.
func (p *Paths) Add(path string) {
	for path != "" {
		name, rest, _ := strings.Cut(path, "/")
		next := p.Below[name]
		if next == nil {
			next = &Paths{}
			if p.Below == nil {
				p.Below = map[string]*Paths{}
			}
			p.Below[name] = next
		}
		p, path = next, rest
	}
	p.Here = true
}
