package manifest

import (
	"fmt"
	"strings"
)

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

// Bounds of the directories that are looked into. Each name in one costs its path wherever
// it is told of, and the kernel takes none above 4,096 bytes: with a name at its end
// and the project's own path before it, one that is within them is short enough.
const (
	MaxDeep = 256  // directories below each other
	MaxLong = 3072 // bytes of a directory's path
)

// Beyond says why a directory isn't looked into: it is too deep; "" when it isn't. Agents
// make such, so that everything that follows directories has this bound.
func Beyond(path string) string {
	switch {
	case len(path) > MaxLong:
		return fmt.Sprintf("its path has more than %d bytes", MaxLong)
	case strings.Count(path, "/") >= MaxDeep:
		return fmt.Sprintf("more than %d directories below each other", MaxDeep)
	}
	return ""
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

// Within says whether a path is dir or below it. Both are clean, and the host's or
// those of a manifest.
func Within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// Tree has values for paths, by their names.
type Tree[T any] struct {
	Here  T
	Below map[string]*Tree[T]
}

// Paths is a set of paths: Here says that the path which leads there is one.
type Paths = Tree[bool]

// At is the part of the tree that a path leads to, which is made if need be.
func (t *Tree[T]) At(path string) *Tree[T] {
	for path != "" {
		name, rest, _ := strings.Cut(path, "/")
		next := t.Below[name]
		if next == nil {
			next = &Tree[T]{}
			if t.Below == nil {
				t.Below = map[string]*Tree[T]{}
			}
			t.Below[name] = next
		}
		t, path = next, rest
	}
	return t
}
