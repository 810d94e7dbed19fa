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

func LastSlash(s string) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '/' {
			return i
		}
	}
	return -1
}

// Split cuts a path into its directory and its last component.
func Split(path string) (dir, name string) {
	if i := LastSlash(path); i >= 0 {
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
