package project

import (
	"golang.org/x/sys/unix"

	"stepbox/runner/overlay/inode"
	"stepbox/runner/overlay/manifest"
)

// links are the files that shall have one inode under several names. Those that the
// project has already are looked for once, when something found there had another name.
type links struct {
	noted  []name              // by the journal that is undone
	made   map[uint64][]linked // by State.Links
	sought bool
}

// linked is a name of such a file.
type linked struct {
	path string
	is   State
}

// maxSought is how many names of the project are looked at for those of one inode.
const maxSought = 1 << 20

// link gives a name below dirfd to the file that s shares, if there is one that is as s
// wants it in all: a name or an inode may be another file's by now.
func (x *executor) link(dirfd int, name string, s *Step) bool {
	if s.New.Links == 0 {
		return false
	}
	if s.New.Found && !x.links.sought {
		x.links.sought = true
		x.seek()
	}
	for _, l := range x.links.made[s.New.Links] {
		if l.is.Same(s.New) && l.is.Found == s.New.Found && l.is.SameMeta(&s.New.Meta) && x.linkTo(dirfd, name, l.path) == nil {
			return true
		}
	}
	return false
}

func (x *executor) linkTo(dirfd int, name, path string) error {
	dir, last := manifest.Split(path)
	return openDir(x.f.fd, dir, func(fd int) error {
		return change(func() error { return unix.Linkat(fd, last, dirfd, name, 0) })
	})
}

// made notes a name of a file that others may share.
func (x *executor) made(path string, group uint64, is State) {
	if group != 0 {
		x.links.made[group] = append(x.links.made[group], linked{path, is})
	}
}

// alone says which of the files that had more than one name has only one by now.
func (x *executor) alone() {
	for i := range x.steps {
		s := &x.steps[i]
		if !s.New.Found || s.New.Links == 0 {
			continue
		}
		if st, there, err := x.f.Stat(s.Path); err == nil && there && st.Nlink < 2 {
			x.leave(s.Path, "had other names as a hard link, none of which is in the project as it was: it is a file of its own now")
		}
	}
}

// otherNames are those of the files that steps take a name from, as far as they have no
// step. By them such a file is known when all is taken back, should it have been made anew.
func (x *executor) otherNames() []name {
	wanted := map[uint64]int{}
	for i := range x.steps {
		file := x.steps[i].Old.Links
		if _, ok := wanted[file]; !ok {
			wanted[file] = int(x.known[i].Nlink)
		}
		wanted[file]--
	}
	delete(wanted, 0)
	return x.namesOf(wanted)
}

// seek finds what may be the files in the project that are to get another name: by their
// inodes, and by the names that were noted.
func (x *executor) seek() {
	wanted := map[uint64]int{}
	for i := range x.steps {
		if s := &x.steps[i].New; s.Found && s.Links != 0 {
			wanted[s.Links] = maxSought
		}
	}
	for _, n := range append(x.namesOf(wanted), x.links.noted...) {
		if is, err := x.f.Look(x.ctx, n.path); err == nil {
			x.made(n.path, n.file, is)
		}
	}
}

// namesOf finds as many names in the project as are wanted of each inode, but for those
// that have a step.
func (x *executor) namesOf(wanted map[uint64]int) (found []name) {
	left, stepped := 0, map[string]bool{}
	for _, n := range wanted {
		left += n
	}
	for i := range x.steps {
		stepped[x.steps[i].Path] = true
	}
	dirs := []string{""}
	for looked := 0; len(dirs) > 0 && left > 0 && looked < maxSought && x.ctx.Err() == nil; {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		// What can't be looked at has no name that could be told.
		_ = eachName(x.f.fd, dir, func(fd int, n string) error {
			var st unix.Stat_t
			path := manifest.Join(dir, n)
			looked++
			switch err := inode.Lstat(fd, n, &st); {
			case err != nil || uint64(st.Dev) != x.f.dev:
			case inode.KindOf(&st) == manifest.KindDir:
				dirs = append(dirs, path)
			case wanted[st.Ino] > 0 && !stepped[path]:
				wanted[st.Ino]--
				left--
				found = append(found, name{st.Ino, path})
			}
			return nil
		})
	}
	return found
}
