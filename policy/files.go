package policy

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// FileRule names files of the project.
type FileRule struct {
	Glob string // as it is written
	Where

	pattern string
	names   bool // it is about names, in whatever folder
}

// Match says whether a rule is about a file, given by its path relative to the
// project, or about a folder that it is in.
func (r *FileRule) Match(rel string) bool {
	for p := path.Clean(rel); p != "." && p != "/"; p = path.Dir(p) {
		if r.Matches(p) {
			return true
		}
	}
	return false
}

// Matches says whether a rule is about a clean path itself.
func (r *FileRule) Matches(rel string) bool {
	if r.names {
		rel = path.Base(rel)
	}
	ok, _ := doublestar.Match(r.pattern, rel) // the pattern was checked
	return ok
}

// Plain is the one path that a rule can be about, relative to the project; "" for
// rules with wildcards, and for names in whatever folder.
func (r *FileRule) Plain() string {
	if r.names {
		return ""
	}
	return r.Top()
}

// Top is the one path without wildcards that a rule is about, if it is about any, from
// the project's own folder; "" for rules with wildcards.
func (r *FileRule) Top() string {
	if strings.ContainsAny(r.pattern, `*?[{\`) {
		return ""
	}
	return r.pattern
}

const maxGlob = 1024 // bytes

// checkPath says what is wrong with a glob of paths.
func checkPath(s string) error {
	switch {
	case s == "":
		return errors.New("it is empty")
	case len(s) > maxGlob:
		return fmt.Errorf("it has more than %d bytes", maxGlob)
	case strings.Count(s, "**") > 4 || strings.Count(s, "{") > 4:
		return errors.New("it has more than four ** or {}")
	case slices.Contains(strings.Split(s, "/"), ".."):
		return errors.New(`".." leads out of where it is from`)
	case !doublestar.ValidatePattern(s):
		return errors.New("a bracket or a brace isn't closed, or it ends in a backslash")
	}
	return nil
}

// parseFile reads a glob for files of the project. As in .gitignore one without a
// slash is about names in every folder, and one that begins with a slash about the
// project's own folder.
func parseFile(s string) (FileRule, error) {
	r := FileRule{Glob: s, pattern: strings.TrimSuffix(s, "/")}
	r.names = !strings.Contains(r.pattern, "/")
	r.pattern = strings.TrimPrefix(strings.TrimPrefix(r.pattern, "./"), "/")
	if err := checkPath(r.pattern); err != nil {
		return r, fmt.Errorf("bad pattern %q: %w", s, err)
	}
	if strings.HasPrefix(s, "~") {
		return r, fmt.Errorf("bad pattern %q: it is relative to the project; what is outside isn't shown, see mounts", s)
	}
	return r, nil
}

// folder is a glob for folders in which a rule holds.
type folder struct {
	text    string
	pattern string // relative to the project or the home folder, else absolute
	home    bool
}

func parseFolder(s string) (folder, error) {
	f := folder{text: s, pattern: strings.TrimSuffix(s, "/")}
	if rest, ok := strings.CutPrefix(f.pattern, "~"); ok {
		f.pattern, f.home = strings.TrimPrefix(rest, "/"), true
		if rest != "" && rest[0] != '/' {
			return f, fmt.Errorf("bad folder %q: only your own home folder has a name here, ~/", s)
		}
	}
	if !strings.HasPrefix(f.pattern, "/") {
		f.pattern = path.Clean(f.pattern)
	}
	if s == "/" {
		f.pattern = "/"
	}
	if err := checkPath(f.pattern); err != nil {
		return f, fmt.Errorf("bad folder %q: %w", s, err)
	}
	return f, nil
}

// holds says whether a folder, or one that it is in, is meant. known is false when
// where the pattern begins isn't known.
func (f *folder) holds(dir, project, home string) (in, known bool) {
	base := project
	switch {
	case f.home:
		base = home
	case strings.HasPrefix(f.pattern, "/"):
		base = "/"
	}
	if base == "" {
		return false, false
	}
	dir = path.Clean(dir)
	if !above(path.Clean(base), dir) && base != "/" {
		return false, true
	}
	pattern := strings.TrimPrefix(f.pattern, "/")
	if pattern == "." || pattern == "" {
		return true, true
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(dir, path.Clean(base)), "/")
	for ; rel != "." && rel != ""; rel = path.Dir(rel) {
		if ok, _ := doublestar.Match(pattern, rel); ok {
			return true, true
		}
	}
	return false, true
}
