package outfit

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"stepbox/policy"
	"stepbox/policy/git"
	"stepbox/runner/overlay/manifest"
)

// maxSurveyed bounds how many names of a project are looked at before its
// session starts.
const maxSurveyed = 300_000

// bulky folders hold other people's code, whose keys are test data. They aren't
// looked into: the first always, the others where git ignores them.
var (
	bulky = map[string]bool{"node_modules": true, ".venv": true, "venv": true, "__pycache__": true}
	built = map[string]bool{"vendor": true, "target": true, "dist": true, "build": true, "out": true, ".next": true, ".gradle": true, ".tox": true}
)

// survey is what one look at a project folder found, before its session starts.
type survey struct {
	ignores *git.Repository
	hidden  []string // secrets, relative; a folder's with all in it
	toCome  []string // names that aren't there yet and would be secrets
	repos   []string // folders named .git and bare repositories, relative
	whole   bool     // all of the project was looked at

	unmissed []string // those of the hidden that git takes for unchanged

	files  map[fileID]bool // secrets that have further names
	looked []string        // folders that were looked into, relative
}

// fileID names a file, whatever its names are.
type fileID struct{ dev, ino uint64 }

// look goes through a project folder, the nearest folders first, following no
// links. What the person can't read the agent can't either, and is passed over. What
// rules are about is hidden besides.
func look(workspace string, person git.Person, most int, hide []policy.FileRule) survey {
	s := survey{ignores: git.Open(workspace, person), whole: true, toCome: policy.SecretsToCome()}
	for queue := []string{"."}; len(queue) > 0; queue = queue[1:] {
		dir := queue[0]
		entries, err := readDir(filepath.Join(workspace, dir))
		if err != nil {
			continue
		}
		if most -= len(entries); most < 0 {
			s.whole = false
			s.ignores.Unsure()
			break
		}
		s.looked = append(s.looked, dir)
		s.ignores.ReadFolder(dir)
		bare := isRepository(entries)
		if bare {
			s.repos = append(s.repos, dir)
		}
		for _, e := range entries {
			if bare && gitsOwn[e.Name()] {
				continue
			}
			if below := s.entry(workspace, path.Join(dir, e.Name()), e); below != "" {
				queue = append(queue, below)
			}
		}
	}
	s.hide(workspace, hide)
	s.hideLinks(workspace)
	s.toCome = slices.DeleteFunc(s.toCome, func(rel string) bool {
		_, err := os.Lstat(filepath.Join(workspace, rel))
		return err == nil
	})
	return s
}

// gitsOwn are folders of a repository that hold what git keeps.
var gitsOwn = map[string]bool{"objects": true, "refs": true, "logs": true, "hooks": true}

// isRepository says whether a folder is what git takes for a repository.
func isRepository(entries []fs.DirEntry) bool {
	has := 0
	for _, e := range entries {
		if name := e.Name(); name == "HEAD" || e.IsDir() && (name == "objects" || name == "refs") {
			has++
		}
	}
	return has == 3
}

// hideLinks hides the other names of secrets: hard links, whatever they are called.
func (s *survey) hideLinks(workspace string) {
	if len(s.files) == 0 {
		return
	}
	known := make(map[string]bool, len(s.hidden))
	for _, rel := range s.hidden {
		known[rel] = true
	}
	for _, dir := range s.looked {
		entries, err := readDir(filepath.Join(workspace, dir))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if rel := path.Join(dir, e.Name()); e.Type().IsRegular() && !known[rel] && s.files[linked(e)] {
				s.hidden = append(s.hidden, rel)
			}
		}
	}
}

// linked is which file an entry is, if that has more names than one.
func linked(e fs.DirEntry) fileID {
	info, err := e.Info()
	if err != nil {
		return fileID{}
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Nlink < 2 {
		return fileID{}
	}
	return fileID{uint64(st.Dev), st.Ino}
}

// serve writes the repositories' configurations without their secrets, and
// hides those that can't be read. It returns the layers of the overlay to show in
// front of the project, and what was replaced.
func (s *survey) serve(workspace, dir string) (above, served []string, err error) {
	if err = os.RemoveAll(dir); err == nil { // an earlier start's
		var hidden []string
		served, hidden, err = git.Serve(workspace, dir, s.repos)
		s.hidden = append(s.hidden, hidden...)
	}
	if err == nil {
		err = s.unmiss(workspace, dir)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot take the secrets out of the project's git configuration: %w", err)
	}
	if len(served)+len(s.unmissed) > 0 {
		above = []string{dir}
	}
	return above, served, nil
}

// hides says whether a file of the project isn't shown.
func (s *survey) hides(rel string) bool {
	return slices.ContainsFunc(s.hidden, func(h string) bool { return manifest.Within(rel, h) })
}

// unmiss has git take what is hidden of the project's repositories for unchanged.
func (s *survey) unmiss(workspace, dir string) error {
	for _, metadata := range s.repos {
		root := path.Dir(metadata)
		if path.Base(metadata) != ".git" || root == "." && !slices.ContainsFunc(s.hidden, s.ignores.Tracked) {
			continue
		}
		unmissed, err := git.Unmissed(workspace, dir, metadata, func(rel string) bool { return s.hides(path.Join(root, rel)) })
		if err != nil {
			return err
		}
		for _, rel := range unmissed {
			s.unmissed = append(s.unmissed, path.Join(root, rel))
		}
	}
	return nil
}

// entry judges one name; what comes back is a folder to look into.
func (s *survey) entry(workspace, rel string, e fs.DirEntry) string {
	name := e.Name()
	switch {
	case e.IsDir() && name == ".git":
		s.repos = append(s.repos, rel)
	case e.IsDir() && policy.SecretFolder(name):
		s.hidden = append(s.hidden, rel)
	case e.IsDir():
		if !bulky[name] && !(built[name] && s.ignores.Ignored(rel, true)) {
			return rel
		}
	case e.Type()&fs.ModeSymlink != 0:
		// What a secret's name leads to in the project is the secret.
		if policy.SecretFile(name) {
			if real, err := filepath.EvalSymlinks(filepath.Join(workspace, rel)); err == nil && manifest.Within(real, workspace) && real != workspace {
				s.hidden = append(s.hidden, strings.TrimPrefix(real, strings.TrimSuffix(workspace, "/")+"/"))
			}
		}
	case e.Type().IsRegular():
		if of := policy.SampleOf(name); of != "" {
			s.toCome = append(s.toCome, path.Join(path.Dir(rel), of))
		}
		if policy.SecretFile(name) || policy.SecretPath(rel) || policy.SecretIfIgnored(name) && s.ignores.Ignored(rel, false) {
			s.hidden = append(s.hidden, rel)
			s.alias(e)
		}
	}
	return ""
}

// alias has a secret's other names be found, if it has any.
func (s *survey) alias(e fs.DirEntry) {
	f := linked(e)
	if f == (fileID{}) {
		return
	}
	if s.files == nil {
		s.files = map[fileID]bool{}
	}
	s.files[f] = true
}

// readDir lists a folder that isn't reached through a link of that name.
func readDir(dir string) ([]fs.DirEntry, error) {
	file, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.ReadDir(-1)
}
