package outfit

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stepbox/policy"
	"stepbox/runner"
	"stepbox/runner/overlay/manifest"
)

// Bounds on what rules on files are looked for, and on how many are protected: each is
// a mount of its own.
const (
	maxRuled = 1_000_000
	maxFixed = 500
)

// ruled goes through a project for what rules are about: a folder stands for all in it.
// Rules on one path alone are looked up without that. Whole says that nothing was left
// out.
func ruled(workspace string, rules []policy.FileRule, most int, found func(rel string, e fs.DirEntry)) (whole bool) {
	var wild []policy.FileRule
	for _, r := range rules {
		rel := r.Plain()
		if rel == "" {
			wild = append(wild, r)
			continue
		}
		// A folder on the way may be a link: what it leads to in the project is meant.
		dir, err := filepath.EvalSymlinks(filepath.Join(workspace, path.Dir(rel)))
		if err != nil || !manifest.Within(dir, workspace) {
			continue
		}
		file := filepath.Join(dir, path.Base(rel))
		if info, err := os.Lstat(file); err == nil {
			found(strings.TrimPrefix(file, strings.TrimSuffix(workspace, "/")+"/"), fs.FileInfoToDirEntry(info))
		}
	}
	if len(wild) == 0 {
		return true
	}
	for queue := []string{"."}; len(queue) > 0; queue = queue[1:] {
		entries, err := readDir(filepath.Join(workspace, queue[0]))
		if err != nil {
			continue
		}
		if most -= len(entries); most < 0 {
			return false
		}
		for _, e := range entries {
			rel := path.Join(queue[0], e.Name())
			switch {
			case e.Name() == ".git":
			case slices.ContainsFunc(wild, func(r policy.FileRule) bool { return r.Matches(rel) }):
				found(rel, e)
			case e.IsDir():
				queue = append(queue, rel)
			}
		}
	}
	return true
}

// hide hides what rules are about: also what a link of that name leads to in the
// project, and, of rules on one path, what isn't there yet.
func (s *survey) hide(workspace string, rules []policy.FileRule) {
	whole := ruled(workspace, rules, maxRuled, func(rel string, e fs.DirEntry) {
		if !slices.Contains(s.hidden, rel) {
			s.hidden = append(s.hidden, rel)
		}
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			s.behind(workspace, rel)
		case e.Type().IsRegular():
			s.alias(e)
		}
	})
	s.whole = s.whole && whole
	for _, r := range rules {
		if rel := r.Top(); rel != "" {
			s.toCome = append(s.toCome, rel)
		}
	}
}

// fixed lists what rules protect and is there. Links can't be protected, only what they
// lead to; whatever is changed all the same isn't applied.
func (s *survey) fixed(workspace string, rules []policy.FileRule) (out []string, err error) {
	whole := ruled(workspace, rules, maxRuled, func(rel string, e fs.DirEntry) {
		hidden := slices.ContainsFunc(s.hidden, func(h string) bool { return manifest.Within(rel, h) })
		if (e.IsDir() || e.Type().IsRegular()) && !hidden {
			out = append(out, rel)
		}
	})
	s.whole = s.whole && whole
	if len(out) > maxFixed {
		return nil, &runner.StartError{Reason: fmt.Sprintf("cannot protect %d files that read-only is about (%s, line %d): at most %d are; name folders instead", len(out), rules[0].File, rules[0].Line, maxFixed)}
	}
	return out, nil
}
