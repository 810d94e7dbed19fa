package outfit

import (
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

	committed []string // what would be hidden if git hadn't it

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
	s.show(workspace)
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

// show shows again what git has: whoever has the repository has it in history, and a
// file that git has and that isn't there looks deleted to it, so that a commit of all
// changes would delete it for whoever gets the commit.
func (s *survey) show(workspace string) {
	if len(s.hidden) == 0 {
		return
	}
	nested := map[string]*git.Repository{".": s.ignores}
	for _, at := range s.repos {
		if root := path.Dir(at); path.Base(at) == ".git" && root != "." {
			nested[root] = nil
		}
	}
	s.hidden = slices.DeleteFunc(s.hidden, func(rel string) bool {
		root := path.Dir(rel)
		for ; root != "."; root = path.Dir(root) {
			if _, ok := nested[root]; ok {
				break
			}
		}
		if nested[root] == nil {
			nested[root] = git.Open(filepath.Join(workspace, root), git.Person{})
		}
		tracked := nested[root].Tracked(strings.TrimPrefix(rel, root+"/"))
		if tracked {
			s.committed = append(s.committed, rel)
		}
		return tracked
	})
}

// entry judges one name; what comes back is a folder to look into.
func (s *survey) entry(workspace, rel string, e fs.DirEntry) string {
	name := e.Name()
	switch {
	case e.IsDir() && name == ".git":
		s.repos = append(s.repos, rel)
	case e.IsDir() && policy.SecretFolder(name) && !s.ignores.Tracked(rel): // else what git hasn't of it is
		s.hidden = append(s.hidden, rel)
	case e.IsDir():
		if !bulky[name] && !(built[name] && s.ignores.Ignored(rel, true)) {
			return rel
		}
	case e.Type()&fs.ModeSymlink != 0:
		// What a secret's name leads to in the project is the secret.
		if policy.SecretFile(name) {
			s.behind(workspace, rel)
		}
	case e.Type().IsRegular():
		if of := policy.SampleOf(name); of != "" {
			s.toCome = append(s.toCome, path.Join(path.Dir(rel), of))
		}
		if policy.SecretFile(name) || policy.SecretPath(rel) || slices.ContainsFunc(strings.Split(path.Dir(rel), "/"), policy.SecretFolder) || policy.SecretIfIgnored(name) && s.ignores.Ignored(rel, false) {
			s.hidden = append(s.hidden, rel)
			s.alias(e)
		}
	}
	return ""
}

// behind hides what a link leads to, if that is in the project.
func (s *survey) behind(workspace, rel string) {
	if real, err := filepath.EvalSymlinks(filepath.Join(workspace, rel)); err == nil && manifest.Within(real, workspace) && real != workspace {
		s.hidden = append(s.hidden, strings.TrimPrefix(real, strings.TrimSuffix(workspace, "/")+"/"))
	}
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
